"""Speed of the default solver, on a list of problems that was fixed before it was tuned."""
