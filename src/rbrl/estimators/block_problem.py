"""The problem of a linear model over rows in blocks: in files, in parts, or on the workers of a Dask cluster."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from rbrl.datasets import Columns
from rbrl.estimators.convex_problem import solver_of
from rbrl.estimators.entries import compute_label_weights, warn_of_missing_labels
from rbrl.estimators.forms import LINEAR, form_of
from rbrl.estimators.training_scores import LabelledRows, estimate_linear_parameters, take_sampled_rows
from rbrl.estimators.validation import store_columns
from rbrl.losses import ClassWeighted, Loss
from rbrl.losses.label_graph import LabelCounts
from rbrl.out_of_core import Block, Blocks, fit_blocks
from rbrl.out_of_core.design import Survey
from rbrl.scales import intercept_column
from rbrl.solvers import QuasiNewton, Solution
from rbrl.targets import SignedTargets, agreed_names

if TYPE_CHECKING:
    from rbrl.estimators.convex import ObjectiveClassifier


class BlockProblem:
    """The objective of a linear classifier over rows in blocks, which is minimised in passes over them.

    Parameters
    ----------
    model : ObjectiveClassifier
    blocks : Blocks

    Attributes
    ----------
    gamma : None
        Width of the kernel: a linear model has none.
    on_gap : callable or None
        Function that is called with every certified gap; it returns True to stop.
    """

    gamma = None
    on_gap: Callable[..., bool] | None = None
    _found: Survey
    _loss: Loss

    def __init__(self, model: "ObjectiveClassifier", blocks: Blocks) -> None:
        owner = type(model).__name__
        if not form_of(model).is_linear:
            raise ValueError(
                f"{owner} learns a linear model from rows in blocks. Got kernel={model.kernel!r}; map the features of each "
                "block first, for example with sklearn.kernel_approximation.Nystroem, and use kernel='linear'."
            )
        is_named = isinstance(model.solver, str) and model.solver in ("auto", "quasi-newton")
        if not (is_named or isinstance(model.solver, QuasiNewton)):
            raise ValueError(
                f"The solver parameter of {owner} must be 'auto' or 'quasi-newton' for rows in blocks. "
                f"Got {model.solver!r} instead."
            )
        self.model = model
        self.blocks = blocks

    @property
    def ridge(self) -> float:
        """The ridge of the model as a number."""
        ridge = self.model.ridge
        return self._found.scales.ridge() if isinstance(ridge, str) else float(ridge)

    def fit(self) -> Solution:
        """Solve the problem, and store the weights and the facts about the data in the model."""
        model, blocks = self.model, self.blocks
        started = time.perf_counter()
        seconds_before = blocks.pass_seconds
        columns = self._name_columns()
        self._found, solution = fit_blocks(
            blocks,
            lambda count_labels: self._make_loss(count_labels, columns),
            model.ridge,
            model.nuclear_,
            intercept=model.fit_intercept,
            intercept_ridge=model.intercept_ridge,
            solver=solver_of(model),
            start=LINEAR.coefficients(model) if model.warm_start else None,
            tol=model.tol,
            max_iter=model.max_iter,
            verbose=model.verbose,
            callback=self.on_gap,
        )
        self._store_facts(columns)
        LINEAR.store(model, solution.coefficients)
        in_passes = blocks.pass_seconds - seconds_before
        model.pass_seconds_ = in_passes, time.perf_counter() - started - in_passes
        return solution

    def _name_columns(self) -> Columns:
        """Return the names of the columns, with the label names that the model was given."""
        columns = self.blocks.columns or Columns()
        if self.model.label_names is None:
            return columns
        n_labels = self.blocks.apply_to_first(_count_labels)
        return replace(columns, label_names=agreed_names(self.model.label_names, columns.label_names, *n_labels))

    def _make_loss(self, count_labels: Callable[[], LabelCounts], columns: Columns) -> Loss:
        """Return the loss of the model, with its class weights."""
        model = self.model
        loss = model.loss(count_labels)
        if model.class_weight is not None:
            loss = ClassWeighted(loss, compute_label_weights(model.class_weight, count_labels(), columns.label_names))
        self._loss = loss
        return loss

    def _store_facts(self, columns: Columns) -> None:
        """Store what the first pass has found out about the data, and warn of what it has found."""
        model, found = self.model, self._found
        model.targets_ = SignedTargets.of_matrix(found.n_labels, found.low, found.label_type, found.sparse_labels)
        model.n_samples_seen_ = found.n_samples
        model.n_features_in_ = found.n_features
        model.empty_share_ = found.empty_share
        if not found.sparse_features:
            found.scales.warn_of_spread(type(model).__name__)
        vars(model).pop("feature_names_in_", None)
        store_columns(model, columns)
        warn_of_missing_labels(found.known[None], columns.label_names)

    def training_rows(self) -> LabelledRows:
        """Return the sample of the rows that was kept."""
        return take_sampled_rows(self._found)

    def loss(self) -> Loss:
        """Return the loss."""
        return self._loss

    def count_parameters(self) -> float:
        """Estimate the effective number of parameters."""
        model = self.model
        constant = intercept_column(self.ridge, model.intercept_ridge) if model.fit_intercept else 0.0
        return estimate_linear_parameters(self._found, self.ridge, constant)


def _count_labels(block: Block) -> tuple[int]:
    return (block.Y.shape[1],)
