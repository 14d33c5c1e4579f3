"""One attempt: session, agent loop, lease → act → submit → verdict. Knows no training."""
