"""How far verdicts can be trusted: error rates with bounds, corrected rewards, verdicts that are known beforehand."""
