"""RBRL in PyTorch: its loss and penalties, and a last layer that is solved with a certificate.

The loss depends only on labels and scores, so that it can be used on top of any network. The last layer of a
network is RBRL's linear model of the features below it. :func:`refit_last_layer` solves this convex problem and
certifies the distance of its solution from the optimum. This package needs the extra `torch`.
"""

from __future__ import annotations  # the documentation is built without PyTorch

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self

import numpy as np

try:
    import torch
    from torch import Tensor, nn
except ImportError as error:
    message = f"rbrl.interop.torch needs PyTorch ({error}): pip install 'rbrl[torch]'."
    raise ImportError(message) from error

from rbrl._common.checks import check_number
from rbrl._common.frames import as_dense
from rbrl._common.typing import Array, ArrayLike, FloatArray
from rbrl.datasets import Shards, write_shards
from rbrl.estimators import RBRLClassifier
from rbrl.interop.torch.loss import RBRLLoss, nuclear_norm
from rbrl.losses import Loss
from rbrl.out_of_core import Block
from rbrl.scales import InterceptStrength, Strength, intercept_column
from rbrl.solvers.certificate import relative_gap

__all__ = ["RBRLHead", "RBRLLoss", "nuclear_norm", "refit_last_layer"]


class _Rows(NamedTuple):
    """Inputs of the last layer, labels as the user codes them, and weights of rows or of entries."""

    X: FloatArray
    Y: Array
    weights: FloatArray | None = None


