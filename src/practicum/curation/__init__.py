"""Which tasks may train: gates and their evidence. Knows no training."""
