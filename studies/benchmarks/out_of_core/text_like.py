"""Make any number of rows that resemble text, block by block; the same seed gives the same rows."""

import numpy as np
from scipy import sparse

N_FEATURES, N_LABELS, WORDS, TOPICS, CARDINALITY = 10_000, 100, 60, 30, 3.0


class TextLike:
    """A planted low-rank model over word counts.

    Words are drawn from a Zipf law (about 50 different ones per row); a row is the square roots of its counts, weighted by
    rarity, of length 1. A label is relevant where a linear score of rank `TOPICS` with noise is above the label's own
    threshold; thresholds are set so that labels differ in frequency and a row has about `CARDINALITY` of them.
    """

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        self.seed = seed
        probability = 1.0 / (np.arange(N_FEATURES) + 20.0)
        probability /= probability.sum()
        self._cumulative = np.cumsum(probability)
        self._rarity = np.sqrt(-np.log(probability)).astype(np.float64)
        self._map = rng.standard_normal((N_FEATURES, TOPICS)) @ rng.standard_normal((TOPICS, N_LABELS))
        share = rng.dirichlet(np.full(N_LABELS, 2.0)) * CARDINALITY
        X, rng = self._features(20_000, np.random.default_rng((seed, 1)))
        scores = self._scores(X, rng)
        self._thresholds = np.array([np.quantile(f, 1.0 - min(p, 0.5)) for f, p in zip(scores.T, share)])

    def block(self, i, n_rows):
        """Block number i: X, a CSR array of float64, and Y of int8."""
        X, rng = self._features(n_rows, np.random.default_rng((self.seed, 2, i)))
        return X, (self._scores(X, rng) > self._thresholds).astype(np.int8)

    def _features(self, n, rng):
        words = np.searchsorted(self._cumulative, rng.random((n, WORDS))).astype(np.int32).clip(0, N_FEATURES - 1)
        rows = np.repeat(np.arange(n), WORDS)
        X = sparse.csr_array((np.ones(words.size), (rows, words.ravel())), shape=(n, N_FEATURES))
        X.sum_duplicates()
        X.data = np.sqrt(X.data) * self._rarity[X.indices]
        length = np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1]))
        X.data /= np.repeat(length, np.diff(X.indptr))
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        return X, rng

    def _scores(self, X, rng):
        scores = X @ self._map
        return scores + 0.5 * scores.std() * rng.standard_normal(scores.shape)
