"""The loops in plain NumPy. They define the compiled loops and replace them if these are missing.

Y (n_samples, n_labels) has labels in {-1, 0, +1}; 0 is a missing label. F, D and Z are arrays of its
shape, and W (n_features, n_labels) are weights. `weights` belong to rows (n_samples,) or to entries.
Only arguments that a docstring names are changed. They must be float64 in C order.

Hinges of the ranking SVMs are on pairs of labels. The pairs of row i have the indices e with
``start[i] <= e < start[i + 1]``. The label ``winner[e]`` should score ``margin[e]`` above the label
``loser[e]``. Its dual variable ``alpha[e]`` is in [0, ``cap[e]``]. Biases weigh a feature of square ``lift``.
"""

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from rbrl._common.typing import Array

# Largest number of pairs that are computed at a time: 1.6 MB, which fit into a cache.
MOST_PAIRS = 200_000
# Norm of the gradient at which Newton's method for a row ends, relative to the first one. The next
# pass visits the row again, so that more digits would be wasted.
ROW_ACCURACY = 0.01


def _slack(Y: Array, F: Array) -> Array:
    """Return the slacks max(1 - y f, 0), a new array; they are 0 for missing labels."""
    return np.maximum(np.abs(Y) - Y * F, 0.0)


def _cost(Y: Array, weights: Array, scale: float, costs: Array) -> Array:
    """Return the weight of the hinge of each entry: (n_samples, n_labels); costs are (n_labels,)."""
    return scale * (weights[:, None] if weights.ndim == 1 else weights) * np.where(Y > 0, costs, 1.0)


def squared_hinge(Y: Array, F: Array, weights: Array, scale: float, costs: Array, R: Array) -> tuple[float, float]:
    """Add the gradient to R; return the value and the sum of weight * slack."""
    slack = _slack(Y, F)
    cost = _cost(Y, weights, scale, costs)
    R -= cost * Y * slack
    return 0.5 * float(np.sum(cost * slack**2)), float(np.sum(cost * slack))


def squared_hinge_diagonal(Y: Array, F: Array, weights: Array, scale: float, costs: Array, H: Array) -> None:
    """Add the diagonal of the generalised Hessian to H, (n_samples, n_labels)."""
    H += _cost(Y, weights, scale, costs) * (_slack(Y, F) > 0)


def squared_hinge_labels(Y: Array, F: Array, weights: Array, scale: float, costs: Array, M: Array) -> None:
    """Add the sum of the rows' generalised Hessians to M, (n_labels, n_labels)."""
    np.einsum("jj->j", M)[:] += (_cost(Y, weights, scale, costs) * (_slack(Y, F) > 0)).sum(axis=0)


def squared_hinge_line(
    Y: Array, F: Array, D: Array, t: Array, weights: Array, scale: float, costs: Array, d1: Array, d2: Array
) -> tuple[float, float]:
    """Add the derivatives in t of the loss at F + D diag(t) to d1, d2; return value and joint curvature."""
    slack = _slack(Y, F + D * t)
    cost = _cost(Y, weights, scale, costs)
    second = (cost * (slack > 0) * D**2).sum(axis=0)
    d1 -= (cost * Y * slack * D).sum(axis=0)
    d2 += second
    return 0.5 * float(np.sum(cost * slack**2)), float(second.sum())


