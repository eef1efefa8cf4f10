"""The ranking SVMs: a hinge of pairs of labels, solved in its dual. The second optimisation stack, told as one."""

from rbrl.ranking_svm.estimators import CalibratedRankSVM, RankSVM, RankSVMz
from rbrl.ranking_svm.pairs import HingePairs, zero_label_pairs

__all__ = ["CalibratedRankSVM", "HingePairs", "RankSVM", "RankSVMz", "zero_label_pairs"]
