"""Frozen, versioned, hashed data that the stages exchange. No I/O; knows nothing above."""
