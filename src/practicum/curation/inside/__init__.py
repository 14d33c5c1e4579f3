"""Programs that run inside boxes for curation. Nothing here is imported by the host.

Owns: `bench`, which runs a project's suite and says what each test did and reached.
Invariant: a test runs as it would in the judge's box.
Must not know: tasks, what the findings are for.
"""
