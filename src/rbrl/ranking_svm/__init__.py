"""The ranking SVMs: a hinge of pairs of labels, solved in its dual. The second optimisation stack, told as one."""

from rbrl.ranking_svm.estimators import CalibratedRankSVM, RankSVM, RankSVMz

__all__ = ["CalibratedRankSVM", "RankSVM", "RankSVMz"]
