"""Policy versions on disk: publish, fetch, checkpoint."""
