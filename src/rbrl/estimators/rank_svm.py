"""The ranking SVMs: Rank-SVM with a learned threshold, and two that learn a zero label in its place."""

import numpy as np

from rbrl._validation import check_choice
from rbrl.decision import RowThreshold
from rbrl.estimators.objective import present_rows
from rbrl.estimators.pair_svm import PairSVM
from rbrl.losses.hinge_pairs import calibrated_pairs, ranking_pairs, zero_label_pairs

_SHARED_PARAMETERS = """kernel : {"linear", "rbf", "poly", "precomputed"} or callable, default="linear"
        "linear" learns weights of the features; every other choice learns one coefficient per training row and label.
    gamma : float, default=None
        Width of the "rbf" and scale of the "poly" kernel; None means 1 / n_features.
    degree : int, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=1.0
        Constant of the "poly" kernel.
    non_empty : bool, default=False
        Give a row without a positive score its best label.
    tol : float, default=1e-3
        Stop when the relative duality gap is at most this.
    max_iter : int, default=10000
        Sweeps over the rows.
    warm_start : bool, default=False
        Start from the dual variables of the previous `fit` if it was to the same labels, for instance with another C.
        See also :meth:`path`.
    verbose : int, default=0
        1 writes a line about the solution to standard error.

    Attributes
    ----------
    coef_ : array (n_labels, n_features)
        Linear model only.
    dual_coef_ : array (n_samples, n_labels)
        Kernel model only, with `X_fit_`, the training rows.
    intercept_ : array (n_labels,)
    objective_, dual_objective_ : float
        Primal and dual value; the optimum lies between them.
    gap_ : float
        Their distance, relative to the dual value: `objective_` is certified to be that near its optimum.
    n_iter_ : int
        Sweeps over the rows.
    history_ : array
        Best objective value at each certificate.
    classes_ : array
        Column indices of the labels, or the classes of a 1-D target."""

_BIAS = """bias : {{"free", "absorbed", "none"}}, default="{default}"
        "free": biases without a penalty, as in the original program. "absorbed": biases as weights of a constant
        feature, penalised with the rest, as the RBRL paper writes the model. "none": no biases."""

_EXAMPLE = """>>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl.estimators import {name}
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> model = {name}(C=0.01).fit(X, Y)
    >>> model.predict(X[:2])
    array({first},
           {second})
    >>> model.gap_ <= 1e-3
    True"""


class RankSVM(PairSVM):
    __doc__ = rf"""Rank-SVM: every relevant label above every irrelevant one, then a threshold for each row.

    .. math:: \min_{{W, b}} \tfrac12 \|W\|_F^2 + C \sum_i \tfrac{{1}}{{|Y_i^+||Y_i^-|}}
              \sum_{{p \in Y_i^+,\, q \in Y_i^-}} |1 - (f_{{ip}} - f_{{iq}})|_+, \qquad f_i = W'x_i + b

    A label is relevant if its score reaches the threshold :math:`t(f) = \langle a, f \rangle + c`, fitted by least
    squares to the best threshold of every training row. Rows with no or with all labels have no pair and are left out. A
    single label is ranked against its absence.

    Parameters
    ----------
    C : float, default=1.0
        Price of a violated pair.
    {_BIAS.format(default="free")}
    threshold : {{"middle", "smallest"}}, default="middle"
        Which of a row's best thresholds is fitted: the middle of the widest gap, as in the paper, or the smallest, as in
        the widely used program.
    {_SHARED_PARAMETERS}
    threshold_coef_ : array (n_labels,)
        a, with `threshold_intercept_`, c.

    References
    ----------
    A. Elisseeff, J. Weston: A kernel method for multi-labelled classification. NIPS 14, 2001.

    Examples
    --------
    {_EXAMPLE.format(name="RankSVM", first="[[0, 0, 1, 0]", second="[0, 0, 1, 0]]")}
    """

    def __init__(
        self,
        C=1.0,
        bias="free",
        threshold="middle",
        kernel="linear",
        gamma=None,
        degree=3,
        coef0=1.0,
        non_empty=False,
        tol=1e-3,
        max_iter=10_000,
        warm_start=False,
        verbose=0,
    ):
        super().__init__(
            C=C,
            bias=bias,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            non_empty=non_empty,
            tol=tol,
            max_iter=max_iter,
            warm_start=warm_start,
            verbose=verbose,
        )
        self.threshold = threshold

    def _pairs(self, Y, C, weights):
        return ranking_pairs(Y, C, weights)

    def _fit(self, X, Y, weights):
        if Y.shape[1] == 1:
            super()._fit(X, np.hstack([-Y, Y]), weights)
            self._fit_no_threshold(np.zeros((1, 1)))
            return
        super()._fit(X, Y, weights)
        kept, weights = self._kept(Y, weights)
        if not len(kept):
            self._fit_no_threshold(Y)
            return
        rule = RowThreshold(self.threshold).fit(self._raw_scores(X)[kept].astype(np.float64), Y[kept], weights)
        self.threshold_coef_, self.threshold_intercept_ = rule.coef_.astype(X.dtype), rule.intercept_

    def _fit_no_threshold(self, Y):
        """Without a row to learn from: what most rows are, all relevant or none."""
        self.threshold_coef_ = np.zeros(len(self.intercept_), dtype=self.intercept_.dtype)
        self.threshold_intercept_ = -float(np.sign(Y.sum()))

    def _kept(self, Y, weights):
        rows, weights = present_rows(weights, len(Y))
        relevant = Y[rows] > 0
        both = relevant.any(axis=1) & ~relevant.all(axis=1)
        return rows[both], None if weights is None else weights[both]

    def _scores(self, X):
        scores = self._raw_scores(X)
        if self.targets_.n_columns == 1:
            return scores[:, 1:] - scores[:, :1]
        rule = RowThreshold(ties_relevant=True)
        rule.coef_, rule.intercept_ = self.threshold_coef_, self.threshold_intercept_
        return rule.shift(scores)

    def _check_parameters(self):
        super()._check_parameters()
        check_choice(type(self).__name__, "threshold", self.threshold, ("middle", "smallest"))


