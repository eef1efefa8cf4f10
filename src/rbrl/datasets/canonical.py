"""One order of rows and one hash for a data set, whatever file it came from.

Copies of the same set differ in row order, in dense or sparse storage and in number types. A row's *content* is the
byte string made of, all little-endian 64-bit: the number of its relevant labels, the number of its non-zero features,
the indexes of both, and the values of those features as floats (any NaN as one NaN). Its *digest* is the SHA-256 of
that. The canonical order sorts rows by digest; the content hash is the SHA-256 of the sizes followed by the sorted
digests. Rows with equal digests are equal, so that their order among themselves changes nothing.
"""

import hashlib

import numpy as np
from scipy import sparse


def row_digests(X, Y=None):
    """Return an (n_samples, 4) array of big-endian words: the SHA-256 digest of each row's content.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
    Y : ndarray or sparse array of shape (n_samples, n_labels), optional
        0/1 labels; left out of the content if None.
    """
    X = _nonzeros(X)
    Y = _nonzeros(sparse.csr_array((X.shape[0], 0)) if Y is None else Y)
    values = X.data.astype("<f8")
    values[np.isnan(values)] = np.nan
    features, labels = X.indices.astype("<i8"), Y.indices.astype("<i8")
    sizes = np.column_stack([np.diff(Y.indptr), np.diff(X.indptr)]).astype("<i8")
    digests = bytearray()
    for i in range(X.shape[0]):
        row, tags = slice(X.indptr[i], X.indptr[i + 1]), slice(Y.indptr[i], Y.indptr[i + 1])
        content = b"".join((sizes[i].tobytes(), labels[tags].tobytes(), features[row].tobytes(), values[row].tobytes()))
        digests += hashlib.sha256(content).digest()
    return np.frombuffer(bytes(digests), dtype=">u8").reshape(-1, 4)


def canonical_order(digests):
    """Return the permutation that sorts rows by digest; equal rows keep their order."""
    return np.lexsort(digests.T[::-1])


def content_hash(digests, n_features, n_labels):
    """Return the hexadecimal content hash of the rows with these digests, in any order."""
    head = np.array([len(digests), n_features, n_labels], dtype="<i8").tobytes()
    return hashlib.sha256(head + digests[canonical_order(digests)].tobytes()).hexdigest()


def _nonzeros(A):
    A = sparse.csr_array(A, copy=True)
    A.sum_duplicates()
    A.eliminate_zeros()
    return A
