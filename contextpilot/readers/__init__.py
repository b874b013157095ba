"""Models that answer questions from a context, to see whether what it must tell is still told."""
