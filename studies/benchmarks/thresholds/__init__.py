"""Measure the gain of learned thresholds, by the scores that they are learned from."""
