r"""Unpenalised biases: dual variables of the pairs made to meet the biases' equality constraints.

A bias without a penalty demands of the dual variables that every label wins as much as it loses, summed over the rows. The
nearest point of the box to a gradient step that does so is found through the biases themselves: they are the multipliers of
the constraints, and minimise a convex function, piecewise quadratic, of as many variables as there are labels.
"""

import numpy as np

from rbrl._loops import pairs as loops

# What rounding leaves of a sum of dual variables, relative to it.
ROUNDING = 1e-13
# No bias moves further than this and the largest score in one Newton step.
LONGEST_MOVE = 4.0


def balance(pairs, F, biases, alpha, steps, max_iter=200):
    """Gradient step on `alpha`, projected onto box and equality constraints.

    Parameters
    ----------
    pairs : HingePairs
    F : array (n_samples, n_labels)
        Scores without biases.
    biases : array (n_labels,)
        Where the search for the biases starts.
    steps : array (n_samples,)
        Length of the gradient step on each row's dual variables.

    Returns
    -------
    alpha, biases : arrays
    imbalance : float
        Largest violation of an equality constraint; `inf` if it is more than rounding explains.
    """
    alpha, new = np.ascontiguousarray(alpha), np.empty_like(alpha)
    reach = LONGEST_MOVE + float(np.max(np.abs(F), initial=0.0))

    def at(b):
        r, H = np.zeros(len(b)), np.zeros((len(b), len(b)))
        return loops.project_pairs(F, b, *pairs.arrays, alpha, steps, new, r, H), r, H

    value, r, H = at(biases)
    for _ in range(max_iter):
        if np.abs(r).max() <= ROUNDING * new.sum():
            break
        d = _direction(r, H, reach)
        t = 1.0
        while t > 1e-12:
            trial = at(biases + t * d)
            if trial[0] <= value + 1e-4 * t * (r @ d) or _is_nearer(trial, value, r):
                break
            t *= 0.5
        biases, (value, r, H) = biases + t * d, trial
    at(biases)
    imbalance = float(np.abs(r).max())
    return new, biases - biases.mean(), imbalance if imbalance <= 100 * ROUNDING * new.sum() else np.inf


def _is_nearer(trial, value, r):
    """Whether the violation halves where rounding hides how the function moves; elsewhere steps could go in circles."""
    return trial[0] <= value + ROUNDING * abs(value) and np.abs(trial[1]).max() < 0.5 * np.abs(r).max()


def _direction(r, H, reach):
    """A Newton step, cut to `reach`: labels whose pairs are all at a bound have no curvature to hold them."""
    scale = np.trace(H) / len(r)
    floor = 1e-10 * scale + 1e-3 * float(np.abs(r).max()) * (scale == 0) + 1e-300
    d = -np.linalg.solve(H + floor * np.eye(len(r)), r)
    d -= d.mean()
    cut = np.clip(d, -reach, reach)
    return cut if cut @ r < 0 else d * min(1.0, reach / np.abs(d).max())
