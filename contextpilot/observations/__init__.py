"""One encoding of contexts as arrays, for the environment and the manager alike."""
