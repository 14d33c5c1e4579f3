"""What boxes cost on this host, beside what the tools themselves cost.

Owns: the measurements of `practicum sandbox bench`.
Invariant: what is compared was measured side by side in one run, by one harness; nothing is left behind.
Must not know: tasks, policies.
"""
