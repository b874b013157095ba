"""Policies: rules, the reuse predictor, and what makes any of them fit the window."""
