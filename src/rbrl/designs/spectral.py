"""A kernel as a design: the linear model in the coordinates of its spectrum."""

import numpy as np
from scipy.linalg import eigh

from rbrl.designs.base import Design

# Shares of the largest eigenvalue, by precision: below FLOOR an eigenvalue is noise and left out, below -INDEFINITE it
# is not noise and the matrix no kernel.
FLOOR = {"d": 1e-13, "f": 1e-6}
INDEFINITE = {"d": 1e-6, "f": 1e-5}


class SpectralDesign(Design):
    r"""The kernel model in spectral coordinates.

    With :math:`K = Q \operatorname{diag}(s) Q'` and :math:`B = Q'A`, scores :math:`KA` are :math:`ZB` for
    :math:`Z = Q \operatorname{diag}(s)`, the ridge :math:`\operatorname{tr}(A'KA)` has row weights s, and
    :math:`\|A\|_* = \|B\|_*` because the nuclear norm is unitarily invariant.

    For ``low_rank="function"`` the nuclear norm is that of :math:`\Phi(X)'A`, whose singular values are those of
    :math:`B = \operatorname{diag}(s)^{1/2} Q'A`; then :math:`Z = Q \operatorname{diag}(s)^{1/2}` and the ridge is plain.

    Parameters
    ----------
    K : array (n_samples, n_samples)
        Symmetric and positive semidefinite; its memory is reused. In single precision the decomposition takes half the
        time, and the spectrum is that of K rounded.
    low_rank : {"coefficients", "function"}
    """

    def __init__(self, K, low_rank="coefficients"):
        s, Q = (
            part.astype(np.float64, copy=False) for part in eigh(K, driver="evd", overwrite_a=True, check_finite=False)
        )
        if s[0] < -INDEFINITE[K.dtype.char] * max(s[-1], 0.0) or s[-1] < 0:
            raise ValueError(
                "A kernel matrix must be positive semidefinite. Got eigenvalues from "
                f"{s[0]:.3g} to {s[-1]:.3g}; a multiple of the identity added to it would mend that."
            )
        first = np.searchsorted(s, FLOOR[K.dtype.char] * s[-1], side="right")
        self._set_spectrum(Q[:, first:], s[first:], low_rank)

    def _set_spectrum(self, Q, s, low_rank):
        Design.__init__(self, Q.shape)
        self.Q, self.s = Q, s
        # Z is Q diag(stretch), and is not stored: a product scales the few rows of W instead.
        if low_rank == "function":
            self._stretch = np.sqrt(self.s)[:, None]
            self.gram_diagonal = self.s
        else:
            self._stretch = self.s[:, None]
            self.ridge_weights = self.s[:, None]
            self.gram_diagonal = self.s**2

    def _product(self, W):
        return self.Q @ (self._stretch * W)

    def _adjoint(self, R):
        return self._stretch * (self.Q.T @ R)

    def coefficients(self, W):
        return self.Q @ (self._stretch / self.s[:, None] * W)

    def weights(self, coefficients):
        return (self.s[:, None] / self._stretch) * (self.Q.T @ coefficients)

    def transform(self, rows):
        return (rows @ self.Q) * (self._stretch[:, 0] / self.s)

    def row_norms(self):
        return np.sqrt(np.einsum("ik,ik,k->i", self.Q, self.Q, self.gram_diagonal, optimize=True))
