"""Studies of rbrl, which need a clone: benchmarks, the comparison with other packages, and the paper's tables."""
