"""Tasks: generated families, recorded runs, and data sets with their own ground truth."""
