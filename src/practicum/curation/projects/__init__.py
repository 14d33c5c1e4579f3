"""Projects under curation: repositories and source distributions as data, and their tests in boxes.

Owns: reading, environments, the testbed, and the form of the tasks that are made from a project.
Invariant: nothing of a project is ever imported, built or run on the host.
Must not know: which strategy makes a task, gates.
"""
