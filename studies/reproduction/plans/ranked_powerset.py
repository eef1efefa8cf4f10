"""The label powerset with a ranking as good as its labels, for the comparison on equal terms."""

from sklearn.base import BaseEstimator, ClassifierMixin

from rbrl import LabelPowerset


class RankedPowerset(ClassifierMixin, BaseEstimator):
    """Label powerset that predicts its best label set, and ranks.

    The labels of the best set come first, the others behind them; on either side the probability of all label sets that
    hold a label decides. By votes for the best set alone most labels would tie, and by probabilities alone, which are
    nearly the same for hundreds of sets, a row would get the labels of no set.

    Parameters
    ----------
    C : float
    kernel : {"linear", "rbf"}
    """

    def __init__(self, C=1.0, kernel="linear"):
        self.C = C
        self.kernel = kernel

    def fit(self, X, y):
        """Fit the powerset."""
        self.powerset_ = LabelPowerset(kernel=self.kernel, C=self.C).fit(X, y)
        self.classes_ = self.powerset_.classes_
        return self

    def decision_function(self, X):
        """Scores: from 1/2 on for the labels of the best set, at most -1/4 for the others."""
        best, share = (self.powerset_.set_params(votes=votes).decision_function(X) for votes in ("hard", "soft"))
        return best + 0.25 * (share + 0.5)

    def predict(self, X):
        """The labels of the best set."""
        return self.powerset_.set_params(votes="hard").predict(X)
