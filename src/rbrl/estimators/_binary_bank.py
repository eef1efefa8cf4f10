"""Many two-class learners, trained in parallel and stored as one matrix where they are linear in it."""

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

from rbrl.estimators._base_learners import fit_learner, logistic, margins, probabilities
from rbrl.estimators._reduction import ReductionClassifier


class BinaryBankClassifier(ReductionClassifier):
    """A reduction to two-class problems, each on all or some of the rows.

    LIBLINEAR models become the rows of `coef_`, LIBSVM models the columns of the sparse `dual_coef_`, others the list
    `estimators_`, so that all scores of the first two are one product. A problem that has one class only gets no
    learner: its score is +1 or -1 (0 if it has no rows), noted in `constant_`.
    """

    def _fit_bank(self, inputs, problems, n_problems, weights):
        """Fit problems (rows, relevant): `rows` None for all, `relevant` a boolean for every training row."""
        jobs = (delayed(_fit_problem)(self._learner(), inputs, rows, relevant, weights) for rows, relevant in problems)
        fitted = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")(jobs)
        self.constant_, self.intercept_ = np.zeros(n_problems), np.zeros(n_problems)
        if self.estimator is not None:
            self.estimators_ = self._collect_estimators(fitted)
        elif self._has_kernel():
            self.dual_coef_ = self._collect_dual(fitted, inputs.matrix.shape[0])
        else:
            self.coef_ = self._collect_linear(fitted, n_problems, inputs.matrix.shape[1])

    def _collect_estimators(self, fitted):
        learners = []
        for j, (learner, _, constant) in enumerate(fitted):
            self.constant_[j] = self.intercept_[j] = constant
            learners.append(learner)
        return learners

    def _collect_linear(self, fitted, n_problems, n_features):
        coef = np.zeros((n_problems, n_features))
        for j, (learner, _, constant) in enumerate(fitted):
            self.constant_[j] = constant
            self.intercept_[j] = constant if learner is None else learner.intercept_[0]
            coef[j] = 0.0 if learner is None else learner.coef_[0]
        return coef

    def _collect_dual(self, fitted, n_samples):
        indices, values, ends = [], [], [0]
        for j, (learner, rows, constant) in enumerate(fitted):
            self.constant_[j] = constant
            self.intercept_[j] = constant if learner is None else learner.intercept_[0]
            if learner is not None:
                support = learner.support_ if rows is None else rows[learner.support_]
                indices.append(np.asarray(support))
                values.append(np.asarray(learner.dual_coef_).ravel())
            ends.append(ends[-1] + (0 if learner is None else len(indices[-1])))
        if not indices:
            return sparse.csc_array((n_samples, len(ends) - 1))
        parts = (np.concatenate(values), np.concatenate(indices), np.array(ends))
        return sparse.csc_array(parts, shape=(n_samples, len(ends) - 1))

    def _bank_margins(self, inputs, problems):
        """Scores (n_rows, number of problems) of a slice of the problems."""
        if self.estimator is not None:
            return self._columns(inputs.matrix, problems, margins)
        if self._has_kernel():
            return (self.dual_coef_[:, problems].T @ inputs.matrix.T).T + self.intercept_[problems]
        return np.asarray(inputs.matrix @ self.coef_[problems].T) + self.intercept_[problems]

    def _bank_probabilities(self, inputs, problems):
        """Probabilities of relevance, likewise."""
        if self.estimator is not None:
            P = self._columns(inputs.matrix, problems, lambda *fitted: probabilities(*fitted)[:, 1])
        else:
            P = logistic(self._bank_margins(inputs, problems))
        constant = self.constant_[problems]
        return np.where(constant == 0, P, 0.5 * (1 + constant))

    def _columns(self, matrix, problems, response):
        scores = np.zeros((matrix.shape[0], len(self.intercept_[problems]))) + self.intercept_[problems]
        for j, learner in enumerate(self.estimators_[problems]):
            if learner is not None:
                scores[:, j] = response(learner, matrix)
        return scores


def _fit_problem(learner, inputs, rows, relevant, weights):
    """The fitted learner (None for a single class), its rows, and the constant score that stands for a single class."""
    part = relevant if rows is None else relevant[rows]
    n_relevant = np.count_nonzero(part)
    if n_relevant in (0, len(part)):
        return None, rows, (np.sign(2 * n_relevant - 1) if len(part) else 0.0)
    return fit_learner(learner, inputs, relevant.astype(np.int64), weights, rows), rows, 0.0
