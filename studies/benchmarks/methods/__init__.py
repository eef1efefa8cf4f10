"""Speed and memory of the reductions and of ML-kNN beside scikit-learn and scikit-multilearn-ng."""