def _pairs(
    Y: Array, F: Array, weights: Array, scale: float, margin: float
) -> Iterator[tuple[Array, Array, Array, Array, Array]]:
    """Yield the rows that have pairs, in groups with equal numbers of relevant and irrelevant labels.

    A group has the indices of its rows as a column, the relevant labels, the irrelevant labels, and
    the slacks and weights of the pairs (rows x relevant x irrelevant).
    """
    counts = np.column_stack([(Y > 0).sum(axis=1), (Y < 0).sum(axis=1)])
    for p, q in np.unique(counts[counts.all(axis=1)], axis=0):
        alike = np.flatnonzero((counts == (p, q)).all(axis=1))
        for rows in np.array_split(alike, -(-alike.size * p * q // MOST_PAIRS)):
            i = rows[:, None]
            pos = np.nonzero(Y[rows] > 0)[1].reshape(-1, p)
            neg = np.nonzero(Y[rows] < 0)[1].reshape(-1, q)
            slack = np.maximum(margin - F[i, pos][:, :, None] + F[i, neg][:, None, :], 0.0)
            if weights.ndim == 1:
                price = (scale * weights[rows] / (p * q))[:, None, None]
            else:
                v = weights[i, pos]
                w = weights[i, neg]
                whole = scale * (v.sum(axis=1) + w.sum(axis=1)) / (p + q)
                shares = (v / v.sum(axis=1, keepdims=True))[:, :, None] * (w / w.sum(axis=1, keepdims=True))[:, None, :]
                price = whole[:, None, None] * shares
            yield i, pos, neg, slack, price


def _by_label(labels: Array, values: Array, n_labels: int) -> Array:
    """Return the sum of the values of each label: (n_labels,). Both arrays have the same shape."""
    return np.bincount(labels.ravel(), values.ravel(), minlength=n_labels)


def pairwise_hinge(Y: Array, F: Array, weights: Array, scale: float, margin: float, R: Array) -> tuple[float, float]:
    """Add the gradient to R; return the value and the sum of weight * margin * slack."""
    value = linear = 0.0
    for i, pos, neg, slack, price in _pairs(Y, F, weights, scale, margin):
        pulls = price * slack
        R[i, pos] -= pulls.sum(axis=2)
        R[i, neg] += pulls.sum(axis=1)
        value += 0.5 * np.sum(pulls * slack)
        linear += margin * pulls.sum()
    return float(value), float(linear)


def pairwise_hinge_product(
    Y: Array, F: Array, D: Array, weights: Array, scale: float, margin: float, coupling: float, P: Array
) -> None:
    """Add the generalised Hessian times D to P; its off-diagonal entries are multiplied by `coupling`."""
    for i, pos, neg, slack, price in _pairs(Y, F, weights, scale, margin):
        active = price * (slack > 0)
        d = D[i, pos][:, :, None]
        e = D[i, neg][:, None, :]
        P[i, pos] += (active * (d - coupling * e)).sum(axis=2)
        P[i, neg] += (active * (e - coupling * d)).sum(axis=1)


def pairwise_hinge_labels(Y: Array, F: Array, weights: Array, scale: float, margin: float, M: Array) -> None:
    """Add the sum of the rows' generalised Hessians to M, (n_labels, n_labels)."""
    n_labels = len(M)
    for _, pos, neg, slack, price in _pairs(Y, F, weights, scale, margin):
        active = price * (slack > 0)
        np.einsum("jj->j", M)[:] += _by_label(pos, active.sum(axis=2), n_labels)
        np.einsum("jj->j", M)[:] += _by_label(neg, active.sum(axis=1), n_labels)
        pairs = _by_label(pos[:, :, None] * n_labels + neg[:, None, :], active, n_labels**2).reshape(M.shape)
        M -= pairs + pairs.T


def pairwise_hinge_line(
    Y: Array, F: Array, D: Array, t: Array, weights: Array, scale: float, margin: float, d1: Array, d2: Array
) -> tuple[float, float]:
    """Do the same as :func:`squared_hinge_line` for hinges of pairs."""
    value = joint = 0.0
    n_labels = len(t)
    for i, pos, neg, slack, price in _pairs(Y, F + D * t, weights, scale, margin):
        pulls = price * slack
        active = price * (slack > 0)
        d = D[i, pos]
        e = D[i, neg]
        value += 0.5 * np.sum(pulls * slack)
        d1 -= _by_label(pos, pulls.sum(axis=2) * d, n_labels)
        d1 += _by_label(neg, pulls.sum(axis=1) * e, n_labels)
        d2 += _by_label(pos, active.sum(axis=2) * d**2, n_labels)
        d2 += _by_label(neg, active.sum(axis=1) * e**2, n_labels)
        joint += np.sum(active * (d[:, :, None] - e[:, None, :]) ** 2)
    return float(value), float(joint)


def _row_of(start: Array) -> Array:
    """Return the row of each entry of a CSR matrix, or of each pair."""
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


def column_dots(A: Array, B: Array, joint: bool) -> Array:
    """Return the inner products of the columns of A and B; with `joint`, each entry is their sum."""
    out = np.einsum("kj,kj->j", A, B)
    return np.full_like(out, out.sum()) if joint else out


def memory_backward(q: Array, steps: Array, changes: Array, rho: Array, order: Array, joint: bool) -> Array:
    """Run the first loop of L-BFGS, newest pair first; change q and return the coefficients.

    `order` has the indices of the pairs in use, oldest first. The coefficients have the shape of `rho`.
    """
    coefficients = np.zeros_like(rho)
    for i in order[::-1]:
        coefficients[i] = rho[i] * column_dots(steps[i], q, joint)
        q -= changes[i] * coefficients[i]
    return coefficients


def memory_forward(
    z: Array, steps: Array, changes: Array, rho: Array, order: Array, joint: bool, coefficients: Array
) -> None:
    """Run the second loop of L-BFGS, oldest pair first, with the coefficients of the first; change z."""
    for i in order:
        z += steps[i] * (coefficients[i] - rho[i] * column_dots(changes[i], z, joint))


def clipped_dual_maximum(
    sigma: Array, linear: float, quadratic: float, reach: float, ridge: float, limit: float
) -> tuple[float, float]:
    """Maximise theta linear - theta^2 quadratic - sum (theta sigma - limit)_+^2 / (2 ridge).

    At most 30 steps of Newton's method maximise this concave function over theta in [0, reach].
    Return the maximum, at least 0, and its theta.
    """
    best = at = 0.0
    theta = min(1.0, reach)
    for _ in range(30):
        over = np.maximum(theta * sigma - limit, 0.0)
        slope = linear - 2 * theta * quadratic - float(sigma @ over) / ridge
        curvature = 2 * quadratic + float(np.sum(sigma[over > 0] ** 2)) / ridge
        value = theta * linear - theta * theta * quadratic - float(over @ over) / (2 * ridge)
        if value > best:
            best, at = value, theta
        if curvature <= 0:
            break
        previous = theta
        theta = min(max(theta + slope / curvature, 0.0), reach)
        if abs(theta - previous) < 1e-13 * theta:
            break
    return float(best), float(at)


def sparse_product(data: Array, indices: Array, indptr: Array, W: Array, out: Array) -> None:
    """Add X @ W to `out` (n_rows, n_labels), for a CSR matrix X. W may have further rows."""
    np.add.at(out, _row_of(indptr), data[:, None] * W[indices])


def sparse_adjoint(data: Array, indices: Array, indptr: Array, D: Array, out: Array) -> None:
    """Add X' @ D to `out`, for a CSR matrix X. `out` may have further rows, which do not change."""
    np.add.at(out, indices, data[:, None] * D[_row_of(indptr)])


def best_sparse_scores(
    data: Array, indices: Array, indptr: Array, W_data: Array, W_indices: Array, W_indptr: Array, intercepts: Array,
    columns: Array, best: Array,
) -> None:  # fmt: skip
    """Write the largest scores X @ W + intercepts of each row, and their columns; the first of equal scores comes first."""
    F = np.tile(intercepts, (len(best), 1))
    W = np.zeros((len(W_indptr) - 1, len(intercepts)))
    np.add.at(W, (_row_of(W_indptr), W_indices), W_data)
    sparse_product(data, indices, indptr, W, F)
    columns[:] = np.argsort(-F, axis=1, kind="stable")[:, : best.shape[1]]
    best[:] = np.take_along_axis(F, columns, axis=1)


def _ascend_row(
    pairs: Array, winner: Array, loser: Array, margin: Array, cap: Array, alpha: Array, f: Array, curvature: float,
    inner: int, moved: Array,
) -> None:  # fmt: skip
    """Take coordinate steps over the pairs of one row, in at most `inner` passes.

    `pairs` has the first and last index. Change alpha and the scores f of the row, and write the change
    of its coefficients to `moved`. The passes end if no variable changes by more than 0.001 of its cap.
    """
    first, last = pairs
    moved[:] = 0.0
    if curvature <= 0.0:
        # The scores do not depend on the coefficients of this row, so its dual variables are at their caps.
        alpha[first:last] = cap[first:last]
        return
    length = 0.5 / curvature
    for _ in range(inner):
        change = 0.0
        for e in range(first, last):
            a, b, old = winner[e], loser[e], alpha[e]
            new = min(max(old + (margin[e] - f[a] + f[b]) * length, 0.0), cap[e])
            step = new - old
            if step != 0.0:
                alpha[e] = new
                f[a] += step * curvature
                f[b] -= step * curvature
                moved[a] += step
                moved[b] -= step
                change = max(change, abs(step) / cap[e])
        if change < 1e-3:
            break


def ascend_gram(
    K: Array, scores: Array, start: Array, winner: Array, loser: Array, margin: Array, cap: Array, alpha: Array,
    biases: Array, lift: float, order: Array, inner: int,
) -> None:  # fmt: skip
    """Ascend over rows in `order`; change alpha, the scores (n_labels, n) without biases, and the biases."""
    moved = np.empty_like(biases)
    for i in order:
        f = scores[:, i] + biases
        _ascend_row(start[i : i + 2], winner, loser, margin, cap, alpha, f, K[i, i] + lift, inner, moved)
        biases += lift * moved
        scores += np.outer(moved, K[i])


def ascend_rows(
    data: Array, indices: Array, indptr: Array, norms: Array, W: Array, start: Array, winner: Array, loser: Array,
    margin: Array, cap: Array, alpha: Array, biases: Array, lift: float, order: Array, inner: int,
) -> None:  # fmt: skip
    """Ascend over the CSR rows in `order`; change alpha, the weights W and the biases, in place."""
    moved = np.empty_like(biases)
    for i in order:
        x = data[indptr[i] : indptr[i + 1]]
        columns = indices[indptr[i] : indptr[i + 1]]
        f = x @ W[columns] + biases
        _ascend_row(start[i : i + 2], winner, loser, margin, cap, alpha, f, norms[i] + lift, inner, moved)
        biases += lift * moved
        W[columns] += np.outer(x, moved)


def pair_hinge(F: Array, start: Array, winner: Array, loser: Array, margin: Array, cap: Array) -> float:
    """Return the sum over the pairs of cap times hinge, at scores F that include the biases."""
    rows = _row_of(start)
    return float(np.sum(cap * np.maximum(margin - F[rows, winner] + F[rows, loser], 0.0)))


def pair_sums(start: Array, winner: Array, loser: Array, values: Array, sign: float, R: Array) -> None:
    """Add the value of each pair to its winner in R (n, n_labels), and `sign` times it to its loser."""
    rows = _row_of(start)
    np.add.at(R, (rows, winner), values)
    np.add.at(R, (rows, loser), sign * values)


def project_pairs(
    F: Array, biases: Array, start: Array, winner: Array, loser: Array, margin: Array, cap: Array, alpha: Array,
    steps: Array, new: Array, r: Array, H: Array,
) -> float:  # fmt: skip
    """Write alpha after a gradient step, clipped to [0, cap], to `new`, with biases added to the scores.

    The step for the pairs of row i has the length ``steps[i]``, above 0. The new values are the derivative of
    a convex function of the biases, whose value is returned. Its gradient and Hessian are added to r and H.
    """
    rows = _row_of(start)
    step = steps[rows]
    slack = margin - F[rows, winner] - biases[winner] + F[rows, loser] + biases[loser]
    z = alpha + step * slack
    new[:] = np.clip(z, 0.0, cap)
    np.add.at(r, winner, -new)
    np.add.at(r, loser, new)
    curvature = np.where((z > 0) & (z < cap), step, 0.0)
    for a, b, sign in ((winner, winner, 1), (loser, loser, 1), (winner, loser, -1), (loser, winner, -1)):
        np.add.at(H, (a, b), sign * curvature)
    return float(np.sum(new * (z - 0.5 * new) / step))


def pair_slacks(F: Array, start: Array, winner: Array, loser: Array, margin: Array, out: Array) -> None:
    """Write the margin minus the score difference of each pair to `out`, (n_pairs,)."""
    rows = _row_of(start)
    out[:] = margin - F[rows, winner] + F[rows, loser]


def pair_products(F: Array, start: Array, winner: Array, loser: Array, curvatures: Array, R: Array) -> None:
    """Add F times the Hessian of half the sum of curvature * squared score difference to R."""
    rows = _row_of(start)
    pair_sums(start, winner, loser, curvatures * (F[rows, winner] - F[rows, loser]), -1.0, R)


def gram_blocks(data: Array, indices: Array, indptr: Array, H: Array, G: Array) -> None:
    """Add X' diag(H[:, k]) X to G[:, :, k] for every column k of H (n_rows, k), for a CSR matrix X."""
    for i in range(len(H)):
        x = data[indptr[i] : indptr[i + 1]]
        columns = indices[indptr[i] : indptr[i + 1]]
        G[np.ix_(columns, columns)] += np.multiply.outer(np.outer(x, x), H[i])


class _RowVisit:
    """The step of dual ascent on one row, from the scores of the row.

    The subproblem of a row is to minimise loss(z) + |z - centre|^2 / (2 q) over its scores z. The
    loss consists of squared hinges and of a quadratic form; see `rbrl.solvers.dual_ascent`.

    The arguments are those of :func:`dual_ascent_dense`. They are not copied, and `change` writes to Z.
    """

    def __init__(
        self, squares: Array, Y: Array, weights: Array, hinge: float, costs: Array, pairs: float, margin: float,
        graph: tuple[Array, Array, Array], ridge: float, Z: Array,
    ) -> None:  # fmt: skip
        self.squares = squares
        self.Y = Y
        self.weights = weights
        self.hinge = hinge, costs
        self.pairs = pairs, margin
        self.graph = sparse.csr_array(graph, shape=(Y.shape[1], Y.shape[1])).toarray()
        self.ridge = ridge
        self.Z = Z
        self.loss = 0.0

    def evaluate(self, i: int, z: Array) -> tuple[float, Array, Array]:
        """Return value, gradient and Hessian of the loss of row i at scores z (n_labels,): new arrays."""
        Y = self.Y[i : i + 1]
        weights = self.weights[i : i + 1]
        data = Y, z[None], weights
        # With weights of entries, the quadratic form has their mean as its weight.
        weight = np.where(Y != 0, weights, 0.0).sum() / max(np.count_nonzero(Y), 1)
        gradient = weight * (self.graph @ z)
        hessian = weight * self.graph
        value = 0.5 * float(z @ gradient)
        value += squared_hinge(*data, *self.hinge, gradient[None])[0]
        value += pairwise_hinge(*data, *self.pairs, gradient[None])[0]
        squared_hinge_labels(*data, *self.hinge, hessian)
        pairwise_hinge_labels(*data, *self.pairs, hessian)
        return value, gradient, hessian

    def minimise(self, i: int, z: Array, centre: Array, q: float) -> tuple[Array, Array]:
        """Minimise the subproblem by Newton's method from z; return its scores and the loss gradient there."""
        loss, gradient, hessian = self.evaluate(i, z)
        value = loss + np.sum((z - centre) ** 2) / (2 * q)
        first = np.linalg.norm(gradient + (z - centre) / q)
        for _ in range(50):
            residual = gradient + (z - centre) / q
            if np.linalg.norm(residual) <= ROW_ACCURACY * first:
                break
            step = np.linalg.solve(hessian + np.eye(len(z)) / q, -residual)
            length = 1.0
            for _ in range(31):
                there = z + length * step
                loss, gradient, hessian = self.evaluate(i, there)
                new = loss + np.sum((there - centre) ** 2) / (2 * q)
                if new <= value + 1e-4 * length * (step @ residual) + 1e-14 * abs(value):
                    break
                length *= 0.5
            z = there
            value = new
        return z, gradient

    def change(self, i: int, scores: Array) -> Array:
        """Maximise the dual over row i, whose scores are given; change Z[i] and `loss`.

        Return the change of the row's dual variables, divided by the ridge: (n_labels,).
        """
        q = self.squares[i] / self.ridge
        _, old, _ = self.evaluate(i, self.Z[i])
        loss, gradient, _ = self.evaluate(i, scores)
        self.loss += loss
        self.Z[i] = scores
        if q > 0:
            self.Z[i], gradient = self.minimise(i, scores, scores + q * old, q)
        return (old - gradient) / self.ridge


def dual_ascent_dense(
    X: Array, squares: Array, Y: Array, weights: Array, hinge: float, costs: Array, pairs: float, margin: float,
    graph_data: Array, graph_indices: Array, graph_indptr: Array, ridge: float, order: Array, W: Array, Z: Array,
) -> float:  # fmt: skip
    """Maximise the dual over the rows in `order`, one after the other; change W and Z.

    Return the sum of the losses of the rows when they were visited. Z has the scores whose loss
    gradients, times -1, are the dual variables. `squares` are the squares of all rows. The graph is
    the CSR matrix of a quadratic form in the scores of a row.
    """
    graph = graph_data, graph_indices, graph_indptr
    visit = _RowVisit(squares, Y, weights, hinge, costs, pairs, margin, graph, ridge, Z)
    for i in order:
        W += np.outer(X[i], visit.change(i, X[i] @ W))
    return float(visit.loss)


def dual_ascent_sparse(
    data: Array, indices: Array, indptr: Array, squares: Array, Y: Array, weights: Array, hinge: float, costs: Array,
    pairs: float, margin: float, graph_data: Array, graph_indices: Array, graph_indptr: Array, ridge: float, order: Array,
    W: Array, Z: Array,
) -> float:  # fmt: skip
    """Do the same as :func:`dual_ascent_dense` for the rows of a CSR matrix."""
    X = sparse.csr_array((data, indices, indptr), shape=(len(Y), len(W))).toarray()
    loss = hinge, costs, pairs, margin, graph_data, graph_indices, graph_indptr
    return dual_ascent_dense(X, squares, Y, weights, *loss, ridge, order, W, Z)


def dual_ascent_kernel(
    K: Array, scores: Array, squares: Array, Y: Array, weights: Array, hinge: float, costs: Array, pairs: float,
    margin: float, graph_data: Array, graph_indices: Array, graph_indptr: Array, ridge: float, order: Array, W: Array,
    Z: Array,
) -> float:  # fmt: skip
    """Do the same as :func:`dual_ascent_dense` for some rows of a kernel model.

    K has the kernel values of these rows with each other, and `scores` has their scores before the
    first visit. W (n_rows, n_labels) must be 0; it receives the changes of their coefficients.
    """
    graph = graph_data, graph_indices, graph_indptr
    visit = _RowVisit(squares, Y, weights, hinge, costs, pairs, margin, graph, ridge, Z)
    for i in order:
        W[i] += visit.change(i, scores[i] + K[i] @ W)
    return float(visit.loss)
