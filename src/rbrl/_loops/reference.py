"""The loops in plain NumPy: what they mean, what the compiled ones are tested against, and what runs without these.

Hinge constraints are on pairs of labels: a pair e of row i, ``start[i] <= e < start[i + 1]``, asks that ``winner[e]``
scores ``margin[e]`` above ``loser[e]``; its dual variable ``alpha[e]`` lies between 0 and ``cap[e]``.
"""

from collections.abc import Iterator

import numpy as np

from rbrl._common.typing import Array

# Of the rows that are computed at a time: fewer cost calls, more do not fit in a cache.
MOST_PAIRS = 200_000


def _slack(Y: Array, F: Array) -> Array:
    return np.maximum(np.abs(Y) - Y * F, 0.0)


def _cost(Y: Array, weights: Array, scale: float, costs: Array) -> Array:
    return scale * (weights[:, None] if weights.ndim == 1 else weights) * np.where(Y > 0, costs, 1.0)


def squared_hinge(Y: Array, F: Array, weights: Array, scale: float, costs: Array, R: Array) -> tuple[float, float]:
    """Add the gradient to R; return the value and the sum of weight * margin * slack."""
    slack, cost = _slack(Y, F), _cost(Y, weights, scale, costs)
    R -= cost * Y * slack
    return 0.5 * float(np.sum(cost * slack**2)), float(np.sum(cost * slack))


def squared_hinge_diagonal(Y: Array, F: Array, weights: Array, scale: float, costs: Array, H: Array) -> None:
    """Add the diagonal of the generalised Hessian to H."""
    H += _cost(Y, weights, scale, costs) * (_slack(Y, F) > 0)


def squared_hinge_labels(Y: Array, F: Array, weights: Array, scale: float, costs: Array, M: Array) -> None:
    """Add the sum of the rows' generalised Hessians to M, (n_labels, n_labels)."""
    np.einsum("jj->j", M)[:] += (_cost(Y, weights, scale, costs) * (_slack(Y, F) > 0)).sum(axis=0)


def squared_hinge_line(
    Y: Array, F: Array, D: Array, t: Array, weights: Array, scale: float, costs: Array, d1: Array, d2: Array
) -> tuple[float, float]:
    """The loss at F + D diag(t); add its derivatives in t to d1, d2; return value and second derivative along t = 1."""
    slack, cost = _slack(Y, F + D * t), _cost(Y, weights, scale, costs)
    second = (cost * (slack > 0) * D**2).sum(axis=0)
    d1 -= (cost * Y * slack * D).sum(axis=0)
    d2 += second
    return 0.5 * float(np.sum(cost * slack**2)), float(second.sum())


