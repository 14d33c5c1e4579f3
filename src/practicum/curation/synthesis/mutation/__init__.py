"""Seeded bugs: small changes to source that keep the rest of its text.

Owns: nothing itself; `table` names all mutators, `scan` finds their sites, `sites` applies them.
Invariant: a mutation is a few replaced pieces of text, so a diff shows the bug and nothing else.
Must not know: tests, boxes, tasks.
"""
