"""What runs inside a box: a small agent that is the box's first process.

Owns: the wire format (`wire`), file access (`files`), commands (`commands`) and the loop (`agent`).
Invariant: needs nothing but the standard library of the box's interpreter; ends, and with it the box, when
the host closes its end. Must not know: the host, tasks, anything else of practicum.

This folder is laid into the box as it is, so modules import each other relatively. `os`, `signal`, `subprocess`
and `json` are left out because importing them would double the start-up time of a box.
"""
