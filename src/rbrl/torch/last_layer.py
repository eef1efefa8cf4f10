"""The last layer of a network: RBRL's linear model of the features below it, solved with a certificate."""

from __future__ import annotations  # the reference is built where PyTorch is not installed

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from rbrl._common.checks import check_number
from rbrl._common.frames import as_dense
from rbrl._common.typing import Array, ArrayLike, FloatArray
from rbrl.datasets import Shards, write_shards
from rbrl.estimators import RBRLClassifier
from rbrl.scales import InterceptStrength, Strength, intercept_column
from rbrl.solvers.certificate import relative_gap
from rbrl.torch.loss import RBRLLoss, nuclear_norm

# Features or scores of this many entries at a time, where an objective is computed for all rows: 32 MB.
SLICE_CELLS = 2**22


class _Rows(NamedTuple):
    """Some rows below the last layer: features, labels as the user codes them, and weights of rows or entries."""

    X: FloatArray
    Y: Array
    weights: FloatArray | None = None


class RBRLHead(nn.Linear):
    r"""A linear layer that is RBRL's linear model: it knows its penalties, and its optimum.

    Train it with :class:`RBRLLoss` on top like any other layer, with :meth:`penalty` beside the sum of the loss over all
    rows; :meth:`refit` then solves for its weights, given the features below it.

    Parameters
    ----------
    in_features, n_labels : int
    ridge : float or "auto", default="auto"
        :math:`\lambda_1`. "auto" follows from the features, as in :class:`rbrl.RBRLClassifier`: only :meth:`refit` knows
        it, and leaves it in `ridge_`.
    ranking, nuclear : float, default=1.0, 0.1
        :math:`\lambda_2` and :math:`\lambda_3`.
    bias : bool, default=True
    intercept_ridge : float, "ridge" or None, default=1.0
        Penalty of the bias, as in :class:`rbrl.RBRLClassifier`.
    device, dtype
        Of the parameters.

    Attributes
    ----------
    gap_ : float
        After :meth:`refit`: certified upper bound on the relative distance of `objective_` from its optimum, for the
        weights as this layer holds them.
    objective_, objective_before_ : float
        After and before :meth:`refit`.
    ridge_ : float
        `ridge` as a number.
    rank_, n_iter_ : int
        As of :class:`rbrl.RBRLClassifier`.

    Examples
    --------
    >>> import torch
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl.torch import RBRLHead
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
        r"""What RBRL adds to the sum of the loss over all rows, bias included.

        .. math:: \tfrac{\lambda_1}{2} \|W\|_F^2 + \lambda_3 \|W\|_*

        With the mean over the rows in place of the sum, add this divided by the number of all rows.

        Returns
        -------
        tensor
            A number, with a gradient.
        """
        return self._penalty(self.weight, self.bias)

    def _penalty(self, weight: Tensor, bias: Tensor | None) -> Tensor:
        ridge = getattr(self, "ridge_", self.ridge)
        if isinstance(ridge, str):
            raise ValueError(
                f"The penalty of RBRLHead needs a ridge that is a number. Got ridge={ridge!r}, which follows from "
                "the features: name a number, or call refit first."
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
        features : tensor or array (n_samples, in_features); or :class:`rbrl.datasets.Shards`, which have their labels
        Y : tensor or array (n_samples, n_labels)
            0/1 or -1/+1; NaN where nobody looked.
        weights : tensor or array (n_samples,) or (n_samples, n_labels), default=None
            Of rows or entries.
        tol : float, default=1e-4
            Stop when the objective is certified to be within this share of its optimum.
        max_iter : int, default=1000

        Returns
        -------
        self
        """
        if isinstance(features, Shards):
            return self._solve(features, tol, max_iter)
        if Y is None:
            raise ValueError("refit needs labels Y beside the features. Got Y=None, which only Shards may leave out.")
        dtype = _numpy_type(self.weight)
        rows = _Rows(_array(features, dtype), _array(Y), None if weights is None else _array(weights, np.float64))
        return self._solve(rows, tol, max_iter)

    def _solve(self, rows: _Rows | Shards, tol: float, max_iter: int) -> Self:
        dtype = _numpy_type(self.weight)
        model = RBRLClassifier(
            ridge=self.ridge, ranking=self.ranking, nuclear=self.nuclear, fit_intercept=self.bias is not None,
            intercept_ridge=self.intercept_ridge, tol=tol, max_iter=max_iter,
        )  # fmt: skip
        self._check_shapes(rows)
        model.fit(rows) if isinstance(rows, Shards) else model.fit(rows.X, rows.Y, sample_weight=rows.weights)
        self.ridge_ = model.ridge_
        self.objective_before_ = self._objective(rows)
        with torch.no_grad():
            self.weight.copy_(torch.from_numpy(model.coef_.astype(dtype)))
            if self.bias is not None:
                self.bias.copy_(torch.from_numpy(model.intercept_.astype(dtype)))
        # The bound is on the optimum; the value is that of the weights as they were rounded to the type of this layer.
        self.objective_ = self._objective(rows)
        self.gap_ = relative_gap(self.objective_, model.objective_ / (1 + model.gap_))
        self.rank_, self.n_iter_ = model.rank_, model.n_iter_
        return self

    def _check_shapes(self, rows: _Rows | Shards) -> None:
        X, Y = rows[0] if isinstance(rows, Shards) else (rows.X, rows.Y)
        wanted, found = (self.in_features, self.out_features), (X.shape[1:], Y.shape[1:])
        if found != tuple((n,) for n in wanted):
            raise ValueError(
                f"This RBRLHead has {wanted[0]} features and {wanted[1]} labels. Got features of shape {X.shape} and labels "
                f"of shape {Y.shape}."
            )

    def _objective(self, rows: _Rows | Shards) -> float:
        """Of these weights, over all rows, in float64."""
        W, b = (None if part is None else part.detach().double().cpu() for part in (self.weight, self.bias))
        loss, total = RBRLLoss(self.ranking, reduction="sum"), float(self._penalty(W, b))
        step = max(1, SLICE_CELLS // max(self.in_features, self.out_features))
        for X, Y, weights in (_Rows(*part) for part in (rows if isinstance(rows, Shards) else [rows])):
            for start in range(0, X.shape[0], step):
                some = slice(start, start + step)
                # Copies: rows of a file may not be written to, of which PyTorch warns.
                features, targets = torch.tensor(_array(X[some], np.float64)), torch.tensor(_array(Y[some]))
                of_some = None if weights is None else torch.tensor(weights[some])
                total += loss(nn.functional.linear(features, W, b), targets, of_some).item()
        return total

    def extra_repr(self) -> str:
        """The parameters, as `repr` shows them."""
        return f"{super().extra_repr()}, ridge={self.ridge!r}, ranking={self.ranking}, nuclear={self.nuclear}"


def _array(values: Any, dtype: Any = None) -> Array:
    """A dense array of a tensor, an array-like or a sparse matrix."""
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    return np.asarray(as_dense(values), dtype=dtype)


def _numpy_type(weight: Tensor) -> type[np.floating[Any]]:
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
    """Solve for the weights of a model's last layer, with everything below it as it is, and put them into the model.

    The data pass through the model once, in evaluation mode and without gradients; what reaches the last layer is kept in
    memory, or in files.

    Parameters
    ----------
    model : Module
    loader : iterable of (inputs, targets) or (inputs, targets, weights)
        Such as a `DataLoader`, in any order, every row once. Inputs are a tensor, or a tuple or dict of arguments of the
        model; targets and weights are as for :class:`RBRLLoss`.
    layer : Linear, default=None
        The last layer: an :class:`RBRLHead`, or any linear layer. None: the last linear layer of the model, whose output
        must be that of the model.
    ridge, ranking, nuclear : float, default=None
        As of :class:`RBRLHead`, and with its defaults, for a layer that is none; a head has its own.
    tol, max_iter
        As of :meth:`RBRLHead.refit`.
    max_memory : float, default=2**30
        Bytes of features and targets to keep in memory; what needs more is written to files, and the solver passes over
        those.
    folder : path, default=None
        Where to make the folder of these files, which is removed afterwards. None: where the system has temporary files.

    Returns
    -------
    RBRLHead
        The layer itself, or one that shares its parameters; with `gap_`, `objective_before_` and `objective_`.

    Examples
    --------
    >>> import torch
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from rbrl.torch import refit_last_layer
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=4, random_state=0)
    >>> X, Y = torch.tensor(X, dtype=torch.float32), torch.tensor(Y)
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    >>> head = refit_last_layer(model, zip(X.split(20), Y.split(20)), ridge=1.0)
    >>> head.gap_ <= 1e-4, head.weight is model[2].weight
    (True, True)
    """
    given = {"ridge": ridge, "ranking": ranking, "nuclear": nuclear}
    given = {name: value for name, value in given.items() if value is not None}
    last = _last_linear(model) if layer is None else layer
    head = _as_head(last, given)
    parts = _passed(model, last, loader, must_be_output=layer is None)
    kept, size = [], 0
    for rows in parts:
        kept.append(rows)
        size += sum(part.nbytes for part in rows if part is not None)
        if size > max_memory:
            break
    if not kept:
        raise ValueError("The loader gave no batch: there is nothing to learn from. An iterator can be used only once.")
    if size <= max_memory:
        return head._solve(_stacked(kept), tol, max_iter)
    with TemporaryDirectory(prefix="rbrl-features-", dir=folder) as place:
        # A quarter of what may be in memory: a file is read beside what the solver keeps.
        rows_per_shard = max(1, sum(len(rows.X) for rows in kept) // 4)
        return head._solve(write_shards(_unweighted(kept, parts), place, rows_per_shard), tol, max_iter)


def _last_linear(model: nn.Module) -> nn.Linear:
    found = [module for module in model.modules() if isinstance(module, nn.Linear)]
    if not found:
        raise ValueError(f"The model must have a linear layer. Got a {type(model).__name__} without any.")
    return found[-1]


def _as_head(layer: nn.Linear, given: dict[str, Any]) -> RBRLHead:
    if isinstance(layer, RBRLHead):
        if given:
            raise ValueError(
                f"The last layer is an RBRLHead with parameters of its own. Got {given} beside it; set them there."
            )
        return layer
    head = RBRLHead(layer.in_features, layer.out_features, **given, bias=layer.bias is not None, device="meta")
    head.weight, head.bias = layer.weight, layer.bias
    return head


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Without gradients, dropout and running statistics; each module is as it was afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training


def _passed(model: nn.Module, layer: nn.Linear, loader: Iterable[Any], must_be_output: bool) -> Iterator[_Rows]:
    """What reaches the layer from each batch, with its targets and weights."""
    dtype, seen = _numpy_type(layer.weight), []
    handle = layer.register_forward_hook(lambda _, inputs, output: seen.append((inputs[0], output)))
    try:
        for batch in loader:
            inputs, targets, *weights = batch
            with _evaluating(model):
                answer = _answer(model, inputs, layer.weight.device)
            if len(seen) != 1:
                raise ValueError(
                    f"The last layer must be used once for a batch. Got a model that used {layer} {len(seen)} times."
                )
            features, scores = seen.pop()
            if must_be_output and not (isinstance(answer, Tensor) and torch.equal(answer, scores)):
                raise ValueError(
                    f"The output of the model must be that of its last linear layer. Got another than {layer} gives; name "
                    "the layer whose outputs are the scores: refit_last_layer(model, loader, layer=...)."
                )
            X = _array(features.flatten(0, -2), dtype)
            Y = _array(targets).reshape(len(X), -1)
            # Of rows or of entries, which have the shape of the targets.
            shape = Y.shape if weights and weights[0].ndim == targets.ndim else (len(X),)
            yield _Rows(X, Y, _array(weights[0], np.float64).reshape(shape) if weights else None)
    finally:
        handle.remove()


def _answer(model: nn.Module, inputs: Any, device: Any) -> Any:
    if isinstance(inputs, Tensor):
        return model(inputs.to(device))
    if isinstance(inputs, tuple | list):
        return model(*(part.to(device) for part in inputs))
    return model(**{name: part.to(device) for name, part in inputs.items()})


def _stacked(parts: list[_Rows]) -> _Rows:
    X, Y = (np.concatenate([rows[k] for rows in parts]) for k in (0, 1))
    weights = [rows.weights for rows in parts if rows.weights is not None]
    return _Rows(X, Y, np.concatenate(weights) if weights else None)


def _unweighted(kept: list[_Rows], others: Iterable[_Rows]) -> Iterator[tuple[FloatArray, Array]]:
    """Rows for files, which have no weights; those kept are let go of."""
    for X, Y, weights in chain((kept.pop(0) for _ in range(len(kept))), others):
        if weights is not None:
            raise ValueError(
                "Rows in files have no weights, and these rows need more than max_memory. Got weights; raise max_memory, "
                "or put NaN into the targets in place of weights of 0."
            )
        yield X, Y
