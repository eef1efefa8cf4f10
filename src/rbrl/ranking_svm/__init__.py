"""Ranking SVMs: hinges of pairs of labels, solved in the dual, with their estimators."""

from rbrl.ranking_svm.estimators import CalibratedRankSVM, RankSVM, RankSVMz
from rbrl.ranking_svm.pairs import HingePairs, zero_label_pairs

__all__ = ["CalibratedRankSVM", "HingePairs", "RankSVM", "RankSVMz", "zero_label_pairs"]
