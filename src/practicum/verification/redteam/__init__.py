"""Attacks on the judge as data, and right and wrong variants of a gold: what an audit of the verifier is made of.

Knows how to write an attack down for a task; who makes the attempts is `curation/soundness/redteam.py`.
"""
