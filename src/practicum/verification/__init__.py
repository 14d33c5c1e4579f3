"""Submission in, verdict out: collecting, frozen tests in a fresh box, tamper detection. Knows no rollouts."""
