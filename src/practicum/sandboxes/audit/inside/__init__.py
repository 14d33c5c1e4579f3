"""What runs in an audited box: a runner and the probes that try to get out. Only the standard library."""
