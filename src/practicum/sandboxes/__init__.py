"""Boxes for untrusted code: the contract, providers, layers, snapshots, limits, janitor, conformance.

Knows no tasks, no rewards.
"""
