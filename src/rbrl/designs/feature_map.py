"""A kernel given by features: the narrow spectrum of an approximation."""

import numpy as np

from rbrl.designs.eigen import gram, projected_gram
from rbrl.designs.spectral import SpectralDesign
from rbrl.designs.whitening import whiten


class FeatureMapDesign(SpectralDesign):
    r"""The kernel model of :math:`K = \Phi \Phi'`, from its factor.

    With :math:`\Phi'\Phi = V \operatorname{diag}(s) V'` the spectrum of K is s, and its eigenvectors are
    :math:`Q = \Phi V \operatorname{diag}(s)^{-1/2}`: nothing has more columns than there are features. The model's own
    coefficients are the weights of the features, :math:`\Phi'A`.

    Parameters
    ----------
    features : array (n_samples, n_features)
        :math:`\Phi`.
    low_rank : {"coefficients", "function"}
        As for :class:`SpectralDesign`.
    """

    def __init__(self, features, low_rank="coefficients"):
        self.basis, s = whiten(gram(features), lambda V: projected_gram(features, V))
        self._set_spectrum((features @ self.basis) / np.sqrt(s), s, low_rank)

    def coefficients(self, W):
        return self.basis @ (self._scale[:, None] * W)

    def weights(self, coefficients):
        return (self.basis.T @ coefficients) / self._scale[:, None]

    def transform(self, rows):
        return (rows @ self.basis) * self._scale

    @property
    def _scale(self):
        return self._stretch[:, 0] / np.sqrt(self.s)
