"""Are the differences between methods more than chance?

Ranks, Friedman's test, those of Nemenyi, Bonferroni and Dunn, Wilcoxon and Holm, the Bayesian signed-rank test, and
effect sizes. A table of values is
always data sets x methods.
"""

from rbrl.statistics.bayesian import SignedRankProbabilities, bayesian_signed_rank
from rbrl.statistics.friedman import FriedmanResult, average_ranks, friedman, mean_std, ranks
from rbrl.statistics.pairwise import (
    bonferroni_dunn_distance,
    bonferroni_dunn_p_values,
    groups,
    holm,
    median_differences,
    nemenyi_decidable,
    nemenyi_distance,
    nemenyi_groups,
    nemenyi_p_values,
    rank_biserial,
    smallest_wilcoxon_p,
    wilcoxon_holm,
)

__all__ = [
    "FriedmanResult", "SignedRankProbabilities", "average_ranks", "bayesian_signed_rank", "bonferroni_dunn_distance",
    "bonferroni_dunn_p_values", "friedman", "groups", "holm", "mean_std", "median_differences", "nemenyi_decidable",
    "nemenyi_distance", "nemenyi_groups", "nemenyi_p_values", "rank_biserial", "ranks", "smallest_wilcoxon_p",
    "wilcoxon_holm",
]  # fmt: skip
