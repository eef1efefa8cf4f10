"""Are the differences between methods more than chance? Ranks, Friedman, Nemenyi, Bonferroni-Dunn, Wilcoxon-Holm,
effect sizes."""

from rbrl.statistics._friedman import FriedmanResult, friedman
from rbrl.statistics._pairwise import (
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
from rbrl.statistics._ranks import average_ranks, mean_std, ranks

__all__ = [
    "FriedmanResult",
    "average_ranks",
    "bonferroni_dunn_distance",
    "bonferroni_dunn_p_values",
    "friedman",
    "groups",
    "holm",
    "mean_std",
    "median_differences",
    "nemenyi_decidable",
    "nemenyi_distance",
    "nemenyi_groups",
    "nemenyi_p_values",
    "rank_biserial",
    "ranks",
    "smallest_wilcoxon_p",
    "wilcoxon_holm",
]
