"""What runs inside the judge's box: drivers of frozen tests and the candidate's process.

Owns: plain values as text (`values`), the candidate's process (`candidate`), and one driver per kind of test
(`plain`, `scripts`, `suites`), what rewritten suites import (`checks`), a look at the framework (`intact`).
Invariant: needs nothing but the standard library of the box's interpreter, and pytest for `suites`; a driver says
`ready` before any code of the candidate runs. Must not know: the host, tasks, anything else of practicum.

The folder is laid into the box as it is, so modules import each other by their bare names. `json`, `signal` and
`importlib` are left out where they would double the cost of a verdict.
"""
