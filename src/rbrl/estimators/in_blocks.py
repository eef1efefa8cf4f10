"""`fit` of rows in blocks: files, lists of parts, Dask arrays."""

import time
from collections.abc import Iterator, Sequence

from rbrl._common.progress import passes_for
from rbrl.datasets import Columns, Shards
from rbrl.estimators.base import column_names, is_part, remember_columns
from rbrl.rows import BlockDesign, Blocks, LocalBlocks
from rbrl.rows.design import BlockObjective
from rbrl.solvers import QuasiNewton, posed_blocks, solve_posed
from rbrl.targets import SignedTargets


class LearnsFromBlocks:
    """Mixin of classifiers with an objective: how they learn the linear model from rows in blocks."""

    def _learn_blocks(self, blocks):
        self._check_parameters()
        self._check_blocks()
        started = time.perf_counter()
        with passes_for(self.tol, self.verbose) as blocks.progress:
            design = BlockDesign(blocks, self.fit_intercept)
            found = design.found
            objective = BlockObjective(design, self._loss_of_blocks(blocks), self.ridge, self.nuclear)
            start = self._previous(found.n_features, found.n_labels) if self.warm_start else None
            start = None if start is None else design.weights(start)
            limits = {"tol": self.tol, "max_iter": self.max_iter}
            solution = solve_posed(self._solver(), objective, posed_blocks(objective), start, **limits)
        self.targets_ = SignedTargets.of_matrix(found.n_labels, found.low, found.label_type, found.sparse_labels)
        self.classes_ = self.targets_.classes_
        self.n_samples_seen_, self.n_features_in_ = found.n_samples, found.n_features
        self.__dict__.pop("feature_names_in_", None)
        remember_columns(self, blocks.columns or Columns())
        self._store_linear(found.n_features, solution.coefficients)
        self._store_solution(solution)
        self._report(time.perf_counter() - started)
        return self

    def _loss_of_blocks(self, blocks):
        """The loss for labels in blocks: :meth:`_loss`, unless it depends on them."""
        return self._loss()

    def _check_blocks(self):
        owner = type(self).__name__
        if not self._is_linear():
            raise ValueError(
                f"{owner} learns a linear model from rows in blocks. Got kernel={self.kernel!r}; map the features of each "
                "block first, for example with sklearn.kernel_approximation.Nystroem, and use kernel='linear'."
            )
        if self.solver != "auto" and not isinstance(self.solver, QuasiNewton):
            raise ValueError(
                f"The solver parameter of {owner} must be 'auto' or a QuasiNewton for rows in blocks. "
                f"Got {self.solver!r} instead."
            )


def as_blocks(X, y=None, sample_weight=None):
    """The blocks that `fit` was given, or None if these are arrays.

    Parameters
    ----------
    X : Shards, sequence of parts (X, Y), Dask array or data frame, sequence of delayed parts, or anything else
    y : Dask array or data frame, or None
    """
    if _is_dask(X):
        blocks = _dask_blocks().of_arrays(X, y)
        blocks.columns = Columns(feature_names=column_names(X), label_names=column_names(y))
    elif _is_sequence(X) and len(X) and all(_is_dask(part) for part in X):
        blocks = _dask_blocks().of_delayed(_alone(X, y))
    elif isinstance(X, Blocks):
        blocks = _alone(X, y)
    elif isinstance(X, Shards) or (_is_sequence(X) and len(X) and all(is_part(part) for part in X)):
        blocks = LocalBlocks(_alone(X, y))
        blocks.columns = X.read(0).columns if isinstance(X, Shards) and len(X) else None
    else:
        refuse_iterator(X)
        return None
    if sample_weight is not None:
        raise ValueError(
            f"sample_weight goes with arrays; for rows in {len(blocks)} blocks there is none. Repeat rows instead."
        )
    return blocks


def refuse_iterator(X):
    """Say what to do with rows that come once, given to a `fit` that passes over them again and again."""
    if isinstance(X, Iterator):
        raise ValueError(
            f"fit makes several passes over its rows, and a {type(X).__name__} gives them once: write them to files with "
            "rbrl.datasets.write_shards(batches, folder) and fit those, or call partial_fit for each batch."
        )


def _dask_blocks():
    from rbrl.rows.on_dask import DaskBlocks

    return DaskBlocks


def _alone(X, y):
    if y is not None:
        raise ValueError(f"Blocks of rows have their labels with them: pass no y. Got y of type {type(y).__name__}.")
    return X


def _is_sequence(X):
    return isinstance(X, Sequence) and not isinstance(X, str | bytes)


def _is_dask(value):
    """Without importing Dask, which may not be there."""
    return type(value).__module__.partition(".")[0] in ("dask", "distributed")
