"""Making tasks from a project with tests: strategies, and the engine that tries what they propose.

Owns: nothing itself; see `strategy` for what a strategy is and `engine` for how candidates are tried.
Invariant: a task is made only of what was seen to happen in boxes.
Must not know: training, who prints the outcome.
"""