class RankSVMz(PairSVM):
    __doc__ = rf"""Rank-SVM with a zero label: relevant labels above it, irrelevant ones below.

    .. math:: \min_{{W, b}} \tfrac12 \sum_{{k=0}}^l \|w_k\|^2 + C \sum_i \Big( \tfrac{{1}}{{|Y_i^+|}} \sum_{{k \in Y_i^+}}
              |1 - (f_{{ik}} - f_{{i0}})|_+ + \tfrac{{1}}{{|Y_i^-|}} \sum_{{k \in Y_i^-}} |1 - (f_{{i0}} - f_{{ik}})|_+ \Big)

    A label is relevant if its score is above that of the zero label, which `coef_` and `intercept_` have subtracted
    already. A side without labels is left out of a row's sum.

    Parameters
    ----------
    C : float, default=1.0
        Price of a violated pair.
    {_BIAS.format(default="free")}
    {_SHARED_PARAMETERS}

    References
    ----------
    J. Xu: An efficient multi-label support vector machine with a zero label. Expert Systems with Applications 39, 2012.

    Examples
    --------
    {_EXAMPLE.format(name="RankSVMz", first="[[1, 1, 1, 0]", second="[0, 0, 1, 0]]")}
    """

    def _pairs(self, Y, C, weights):
        return zero_label_pairs(Y, C, weights)


class CalibratedRankSVM(PairSVM):
    __doc__ = rf"""Calibrated Rank-SVM: a zero label between the relevant and the irrelevant ones.

    .. math:: \min_{{W, b}} \tfrac12 \sum_{{k=0}}^l \|w_k\|^2 + C \sum_i \tfrac{{1}}{{|Y_i^+||Y_i^-|}} \Big( \sum_{{p, q}}
              |2 - (f_{{ip}} - f_{{iq}})|_+ + \sum_p |1 - (f_{{ip}} - f_{{i0}})|_+ + \sum_q |1 - (f_{{i0}} - f_{{iq}})|_+
              \Big)

    with p over the relevant and q over the irrelevant labels of row i. A label is relevant if its score is above that of
    the zero label, which `coef_` and `intercept_` have subtracted already. A side without labels counts as one label in
    the price, so that such a row still tells where the zero label is.

    Parameters
    ----------
    C : float, default=1.0
        Price of a violated pair.
    {_BIAS.format(default="absorbed")}
    {_SHARED_PARAMETERS}

    References
    ----------
    A. Jiang, C. Wang, Y. Zhu: Calibrated Rank-SVM for multi-label image categorization. IJCNN 2008.

    Examples
    --------
    {_EXAMPLE.format(name="CalibratedRankSVM", first="[[1, 1, 1, 1]", second="[0, 0, 1, 0]]")}
    """

    def __init__(
        self,
        C=1.0,
        bias="absorbed",
        kernel="linear",
        gamma=None,
        degree=3,
        coef0=1.0,
        non_empty=False,
        tol=1e-3,
        max_iter=10_000,
        warm_start=False,
        verbose=0,
    ):
        super().__init__(
            C=C,
            bias=bias,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            non_empty=non_empty,
            tol=tol,
            max_iter=max_iter,
            warm_start=warm_start,
            verbose=verbose,
        )

    def _pairs(self, Y, C, weights):
        return calibrated_pairs(Y, C, weights)
