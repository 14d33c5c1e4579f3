"""Builds the parts from a config and runs them: workers, pacing, run folder, report."""
