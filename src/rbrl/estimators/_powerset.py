"""Label sets as classes: one multi-class learner on the combinations that the training rows have."""

import numpy as np

from rbrl.estimators._base_learners import fit_learner, probabilities


def encode_sets(relevant):
    """The distinct rows of a boolean matrix, and which of them every row is."""
    packed = np.packbits(relevant, axis=1)
    keys = np.ascontiguousarray(packed).view([("", packed.dtype)] * packed.shape[1]).ravel()
    _, first, code = np.unique(keys, return_index=True, return_inverse=True)
    return relevant[first], code


def fit_powerset(learner, inputs, relevant, weights):
    """The distinct label sets, and a learner that tells them apart (None if there is only one)."""
    sets, code = encode_sets(relevant)
    return sets, fit_learner(learner, inputs, code, weights) if len(sets) > 1 else None


def powerset_votes(sets, learner, matrix, votes):
    """Share of the vote for each label, (n_rows, n_labels).

    "hard": 1 for the labels of the predicted set; "soft": the probability of all sets that hold the label.
    """
    if learner is None:
        return np.broadcast_to(sets[0].astype(np.float64), (matrix.shape[0], sets.shape[1]))
    if votes == "hard":
        return sets[learner.predict(matrix)].astype(np.float64)
    # A sum of probabilities may end a rounding error above 1.
    return np.minimum(probabilities(learner, matrix) @ sets[learner.classes_].astype(np.float64), 1.0)
