"""Tasks from a project's own history: the state before a commit, with the commit's tests.

Owns: which commits are worth a look, what a task from one is, the walk through a history.
Invariant: a task holds one state and nothing later: no history, no object of git, no line of the fix. Workspaces have
no `.git` at all, since it would be one more thing to search and of no use to the work.
Must not know: gates, the command line.
"""
