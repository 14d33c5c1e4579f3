"""How well a policy gets things done: rates with intervals, paired comparison. Knows no training."""
