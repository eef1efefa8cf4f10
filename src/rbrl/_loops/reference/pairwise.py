"""The squared hinge of pairs of labels."""

import numpy as np


def _pairs(Y, F, margin):
    """Rows with both kinds of labels: index, relevant, irrelevant, slacks (relevant x irrelevant)."""
    for i in range(len(Y)):
        pos, neg = np.flatnonzero(Y[i] > 0), np.flatnonzero(Y[i] < 0)
        if pos.size and neg.size:
            yield i, pos, neg, np.maximum(margin - F[i, pos][:, None] + F[i, neg][None, :], 0.0)


def pairwise_hinge(Y, F, weights, scale, margin, R):
    """Add the gradient to R; return the value and the sum of weight * margin * slack."""
    value = linear = 0.0
    for i, pos, neg, slack in _pairs(Y, F, margin):
        c = scale * weights[i] / slack.size
        R[i, pos] -= c * slack.sum(axis=1)
        R[i, neg] += c * slack.sum(axis=0)
        value += 0.5 * c * np.sum(slack**2)
        linear += c * margin * slack.sum()
    return value, linear


def pairwise_hinge_diagonal(Y, F, weights, scale, margin, H):
    """Add the diagonal of the generalised Hessian to H."""
    for i, pos, neg, slack in _pairs(Y, F, margin):
        c = scale * weights[i] / slack.size
        H[i, pos] += c * (slack > 0).sum(axis=1)
        H[i, neg] += c * (slack > 0).sum(axis=0)


def pairwise_hinge_product(Y, F, D, weights, scale, margin, P):
    """Add the generalised Hessian times D to P."""
    for i, pos, neg, slack in _pairs(Y, F, margin):
        moved = scale * weights[i] / slack.size * (slack > 0) * (D[i, pos][:, None] - D[i, neg][None, :])
        P[i, pos] += moved.sum(axis=1)
        P[i, neg] -= moved.sum(axis=0)


def pairwise_hinge_labels(Y, F, weights, scale, margin, M):
    """Add the sum of the rows' generalised Hessians to M, (n_labels, n_labels)."""
    for i, pos, neg, slack in _pairs(Y, F, margin):
        active = scale * weights[i] / slack.size * (slack > 0)
        M[pos, pos] += active.sum(axis=1)
        M[neg, neg] += active.sum(axis=0)
        M[np.ix_(pos, neg)] -= active
        M[np.ix_(neg, pos)] -= active.T


def pairwise_hinge_line(Y, F, D, t, weights, scale, margin, d1, d2):
    """The loss at F + D diag(t); add its derivatives in t to d1, d2; return value and second derivative along t = 1."""
    value = joint = 0.0
    for i, pos, neg, slack in _pairs(Y, F + D * t, margin):
        c = scale * weights[i] / slack.size
        value += 0.5 * c * np.sum(slack**2)
        d1[pos] -= c * slack.sum(axis=1) * D[i, pos]
        d1[neg] += c * slack.sum(axis=0) * D[i, neg]
        d2[pos] += c * (slack > 0).sum(axis=1) * D[i, pos] ** 2
        d2[neg] += c * (slack > 0).sum(axis=0) * D[i, neg] ** 2
        joint += c * np.sum((slack > 0) * (D[i, pos][:, None] - D[i, neg][None, :]) ** 2)
    return value, joint
