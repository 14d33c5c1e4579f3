"""The families: each module holds one kind of work, its inputs, its gold, and a second solution written apart from it.

Owns: nothing itself; see `brief` for what a family has to offer.
Invariant: `solve` and `again` agree on every input that `make` can draw, and end on each (they loop over given data).
Must not know: tasks, how programs are rendered.
"""
