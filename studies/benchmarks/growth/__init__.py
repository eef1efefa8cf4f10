"""Growth of the time of a linear fit with rows, labels and columns."""
