"""What an agent calls before each model request: its history in, a request that fits out."""
