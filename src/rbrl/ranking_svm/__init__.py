"""Ranking SVMs: hinges of pairs of labels, solved in the dual, with their estimators."""

from rbrl.ranking_svm.estimators import CalibratedRankSVM as CalibratedRankSVM
from rbrl.ranking_svm.estimators import RankSVM as RankSVM
from rbrl.ranking_svm.estimators import RankSVMz as RankSVMz
from rbrl.ranking_svm.pairs import HingePairs as HingePairs
from rbrl.ranking_svm.pairs import zero_label_pairs as zero_label_pairs
