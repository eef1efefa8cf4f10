"""Label powerset: every label set that occurs is a class."""

import numpy as np

from rbrl._validation import check_choice
from rbrl.estimators._powerset import fit_powerset, powerset_votes
from rbrl.estimators._reduction import KERNEL_ATTRIBUTES, LEARNER_PARAMETERS, ReductionClassifier


class LabelPowerset(ReductionClassifier):
    __doc__ = rf"""One multi-class classifier whose classes are the label sets of the training rows.

    .. math:: \hat Y(x) = \arg\max_{{S \in \{{Y_1, \dots, Y_n\}}}} f_S(x)

    Only label sets seen in training can be predicted. LIBLINEAR separates each set from the rest, LIBSVM every two sets.

    Parameters
    ----------
    {LEARNER_PARAMETERS}
    votes : {{"hard", "soft"}}, default="hard"
        "hard": the label set of the best class. "soft": a label is relevant where the sets that hold it have more than
        half of the probability (for base learners without probabilities, the softmax of the decision values); this
        ranks the labels too, and may predict a set that was never seen.
    non_empty : bool, default=False
        Give a row without a relevant label its best one.

    Attributes
    ----------
    label_sets_ : array (n_sets, n_labels) of bool
    estimator_ : scikit-learn classifier
        Its classes are rows of `label_sets_`; None if there is only one.
    {KERNEL_ATTRIBUTES}

    Notes
    -----
    `decision_function` is the vote for each label less 1/2.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl.estimators import LabelPowerset
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> model = LabelPowerset().fit(X, Y)
    >>> len(model.label_sets_)
    16
    >>> model.predict(X[:2])
    array([[1, 1, 1, 1],
           [0, 0, 1, 0]])
    """

    decision_parameters = ("non_empty", "votes")

    def __init__(self, estimator=None, kernel="linear", C=1.0, gamma=None, tol=None, votes="hard", non_empty=False):
        self.estimator = estimator
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.tol = tol
        self.votes = votes
        self.non_empty = non_empty

    def _fit_learners(self, inputs, Y, weights):
        self.label_sets_, self.estimator_ = fit_powerset(self._learner(), inputs, Y > 0, weights)

    def _scores(self, X):
        votes = powerset_votes(self.label_sets_, self.estimator_, self._inputs(X).matrix, self.votes)
        return np.subtract(votes, 0.5)

    def _check_parameters(self):
        super()._check_parameters()
        check_choice(type(self).__name__, "votes", self.votes, ("hard", "soft"))
