"""Pure state machines for permits, deadlines, staleness. Does not know what a unit of work is.

Who may go on, and when: `pacing`, `permits` (made of `line`), `turns`, `concurrency` (by `signals`, `pressure`),
`breaker`, `retry`. What will come: `expected`, `bound`, `feasible`. What was: `emission`, `identity`,
`waits` and `histogram`.
"""
