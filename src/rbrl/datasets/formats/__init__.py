"""Readers and writers, one file format per module; see `rbrl.datasets.files` for the functions that choose among them."""
