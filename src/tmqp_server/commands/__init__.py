"""Commands beside the server: about a data directory, others' configurations, and keys."""
