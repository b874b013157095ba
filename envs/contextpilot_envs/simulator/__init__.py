"""What happens to an edited context: requests, prices, readers, misses and reloads."""
