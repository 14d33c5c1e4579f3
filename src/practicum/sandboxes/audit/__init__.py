"""Attempts to get out of a box, to harm the host or a neighbour from it, and the proof that each would be noticed.

`inside/` is laid into boxes, the rest drives a provider from the host. Knows any provider by its contract only.
"""
