"""Statistical tests and effect sizes: do methods differ by more than chance?

A table of values always has one row for each data set and one column for each method.
"""

from rbrl.experiments.statistics.bayesian import SignedRankProbabilities, bayesian_signed_rank
from rbrl.experiments.statistics.friedman_test import FriedmanResult, average_ranks, friedman, ranks
from rbrl.experiments.statistics.pairwise import (
    bonferroni_dunn_distance,
    bonferroni_dunn_p_values,
    median_differences,
    nemenyi_distance,
    nemenyi_p_values,
    rank_biserial,
    wilcoxon_holm,
)

__all__ = [
    "FriedmanResult", "SignedRankProbabilities", "average_ranks", "bayesian_signed_rank", "bonferroni_dunn_distance",
    "bonferroni_dunn_p_values", "friedman", "median_differences", "nemenyi_distance", "nemenyi_p_values",
    "rank_biserial", "ranks", "wilcoxon_holm",
]  # fmt: skip