def _pairs(
    Y: Array, F: Array, weights: Array, scale: float, margin: float
) -> Iterator[tuple[Array, Array, Array, Array, Array]]:
    """Rows with both kinds of labels, at a time those with equally many of each: their indices as a column, relevant and
    irrelevant labels, slacks and prices (rows x relevant x irrelevant).
    """
    counts = np.column_stack([(Y > 0).sum(axis=1), (Y < 0).sum(axis=1)])
    for p, q in np.unique(counts[counts.all(axis=1)], axis=0):
        alike = np.flatnonzero((counts == (p, q)).all(axis=1))
        for rows in np.array_split(alike, -(-alike.size * p * q // MOST_PAIRS)):
            i = rows[:, None]
            pos, neg = np.nonzero(Y[rows] > 0)[1].reshape(-1, p), np.nonzero(Y[rows] < 0)[1].reshape(-1, q)
            slack = np.maximum(margin - F[i, pos][:, :, None] + F[i, neg][:, None, :], 0.0)
            if weights.ndim == 1:
                price = (scale * weights[rows] / (p * q))[:, None, None]
            else:
                v, w = weights[i, pos], weights[i, neg]
                whole = scale * (v.sum(axis=1) + w.sum(axis=1)) / (p + q)
                shares = (v / v.sum(axis=1, keepdims=True))[:, :, None] * (w / w.sum(axis=1, keepdims=True))[:, None, :]
                price = whole[:, None, None] * shares
            yield i, pos, neg, slack, price


def _by_label(labels: Array, values: Array, n_labels: int) -> Array:
    """The sum of the values at each label."""
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
    """Add the generalised Hessian, its off-diagonal entries times `coupling`, times D to P; with 0 that is its diagonal."""
    for i, pos, neg, slack, price in _pairs(Y, F, weights, scale, margin):
        active, d, e = price * (slack > 0), D[i, pos][:, :, None], D[i, neg][:, None, :]
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
    """The loss at F + D diag(t); add its derivatives in t to d1, d2; return value and second derivative along t = 1."""
    value, joint, n_labels = 0.0, 0.0, len(t)
    for i, pos, neg, slack, price in _pairs(Y, F + D * t, weights, scale, margin):
        pulls, active, d, e = price * slack, price * (slack > 0), D[i, pos], D[i, neg]
        value += 0.5 * np.sum(pulls * slack)
        d1 -= _by_label(pos, pulls.sum(axis=2) * d, n_labels)
        d1 += _by_label(neg, pulls.sum(axis=1) * e, n_labels)
        d2 += _by_label(pos, active.sum(axis=2) * d**2, n_labels)
        d2 += _by_label(neg, active.sum(axis=1) * e**2, n_labels)
        joint += np.sum(active * (d[:, :, None] - e[:, None, :]) ** 2)
    return float(value), float(joint)


def column_dots(A: Array, B: Array, joint: bool) -> Array:
    """Inner products of the columns of A and B; with `joint`, every entry is the sum of all."""
    out = np.einsum("kj,kj->j", A, B)
    return np.full_like(out, out.sum()) if joint else out


def memory_backward(q: Array, steps: Array, changes: Array, rho: Array, order: Array, joint: bool) -> Array:
    """First loop of L-BFGS, newest pair first: q is changed in place; return the coefficients."""
    coefficients = np.zeros_like(rho)
    for i in order[::-1]:
        coefficients[i] = rho[i] * column_dots(steps[i], q, joint)
        q -= changes[i] * coefficients[i]
    return coefficients


def memory_forward(
    z: Array, steps: Array, changes: Array, rho: Array, order: Array, joint: bool, coefficients: Array
) -> None:
    """Second loop of L-BFGS, oldest pair first: z is changed in place."""
    for i in order:
        z += steps[i] * (coefficients[i] - rho[i] * column_dots(changes[i], z, joint))


def clipped_dual_maximum(
    sigma: Array, linear: float, quadratic: float, reach: float, ridge: float, limit: float
) -> tuple[float, float]:
    """Largest value over theta in [0, reach] of theta linear - theta^2 quadratic - sum (theta sigma - limit)_+^2 / 2 ridge,
    and that theta.

    Newton on a concave function.
    """
    best, at, theta = 0.0, 0.0, min(1.0, reach)
    for _ in range(30):
        over2, slope, curvature = 0.0, linear - 2 * theta * quadratic, 2 * quadratic
        for s in sigma:
            over = theta * s - limit
            if over > 0:
                over2 += over * over
                slope -= s * over / ridge
                curvature += s * s / ridge
        value = theta * linear - theta * theta * quadratic - over2 / (2 * ridge)
        if value > best:
            best, at = value, theta
        if curvature <= 0:
            break
        previous = theta
        theta = min(max(theta + slope / curvature, 0.0), reach)
        if abs(theta - previous) < 1e-13 * theta:
            break
    return float(best), float(at)


def _row_of(start: Array) -> Array:
    """The row of each entry of a matrix in compressed rows, or of each pair."""
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


def sparse_product(data: Array, indices: Array, indptr: Array, W: Array, out: Array) -> None:
    """Add X @ W, for X in compressed rows; W may have further rows."""
    np.add.at(out, _row_of(indptr), data[:, None] * W[indices])


def sparse_adjoint(data: Array, indices: Array, indptr: Array, D: Array, out: Array) -> None:
    """Add X' @ D, for X in compressed rows; `out` may have further rows."""
    np.add.at(out, indices, data[:, None] * D[_row_of(indptr)])


def _ascend_row(
    pairs: Array, winner: Array, loser: Array, margin: Array, cap: Array, alpha: Array, f: Array, curvature: float,
    inner: int, moved: Array,
) -> None:  # fmt: skip
    """Coordinate steps over the pairs of one row; its scores f follow, the change of its coefficients is left in moved."""
    first, last = pairs
    moved[:] = 0.0
    if curvature <= 0.0:
        # Nothing depends on this row's coefficients: its hinges stay whole.
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
    """One sweep of dual coordinate ascent over the rows in `order`; alpha, scores (n_labels, n) and biases follow."""
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
    """One sweep of dual coordinate ascent over the CSR rows in `order`; alpha, weights W and biases follow."""
    moved = np.empty_like(biases)
    for i in order:
        x, columns = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        f = x @ W[columns] + biases
        _ascend_row(start[i : i + 2], winner, loser, margin, cap, alpha, f, norms[i] + lift, inner, moved)
        biases += lift * moved
        W[columns] += np.outer(x, moved)


def pair_hinge(F: Array, start: Array, winner: Array, loser: Array, margin: Array, cap: Array) -> float:
    """Sum over the pairs of cap times hinge."""
    rows = _row_of(start)
    return float(np.sum(cap * np.maximum(margin - F[rows, winner] + F[rows, loser], 0.0)))


def pair_sums(start: Array, winner: Array, loser: Array, values: Array, sign: float, R: Array) -> None:
    """Add the values of the pairs to their winners in R, and `sign` times them to their losers."""
    rows = _row_of(start)
    np.add.at(R, (rows, winner), values)
    np.add.at(R, (rows, loser), sign * values)


def project_pairs(
    F: Array, biases: Array, start: Array, winner: Array, loser: Array, margin: Array, cap: Array, alpha: Array,
    steps: Array, new: Array, r: Array, H: Array,
) -> float:  # fmt: skip
    """Gradient steps on alpha clipped to their boxes, into `new`, with the scores shifted by the biases.

    The steps are the derivative of a convex function of the biases: its value is returned, its gradient added to r and
    its generalised Hessian to H.
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
    """What each pair lacks of its margin, into `out`."""
    rows = _row_of(start)
    out[:] = margin - F[rows, winner] + F[rows, loser]


def pair_products(F: Array, start: Array, winner: Array, loser: Array, curvatures: Array, R: Array) -> None:
    """Add to R the Hessian times F of half the sum over pairs of curvature times squared score difference."""
    rows = _row_of(start)
    pair_sums(start, winner, loser, curvatures * (F[rows, winner] - F[rows, loser]), -1.0, R)


def gram_blocks(data: Array, indices: Array, indptr: Array, H: Array, G: Array) -> None:
    """Add X' diag(h) X to G[:, :, k] for every column h of H, X a CSR matrix."""
    for i in range(len(H)):
        x, columns = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        G[np.ix_(columns, columns)] += np.multiply.outer(np.outer(x, x), H[i])


# A row's subproblem is solved until its gradient is this share of the first one.
ACCURACY = 0.01


class _Row:
    """The subproblem of a row: loss(z) + |z - centre|^2 / (2 q), for squared hinges and a quadratic form."""

    def __init__(
        self, y: Array, w: Array, of_entries: bool, hinge: float, costs: Array, pairs: float, margin: float, graph: Array
    ) -> None:
        self.y, self.margin = y, margin
        weights = np.where(y != 0, w, 0.0)
        self.form = graph * (weights.sum() / max(np.count_nonzero(y), 1))
        self.price = hinge * weights * np.where(y > 0, costs, 1.0)
        self.pos = np.flatnonzero(y > 0)
        self.neg = np.flatnonzero(y < 0)
        self.pair_price = np.zeros((len(self.pos), len(self.neg)))
        if self.pair_price.size:
            u, v = (
                (weights[self.pos], weights[self.neg])
                if of_entries
                else (np.ones(len(self.pos)), np.ones(len(self.neg)))
            )
            whole = (u.sum() + v.sum()) / (len(u) + len(v)) if of_entries else w[0]
            self.pair_price = pairs * whole * np.outer(u, v) / (u.sum() * v.sum())

    def evaluate(self, z: Array) -> tuple[float, Array, Array]:
        """Return value, gradient and Hessian of the loss."""
        slack = np.maximum(np.abs(self.y) - self.y * z, 0.0)
        pair_slack = np.maximum(self.margin - z[self.pos][:, None] + z[self.neg][None, :], 0.0)
        pulls = self.pair_price * pair_slack
        active = self.pair_price * (pair_slack > 0)
        gradient = -self.price * self.y * slack
        gradient[self.pos] -= pulls.sum(axis=1)
        gradient[self.neg] += pulls.sum(axis=0)
        hessian = np.diag(self.price * (slack > 0))
        hessian[self.pos, self.pos] += active.sum(axis=1)
        hessian[self.neg, self.neg] += active.sum(axis=0)
        hessian[np.ix_(self.pos, self.neg)] -= active
        hessian[np.ix_(self.neg, self.pos)] -= active.T
        value = 0.5 * float(self.price @ slack**2 + np.sum(pulls * pair_slack) + z @ self.form @ z)
        return value, gradient + self.form @ z, hessian + self.form

    def minimise(self, z: Array, centre: Array, q: float) -> tuple[Array, Array]:
        """Return the minimiser, by Newton's method from `z`, and the gradient of its loss."""
        loss, gradient, hessian = self.evaluate(z)
        value = loss + np.sum((z - centre) ** 2) / (2 * q)
        first = np.linalg.norm(gradient + (z - centre) / q)
        for _ in range(50):
            residual = gradient + (z - centre) / q
            if np.linalg.norm(residual) <= ACCURACY * first:
                break
            step = np.linalg.solve(hessian + np.eye(len(z)) / q, -residual)
            length = 1.0
            for _ in range(31):
                there = z + length * step
                loss, gradient, hessian = self.evaluate(there)
                new = loss + np.sum((there - centre) ** 2) / (2 * q)
                if new <= value + 1e-4 * length * (step @ residual) + 1e-14 * abs(value):
                    break
                length *= 0.5
            z, value = there, new
        return z, gradient


class _Visit:
    """Visits of rows: what dual ascent does with the scores of one row, whatever the rows are."""

    def __init__(
        self, squares: Array, Y: Array, weights: Array, hinge: float, costs: Array, pairs: float, margin: float,
        graph_data: Array, graph_indices: Array, graph_indptr: Array, ridge: float, Z: Array,
    ) -> None:  # fmt: skip
        graph = _dense(graph_data, graph_indices, graph_indptr, (Y.shape[1], Y.shape[1]))
        self.squares, self.Y, self.weights, self.ridge, self.Z = squares, Y, weights, ridge, Z
        self.terms = hinge, costs, pairs, margin, graph
        self.loss = 0.0

    def change(self, i: int, scores: Array) -> Array:
        """Maximise the dual over row i, and return the change of its dual variables, divided by the ridge."""
        w = self.weights[i] if self.weights.ndim == 2 else np.full(self.Y.shape[1], self.weights[i])
        row = _Row(self.Y[i].astype(float), w, self.weights.ndim == 2, *self.terms)
        q = self.squares[i] / self.ridge
        _, old, _ = row.evaluate(self.Z[i])
        loss, gradient, _ = row.evaluate(scores)
        self.loss += loss
        self.Z[i] = scores
        if q > 0:
            self.Z[i], gradient = row.minimise(scores, scores + q * old, q)
        return (old - gradient) / self.ridge


def _dense(data: Array, indices: Array, indptr: Array, shape: tuple[int, int]) -> Array:
    """Return a CSR matrix as a dense one."""
    X = np.zeros(shape)
    np.add.at(X, (_row_of(indptr), indices), data)
    return X


def dual_ascent_dense(
    X: Array, squares: Array, Y: Array, weights: Array, hinge: float, costs: Array, pairs: float, margin: float,
    graph_data: Array, graph_indices: Array, graph_indptr: Array, ridge: float, order: Array, W: Array, Z: Array,
) -> float:  # fmt: skip
    """Maximise the dual over one row after the other; return the sum of the rows' losses when they were visited.

    Z has the scores whose loss gradients, times -1, are the dual variables. It changes, and W with it. The graph is the
    CSR matrix of a quadratic form in the scores of a row.
    """
    graph = graph_data, graph_indices, graph_indptr
    visit = _Visit(squares, Y, weights, hinge, costs, pairs, margin, *graph, ridge, Z)
    for i in order:
        W += np.outer(X[i], visit.change(i, X[i] @ W))
    return float(visit.loss)


def dual_ascent_sparse(
    data: Array, indices: Array, indptr: Array, squares: Array, Y: Array, weights: Array, hinge: float, costs: Array,
    pairs: float, margin: float, graph_data: Array, graph_indices: Array, graph_indptr: Array, ridge: float, order: Array,
    W: Array, Z: Array,
) -> float:  # fmt: skip
    """Do the same for the rows of a sparse matrix."""
    X = _dense(data, indices, indptr, (len(Y), len(W)))
    graph = graph_data, graph_indices, graph_indptr
    return dual_ascent_dense(X, squares, Y, weights, hinge, costs, pairs, margin, *graph, ridge, order, W, Z)


def dual_ascent_kernel(
    K: Array, scores: Array, squares: Array, Y: Array, weights: Array, hinge: float, costs: Array, pairs: float,
    margin: float, graph_data: Array, graph_indices: Array, graph_indptr: Array, ridge: float, order: Array, W: Array,
    Z: Array,
) -> float:  # fmt: skip
    """Do the same for some rows of a kernel model; W has the changes of their coefficients.

    K has the kernel values of these rows with each other, and `scores` their scores before the first of them is visited.
    """
    graph = graph_data, graph_indices, graph_indptr
    visit = _Visit(squares, Y, weights, hinge, costs, pairs, margin, *graph, ridge, Z)
    for i in order:
        W[i] += visit.change(i, scores[i] + K[i] @ W)
    return float(visit.loss)
