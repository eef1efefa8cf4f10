"""Measure what each feature of the quasi-Newton solver gains, on problems that were never used to tune it."""
