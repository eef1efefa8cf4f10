"""Products of sparse rows with many columns at once, compiled."""

from rbrl._loops.compiled.options import compiled


@compiled
def sparse_product(data, indices, indptr, W, out):
    for i in range(len(indptr) - 1):
        sums = out[i]
        for p in range(indptr[i], indptr[i + 1]):
            x, w = data[p], W[indices[p]]
            for j in range(len(sums)):
                sums[j] += x * w[j]


@compiled
def sparse_adjoint(data, indices, indptr, D, out):
    for i in range(len(indptr) - 1):
        d = D[i]
        for p in range(indptr[i], indptr[i + 1]):
            x, sums = data[p], out[indices[p]]
            for j in range(len(sums)):
                sums[j] += x * d[j]
