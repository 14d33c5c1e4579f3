"""Sentinels: frozen tests that share a process with the candidate ask each question with right and wrong answers.

Owns: rewriting frozen pytest and unittest files into *variants* (`guard`), and reading what they reported
(`reading`). The parts: other constants of one kind (`literals`), what an assertion compares (`operands`), assertions
and their alternatives (`groups`), parametrised rows (`rows`), one file (`rewrite`), what picking
would be worth (`luck`).

Each assertion of a test becomes a *question* with alternatives that exclude one another: the one its author wrote,
and others, such as another constant or the opposite condition. A test is run as several variants; in each, every
question holds one of its alternatives, by lot. So no variant is "the original", no variant is all wrong, and which
alternative is the author's is known on the host only. Every question reports for itself, and a variant goes on after
an assertion that failed.

Invariant: deterministic code satisfies at most one alternative of a question, so whatever satisfies two follows the
expectation, the framework or the report instead of the work, whatever the trick. Code that fails is never accused.
Must not know: boxes, rewards.
"""
