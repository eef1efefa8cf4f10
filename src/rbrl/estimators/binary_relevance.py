"""Binary relevance: one classifier per label."""

import numpy as np

from rbrl._validation import check_choice
from rbrl.estimators._binary_bank import BinaryBankClassifier
from rbrl.estimators._reduction import COMMON_PARAMETERS, KERNEL_ATTRIBUTES, LEARNER_PARAMETERS


class BinaryRelevance(BinaryBankClassifier):
    __doc__ = rf"""One independent classifier per label.

    .. math:: f_k = \arg\min_f \; \Omega(f) + C \sum_i \ell(y_{{ik}} f(x_i)), \qquad k = 1, \dots, l

    with the squared hinge and a linear f, the hinge and an RBF kernel, or any base learner. The kernel matrix is
    computed once and shared by all labels. A label that is constant in training gets a constant score of its sign.

    Parameters
    ----------
    {LEARNER_PARAMETERS}
    scores : {{"decision", "hard"}}, default="decision"
        "decision": the decision values of the base learners, else their probabilities less 1/2. "hard": +1/2 or -1/2,
        the predicted class and nothing else, as Mulan ranked the labels of its SVMs.
    {COMMON_PARAMETERS}

    Attributes
    ----------
    coef_ : array (n_labels, n_features)
        ``kernel="linear"`` only, with `intercept_` (n_labels,).
    dual_coef_ : sparse array (n_samples, n_labels)
        ``kernel="rbf"`` only, with `intercept_` (n_labels,).
    estimators_ : list
        The fitted clones of `estimator`; None for a constant label, whose score is in `constant_`.
    {KERNEL_ATTRIBUTES}

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl.estimators import BinaryRelevance
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> BinaryRelevance(kernel="rbf", gamma=0.01).fit(X, Y).predict(X[:2])
    array([[1, 1, 1, 1],
           [0, 0, 1, 0]])
    """

    decision_parameters = ("non_empty", "scores")

    def __init__(
        self,
        estimator=None,
        kernel="linear",
        C=1.0,
        gamma=None,
        tol=None,
        scores="decision",
        non_empty=False,
        n_jobs=None,
    ):
        self.estimator = estimator
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.tol = tol
        self.scores = scores
        self.non_empty = non_empty
        self.n_jobs = n_jobs

    def _fit_learners(self, inputs, Y, weights):
        problems = ((None, Y[:, k] > 0) for k in range(Y.shape[1]))
        self._fit_bank(inputs, problems, Y.shape[1], weights)

    def _scores(self, X):
        scores = self._bank_margins(self._inputs(X), slice(None))
        return scores if self.scores == "decision" else np.where(scores > 0, 0.5, -0.5)

    def _check_parameters(self):
        super()._check_parameters()
        check_choice(type(self).__name__, "scores", self.scores, ("decision", "hard"))
