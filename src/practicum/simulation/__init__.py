"""The real scheduler against simulated boxes, engines, verifiers and a trainer, on virtual time."""
