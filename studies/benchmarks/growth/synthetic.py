"""Synthetic text: a fixed number of terms and labels per row, explained by hidden topics."""

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

N_TOPICS = 20
TERMS_PER_ROW = 50
LABELS_PER_ROW = 5
# Influence of the topics on the logarithm of the frequency of a term, and of a label.
TERM_STRENGTH = 3.0
LABEL_STRENGTH = 6.0
BLOCK_OF_ROWS = 1000


def make_text(n_rows, n_labels, n_columns, seed=0):
    """Draw rows and labels from hidden topics.

    The first rows have the same terms and labels for every `n_rows`, and terms are the same for
    every `n_labels`. The numbers of terms and labels per row depend on no size.

    Parameters
    ----------
    n_rows : int
    n_labels : int
    n_columns : int
    seed : int, default=0

    Returns
    -------
    X : csr_array of shape (n_rows, n_columns)
        Weights of terms, counts times rarity; rows have unit length.
    Y : csr_array of shape (n_rows, n_labels)
    """
    of_topics, of_terms, of_labels, of_counts = np.random.default_rng(seed).spawn(4)
    topics = of_topics.standard_normal((n_rows, N_TOPICS)) / np.sqrt(N_TOPICS)
    X = draw_entries(of_terms, TERM_STRENGTH * topics, n_columns, TERMS_PER_ROW)
    Y = draw_entries(of_labels, LABEL_STRENGTH * topics, n_labels, LABELS_PER_ROW)
    rarity = 1 + np.log(n_rows / np.maximum(np.bincount(X.indices, minlength=n_columns), 1))
    X.data = (1 + np.log(of_counts.geometric(0.5, X.nnz))) * rarity[X.indices]
    return sparse.csr_array(normalize(X)), Y


def draw_entries(rng, topics, size, per_row):
    """Draw `per_row` different entries for each row, (n_rows, size).

    Frequencies follow a Zipf law, which the topics of a row change. The largest of such frequencies
    with Gumbel noise are a sample without replacement.
    """
    weights = rng.standard_normal((topics.shape[1], size))
    popularity = -np.log(np.arange(1, size + 1))
    chosen = []
    for start in range(0, len(topics), BLOCK_OF_ROWS):
        scores = popularity + topics[start : start + BLOCK_OF_ROWS] @ weights
        scores += rng.gumbel(size=scores.shape)
        chosen.append(np.argpartition(scores, -per_row, axis=1)[:, -per_row:])
    indices = np.sort(np.vstack(chosen), axis=1).astype(np.int32)
    starts = np.arange(len(topics) + 1, dtype=np.int32) * per_row
    return sparse.csr_array((np.ones(indices.size), indices.ravel(), starts), (len(topics), size))
