"""Readers and writers, one file format per module; `rbrl.datasets.files` chooses among them."""
