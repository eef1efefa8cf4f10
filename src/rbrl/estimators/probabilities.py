"""`predict_proba` of the methods that have probabilities by themselves."""

from abc import abstractmethod

import numpy as np
from sklearn.utils.metaestimators import available_if

from rbrl._common.typing import FloatArray, Matrix
from rbrl.estimators.base import MultiLabelClassifier, Rows
from rbrl.targets import SignedTargets


def by_class(P: FloatArray, targets: SignedTargets) -> FloatArray:
    """Probabilities as scikit-learn has them: of labels as they are, of a 1-D target a column per class, rows of sum 1.

    Parameters
    ----------
    P : array (n_samples, n_columns)
        That each label or class is the case; that the second is, for two classes.
    targets : SignedTargets

    Returns
    -------
    array (n_samples, n_labels or n_classes)

    Examples
    --------
    >>> by_class(np.array([[0.2], [0.5]]), SignedTargets().fit(np.array(["no", "yes"])))
    array([[0.8, 0.2],
           [0.5, 0.5]])
    """
    if targets.is_matrix:
        return P
    if targets.kind == "multiclass":
        total = P.sum(axis=1, keepdims=True)
        # Where every class is impossible none is more likely than another.
        return np.divide(P, total, out=np.full(P.shape, 1 / P.shape[1]), where=total > 0)
    return np.hstack([1 - P, P]) if len(targets.classes_) == 2 else np.ones_like(P)


class ProbabilityClassifier(MultiLabelClassifier):
    """A classifier that has probabilities by itself, or where its base learner `estimator` has them.

    A subclass writes ``_probabilities(X)``.
    """

    @available_if(lambda self: self._has_probabilities())
    def predict_proba(self, X: Rows) -> FloatArray:
        """Probability that each label is relevant; of a 1-D target, that of each class.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n_samples, n_features); or Dataset

        Returns
        -------
        array (n_samples, n_labels); (n_samples, n_classes) for a 1-D target
        """
        return by_class(self._probabilities(self._checked_rows(X)), self.targets_)

    def _has_probabilities(self) -> bool:
        return hasattr(self.estimator, "predict_proba") if hasattr(self, "estimator") else True

    @abstractmethod
    def _probabilities(self, X: Matrix) -> FloatArray:
        """Probabilities of checked rows, (n_samples, n_columns)."""
