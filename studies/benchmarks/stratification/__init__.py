"""Label deviation and time of stratified folds, beside the `iterative-stratification` package."""
