"""What linear and kernel models share: their parameters' checks, kernel values, and scores from stored coefficients."""

import numpy as np

from rbrl._validation import check_choice, check_number
from rbrl.kernels import KERNELS, gram

# Kernel values at a time: 128 MB.
BLOCK_ENTRIES = 2**24


class KernelModel:
    """Mixin of classifiers with the parameters `kernel`, `gamma`, `degree` and `coef0`.

    A linear model keeps `coef_` and `intercept_`, every other one `dual_coef_`, `X_fit_` and perhaps `intercept_`.
    """

    def _gram(self, X, Z=None):
        return gram(X, Z, kernel=self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0)

    def _is_linear(self):
        return isinstance(self.kernel, str) and self.kernel == "linear"

    def _is_precomputed(self):
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _raw_scores(self, X):
        """Scores of checked rows, of the type of X."""
        if self._is_linear():
            return np.asarray(X @ self.coef_.T) + self.intercept_
        step = max(1, BLOCK_ENTRIES // len(self.dual_coef_))
        blocks = (X[start : start + step] for start in range(0, X.shape[0], step))
        scores = np.vstack([self._gram(block, self.X_fit_) @ self.dual_coef_ for block in blocks])
        return (scores + getattr(self, "intercept_", 0.0)).astype(X.dtype, copy=False)

    def _check_kernel(self):
        owner = type(self).__name__
        if self.gamma is not None:
            check_number(owner, "gamma", self.gamma, strict=True)
        check_number(owner, "degree", self.degree, low=1, integer=True)
        check_number(owner, "coef0", self.coef0)
        if not callable(self.kernel):
            check_choice(owner, "kernel", self.kernel, KERNELS)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        return tags
