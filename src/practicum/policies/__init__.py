"""What acts: the policy contract, the local torch engine, the HTTP client, scripted policies, renderers.

Knows no training.
"""
