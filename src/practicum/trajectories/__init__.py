"""Trajectories on disk: append-only Parquet, and reading them back. Does not know how rewards are made."""
