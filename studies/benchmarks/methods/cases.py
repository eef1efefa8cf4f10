"""Tasks of the comparison: each names our estimator and the others that solve the same task."""

from collections.abc import Callable
from dataclasses import dataclass

from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.svm import LinearSVC

from rbrl.estimators import BinaryRelevance, EnsembleOfChains, LabelPowerset, MLkNN, RAkEL

DATASETS = ("scene", "arts", "bibtex")
OURS, SKLEARN, MULTILEARN = "rbrl", "scikit-learn", "scikit-multilearn-ng"


@dataclass(frozen=True)
class Case:
    """One estimator of one task; `make` imports late, so that a missing package fails its own case only."""

    task: str
    package: str
    make: Callable


def _learner():
    return LinearSVC(dual=False)


def _multilearn_br():
    from skmultilearn.problem_transform import BinaryRelevance as Other

    return Other(_learner())


def _multilearn_powerset():
    from skmultilearn.problem_transform import LabelPowerset as Other

    return Other(_learner())


def _multilearn_rakel():
    from skmultilearn.ensemble import RakelD

    return RakelD(base_classifier=_learner(), labelset_size=3)


def _multilearn_knn():
    from skmultilearn.adapt import MLkNN as Other

    return Other(k=10, s=1.0)


CASES = (
    Case("binary relevance", OURS, BinaryRelevance),
    Case("binary relevance", SKLEARN, lambda: OneVsRestClassifier(_learner())),
    Case("binary relevance", MULTILEARN, _multilearn_br),
    Case("ML-kNN", OURS, MLkNN),
    Case("ML-kNN", MULTILEARN, _multilearn_knn),
    Case("RAkEL, disjoint", OURS, lambda: RAkEL(overlapping=False, subset_size=3, random_state=0)),
    Case("RAkEL, disjoint", MULTILEARN, _multilearn_rakel),
    Case("label powerset", OURS, LabelPowerset),
    Case("label powerset", MULTILEARN, _multilearn_powerset),
    Case("one chain", OURS, lambda: EnsembleOfChains(n_chains=1, random_state=0)),
    Case("one chain", SKLEARN, lambda: ClassifierChain(_learner(), order="random", random_state=0)),
)
TASKS = tuple(dict.fromkeys(case.task for case in CASES))
