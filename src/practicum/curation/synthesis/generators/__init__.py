"""Tasks made from rules: script automation and data cleaning, with cases that are drawn anew at each judgement.

Owns: nothing itself; see `making` for how a family becomes tasks and `families/` for the families.
Invariant: an instruction states every rule that decides a result, so that there is one right result.
Must not know: boxes, disks, policies.
"""
