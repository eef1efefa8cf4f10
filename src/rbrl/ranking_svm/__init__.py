"""Ranking SVMs: hinges of pairs of labels, solved in the dual, with their estimators."""

from rbrl.ranking_svm.estimators import CalibratedRankSVM, RankSVM, RankSVMz

__all__ = ["CalibratedRankSVM", "RankSVM", "RankSVMz"]