class RBRLHead(nn.Linear):
    r"""Linear layer that is RBRL's linear model, with its penalties and an exact solver.

    Train it with :class:`RBRLLoss` like any other layer, and add :meth:`penalty` to the sum of the loss over all
    rows. :meth:`refit` solves for its weights, given the features below it.

    Parameters
    ----------
    in_features, n_labels : int
    ridge : float or "auto", default="auto"
        Penalty :math:`\lambda_1`. "auto" is computed from the features, as in :class:`rbrl.RBRLClassifier`, when
        :meth:`refit` is called, and is stored in `ridge_`.
    ranking, nuclear : float, default=1.0, 0.1
        Weights :math:`\lambda_2` and :math:`\lambda_3`.
    bias : bool, default=True
        True if the layer has a bias.
    intercept_ridge : float, "ridge" or None, default=1.0
        Penalty of the bias; see :class:`rbrl.RBRLClassifier`.
    device, dtype
        Device and type of the parameters.

    Attributes
    ----------
    gap_ : float
        Certified bound on the relative distance of `objective_` from its optimum, for the rounded weights of
        this layer. :meth:`refit` sets this attribute and the following ones.
    objective_, objective_before_ : float
        Objective after and before :meth:`refit`.
    ridge_ : float
        Value of `ridge` that was used.
    rank_, n_iter_ : int
        Rank of the weights and number of iterations.

    Examples
    --------
    >>> import torch
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl.interop.torch import RBRLHead
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> head = RBRLHead(8, 4, dtype=torch.float64).refit(torch.from_numpy(X), Y)
    >>> head.gap_ <= 1e-4, head.objective_ < head.objective_before_
    (True, True)
    """

    def __init__(
        self, in_features: int, n_labels: int, ridge: Strength = "auto", ranking: float = 1.0, nuclear: float = 0.1, *,
        bias: bool = True, intercept_ridge: InterceptStrength = 1.0, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(in_features, n_labels, bias=bias, device=device, dtype=dtype)
        self.ridge = check_number("RBRLHead", "ridge", ridge, words=("auto",))
        self.ranking = check_number("RBRLHead", "ranking", ranking)
        self.nuclear = check_number("RBRLHead", "nuclear", nuclear)
        self.intercept_ridge = check_number(
            "RBRLHead", "intercept_ridge", intercept_ridge, strict=True, words=("ridge", None)
        )

    def penalty(self) -> Tensor:
        r"""Return the penalty of the weights and the bias, which RBRL adds to the sum of the loss over all rows.

        .. math:: \tfrac{\lambda_1}{2} \|W\|_F^2 + \lambda_3 \|W\|_*

        If the loss is a mean over the rows, divide the penalty by the number of all rows.

        Returns
        -------
        tensor
            Scalar with a gradient.
        """
        return self._penalty(self.weight, self.bias)

    def _penalty(self, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Return the penalties on W, whose last column is the bias, scaled so that its ridge is `intercept_ridge`."""
        ridge = getattr(self, "ridge_", self.ridge)
        if isinstance(ridge, str):
            raise ValueError(
                f"The penalty of RBRLHead needs a ridge that is a number. Got ridge={ridge!r}, which is computed from "
                "the features: pass a number, or call refit first."
            )
        W = weight
        if bias is not None:
            W = torch.cat([weight, bias[:, None] / intercept_column(ridge, self.intercept_ridge)], dim=1)
        square = 0.5 * ridge * (W**2).sum()
        return square + self.nuclear * nuclear_norm(W) if self.nuclear else square

    def refit(
        self, features: Tensor | ArrayLike | Shards, Y: Tensor | ArrayLike | None = None,
        weights: Tensor | ArrayLike | None = None, *, tol: float = 1e-4, max_iter: int = 1000,
    ) -> Self:  # fmt: skip
        """Solve for weights and bias, given the features below this layer.

        Parameters
        ----------
        features : tensor or array (n_samples, in_features), or :class:`rbrl.datasets.Shards`
            Inputs of the layer. Shards contain their labels.
        Y : tensor or array (n_samples, n_labels)
            Labels in 0/1 or -1/+1; NaN is a missing label.
        weights : tensor or array (n_samples,) or (n_samples, n_labels), default=None
            Weights of rows or of entries.
        tol : float, default=1e-4
            Certified relative gap at which the solver stops.
        max_iter : int, default=1000
            Largest number of iterations.

        Returns
        -------
        self
        """
        if isinstance(features, Shards):
            return self._solve(features, tol, max_iter)
        if Y is None:
            raise ValueError(
                "refit needs the labels Y as well as the features. Got Y=None; Y may be left out only with Shards."
            )
        dtype = _numpy_type(self.weight)
        rows = _Rows(_array(features, dtype), _array(Y), None if weights is None else _array(weights, np.float64))
        return self._solve(rows, tol, max_iter)

    def _solve(self, rows: _Rows | Shards, tol: float, max_iter: int) -> Self:
        """Fit RBRL to the rows, and copy its weights, its certificate and its facts into this layer."""
        dtype = _numpy_type(self.weight)
        model = RBRLClassifier(
            ridge=self.ridge, ranking=self.ranking, nuclear=self.nuclear, fit_intercept=self.bias is not None,
            intercept_ridge=self.intercept_ridge, tol=tol, max_iter=max_iter,
        )  # fmt: skip
        X, Y = rows[0] if isinstance(rows, Shards) else (rows.X, rows.Y)
        if (X.shape[1:], Y.shape[1:]) != ((self.in_features,), (self.out_features,)):
            raise ValueError(
                f"This RBRLHead has {self.in_features} features and {self.out_features} labels. Got features of shape "
                f"{X.shape} and labels of shape {Y.shape}."
            )
        model.fit(rows) if isinstance(rows, Shards) else model.fit(rows.X, rows.Y, sample_weight=rows.weights)
        self.ridge_ = model.ridge_
        self.objective_before_ = self._objective(rows, model.loss())
        with torch.no_grad():
            self.weight.copy_(torch.from_numpy(model.coef_.astype(dtype)))
            if self.bias is not None:
                self.bias.copy_(torch.from_numpy(model.intercept_.astype(dtype)))
        # The gap compares the lower bound on the optimum with the objective of the rounded weights of this layer.
        self.objective_ = self._objective(rows, model.loss())
        self.gap_ = relative_gap(self.objective_, model.objective_ / (1 + model.gap_))
        self.rank_ = model.rank_
        self.n_iter_ = model.n_iter_
        return self

    def _objective(self, rows: _Rows | Shards, loss: Loss) -> float:
        """Return the objective of the current weights over all rows, in float64."""
        W = self.weight.detach().double().cpu()
        b = None if self.bias is None else self.bias.detach().double().cpu()
        intercept = 0.0 if b is None else b.numpy()
        total = float(self._penalty(W, b))
        for X, Y, *weights in rows if isinstance(rows, Shards) else [rows]:
            for X_slice, labels, slice_weights in Block(X, Y, "", *weights).slices():
                total += loss.value(labels, X_slice @ W.numpy().T + intercept, slice_weights)
        return total

    def extra_repr(self) -> str:
        """Return the parameters for `repr`."""
        return f"{super().extra_repr()}, ridge={self.ridge!r}, ranking={self.ranking}, nuclear={self.nuclear}"


def _array(values: Any, dtype: Any = None) -> Array:
    """Return a tensor, an array-like or a sparse matrix as a dense array."""
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    return np.asarray(as_dense(values), dtype=dtype)


def _numpy_type(weight: Tensor) -> type[np.floating[Any]]:
    """Return the type of NumPy that a tensor of weights becomes."""
    types: dict[Any, type[np.floating[Any]]] = {torch.float32: np.float32, torch.float64: np.float64}
    if weight.dtype not in types:
        raise ValueError(
            f"A certified layer must be of float32 or float64. Got {weight.dtype}; convert the model first: model.float()."
        )
    return types[weight.dtype]


def refit_last_layer(
    model: nn.Module, loader: Iterable[Any], layer: nn.Linear | None = None, *, ridge: Strength | None = None,
    ranking: float | None = None, nuclear: float | None = None, tol: float = 1e-4, max_iter: int = 1000,
    max_memory: float = 2**30, folder: str | None = None,
) -> RBRLHead:  # fmt: skip
    """Solve for the weights of the last layer of a model, without a change of the layers below it.

    The data pass through the model once, in evaluation mode and without gradients. The inputs of the last layer
    are kept in memory or in files. The weights of the layer are replaced by the solution.

    Parameters
    ----------
    model : Module
    loader : iterable of (inputs, targets) or (inputs, targets, weights)
        Batches, such as a `DataLoader`, which contain every row once, in any order. Inputs are a tensor, or a
        tuple or dict of arguments of the model. Targets and weights are those of :class:`RBRLLoss`.
    layer : Linear, default=None
        Last layer: an :class:`RBRLHead`, or any linear layer. None uses the last linear layer of the model,
        whose output must be the output of the model.
    ridge, ranking, nuclear : float, default=None
        Parameters of :class:`RBRLHead`, with its defaults. They are not allowed if the layer is an RBRLHead,
        which has its own.
    tol, max_iter
        Parameters of :meth:`RBRLHead.refit`.
    max_memory : float, default=2**30
        Largest number of bytes of features and targets that are kept in memory. Larger data are written to
        files, over which the solver makes several passes.
    folder : path, default=None
        Folder in which a temporary folder for these files is created. None uses the temporary folder of the
        system.

    Returns
    -------
    RBRLHead
        The layer itself, or a head that shares its parameters, with `gap_`, `objective_before_` and
        `objective_`.

    Examples
    --------
    >>> import torch
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl.interop.torch import refit_last_layer
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> X, Y = torch.tensor(X, dtype=torch.float32), torch.tensor(Y)
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    >>> head = refit_last_layer(model, zip(X.split(20), Y.split(20)), ridge=1.0)
    >>> head.gap_ <= 1e-4, head.weight is model[2].weight
    (True, True)
    """
    given = {"ridge": ridge, "ranking": ranking, "nuclear": nuclear}
    given = {name: value for name, value in given.items() if value is not None}
    layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
    if not layers and layer is None:
        raise ValueError(f"The model must have a linear layer. Got a {type(model).__name__} without any.")
    last = layers[-1] if layer is None else layer
    head = _as_head(last, given)
    parts = _iterate_inputs(model, last, loader, must_be_output=layer is None)
    kept = []
    size = 0
    for rows in parts:
        kept.append(rows)
        size += sum(part.nbytes for part in rows if part is not None)
        if size > max_memory:
            break
    if not kept:
        raise ValueError("The loader must give at least one batch. Got none; an iterator can be used only once.")
    if size <= max_memory:
        X, Y = (np.concatenate([rows[k] for rows in kept]) for k in (0, 1))
        weights = [rows.weights for rows in kept if rows.weights is not None]
        return head._solve(_Rows(X, Y, np.concatenate(weights) if weights else None), tol, max_iter)
    with TemporaryDirectory(prefix="rbrl-features-", dir=folder) as temporary:
        # A file takes a quarter of the memory, because the solver needs memory beside it.
        rows_per_shard = max(1, sum(len(rows.X) for rows in kept) // 4)
        return head._solve(write_shards(_drop_weights(kept, parts), temporary, rows_per_shard), tol, max_iter)


def _as_head(layer: nn.Linear, given: dict[str, Any]) -> RBRLHead:
    """Return the layer itself, or an RBRLHead with the given parameters that shares the weights of the layer."""
    if isinstance(layer, RBRLHead):
        if given:
            raise ValueError(
                f"The last layer is an RBRLHead, which has its own parameters. Got {given}; set them in the RBRLHead."
            )
        return layer
    head = RBRLHead(layer.in_features, layer.out_features, **given, bias=layer.bias is not None, device="meta")
    head.weight = layer.weight
    head.bias = layer.bias
    return head


@contextmanager
def _evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Switch off gradients, dropout and updates of statistics for a while."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training


def _iterate_inputs(model: nn.Module, layer: nn.Linear, loader: Iterable[Any], must_be_output: bool) -> Iterator[_Rows]:
    """Yield the inputs of the layer for each batch, with its targets and weights."""
    dtype = _numpy_type(layer.weight)
    calls: list[tuple[Tensor, Tensor]] = []
    handle = layer.register_forward_hook(lambda _, inputs, output: calls.append((inputs[0], output)))
    try:
        for batch in loader:
            inputs, targets, *weights = batch
            with _evaluation_mode(model):
                output = _call(model, inputs, layer.weight.device)
            if len(calls) != 1:
                raise ValueError(
                    f"The last layer must be used once for a batch. Got a model that used {layer} {len(calls)} times."
                )
            features, scores = calls.pop()
            if must_be_output and not (isinstance(output, Tensor) and torch.equal(output, scores)):
                raise ValueError(
                    f"The output of the model must be that of its last linear layer. It differs from the output of "
                    f"{layer}; name the layer that computes the scores: refit_last_layer(model, loader, layer=...)."
                )
            X = _array(features.flatten(0, -2), dtype)
            Y = _array(targets).reshape(len(X), -1)
            # Weights of entries have the shape of the targets.
            shape = Y.shape if weights and weights[0].ndim == targets.ndim else (len(X),)
            yield _Rows(X, Y, _array(weights[0], np.float64).reshape(shape) if weights else None)
    finally:
        handle.remove()


def _call(model: nn.Module, inputs: Any, device: Any) -> Any:
    """Return the output of the model for a tensor, a sequence or a dict of inputs."""
    if isinstance(inputs, Tensor):
        return model(inputs.to(device))
    if isinstance(inputs, tuple | list):
        return model(*(part.to(device) for part in inputs))
    return model(**{name: part.to(device) for name, part in inputs.items()})


def _drop_weights(kept: list[_Rows], others: Iterable[_Rows]) -> Iterator[tuple[FloatArray, Array]]:
    """Yield features and labels for files; raise ValueError if rows have weights. The list `kept` is emptied."""
    for X, Y, weights in chain((kept.pop(0) for _ in range(len(kept))), others):
        if weights is not None:
            raise ValueError(
                "Rows with weights must fit in max_memory, because files cannot store weights. Got weights and more rows; "
                "raise max_memory, or use NaN in the targets in place of weights of 0."
            )
        yield X, Y
