"""Samples in, weights out: advantages, losses, batching, the trainer. Knows no sandboxes."""
