"""RBRL's loss and its nuclear norm, as PyTorch differentiates them."""

from __future__ import annotations  # the reference is built where PyTorch is not installed

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from rbrl._common.checks import check_choice, check_number
from rbrl.exceptions import InvalidLabelsError


class _PairHinges(torch.autograd.Function):
    r"""Half of :math:`\sum_{pq} a_p b_q |c - (f_p - f_q)|_+^2` in every row, and its gradient in the scores.

    On the line where relevant scores stand at :math:`f_p` and irrelevant ones at :math:`f_q + c`, the slack of a pair is how
    far the irrelevant one is to the right. From left to right, the sum of the slacks to everything passed grows by the step
    times the prices passed, and that of their squares by the step times the sums of slacks before and after it: prefix sums
    over one sort, of terms that are never negative, so that no digits cancel.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, relevant: Tensor, irrelevant: Tensor, margin: float) -> tuple[Tensor, Tensor]:
        places, order = torch.where(irrelevant > 0, scores + margin, scores).sort(dim=-1)
        a, b = relevant.gather(-1, order), irrelevant.gather(-1, order)
        steps = places.diff(dim=-1)
        behind = _running(steps * a.cumsum(-1)[..., :-1])
        ahead = _running((steps * _from_right(b)[..., 1:]).flip(-1)).flip(-1)
        squares = _running(steps * (behind[..., :-1] + behind[..., 1:]))
        pulls = torch.empty_like(scores).scatter_(-1, order, b * behind - a * ahead)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(order, a, b, pulls)
        return 0.5 * (b * squares).sum(-1), pulls

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, None, None, None]:
        of_values, of_pulls = gradients
        order, a, b, pulls = ctx.saved_tensors
        parts = [] if of_values is None else [of_values[..., None] * pulls]
        if of_pulls is not None:
            # The Hessian of a row: every pair with a slack pulls its two scores together.
            d = of_pulls.gather(-1, order)
            right = b * (d * a.cumsum(-1) - (a * d).cumsum(-1))
            left = a * (d * _from_right(b) - _from_right(b * d))
            parts.append(torch.empty_like(d).scatter(-1, order, left + right))
        return sum(parts) if parts else None, None, None, None


def _running(terms: Tensor) -> Tensor:
    """Sums of the terms before each place, 0 at the first."""
    return nn.functional.pad(terms.cumsum(-1), (1, 0))


def _from_right(values: Tensor) -> Tensor:
    """Sums from each place to the last."""
    return values.flip(-1).cumsum(-1).flip(-1)


class RBRLLoss(nn.Module):
    r"""RBRL's loss of labels and scores, of a batch: every label on its side of 0, relevant ones above irrelevant ones.

    .. math:: \tfrac12 \sum_{ij} |1 - y_{ij} f_{ij}|_+^2 + \lambda_2\, \tfrac12 \sum_i \tfrac{1}{|Y_i^+||Y_i^-|}
              \sum_{p \in Y_i^+,\, q \in Y_i^-} |c - (f_{ip} - f_{iq})|_+^2

    It equals :class:`rbrl.losses.SquaredHinge` plus `ranking` times :class:`rbrl.losses.PairwiseSquaredHinge`. Pairs are
    never formed: one sort of each row gives their sums, in time l log l and memory linear in the scores. It is computed in
    float64, whatever the scores are, and differentiable twice where it is at all.

    Parameters
    ----------
    ranking : float, default=1.0
        :math:`\lambda_2`; 0 leaves the pairs out.
    margin : float, default=2.0
        c, by which a relevant score should be above an irrelevant one.
    reduction : {"mean", "sum", "none"}, default="mean"
        Mean over the rows, whatever they weigh; their sum, which is what the library minimises; or a loss per row.

    Examples
    --------
    >>> import torch
    >>> from rbrl.torch import RBRLLoss
    >>> scores, targets = torch.tensor([[0.5, 0.0]], requires_grad=True), torch.tensor([[1, 0]])
    >>> loss = RBRLLoss(reduction="sum")(scores, targets)
    >>> loss.backward()
    >>> loss.item(), scores.grad
    (1.75, tensor([[-2.0000,  2.5000]]))
    """

    def __init__(
        self, ranking: float = 1.0, margin: float = 2.0, reduction: Literal["mean", "sum", "none"] = "mean"
    ) -> None:
        super().__init__()
        self.ranking = check_number("RBRLLoss", "ranking", ranking)
        self.margin = check_number("RBRLLoss", "margin", margin)
        self.reduction = check_choice("RBRLLoss", "reduction", reduction, ("mean", "sum", "none"))

    def forward(self, scores: Tensor, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        """The loss of a batch.

        Parameters
        ----------
        scores : tensor (..., n_labels)
            What is before the last dimension are rows.
        targets : tensor (..., n_labels)
            0/1, -1/+1 or bool, as in `fit`; NaN where nobody looked at a label. A batch with both 0 and -1 is refused.
        weights : tensor (...) of the rows or (..., n_labels) of the entries, default=None
            As `sample_weight` of `fit`: an entry of weight 0 is in no hinge and in no pair. They have no gradient.

        Returns
        -------
        tensor, of the type of the scores
            A number, or with ``reduction="none"`` one for each row.
        """
        relevant, counts = _entries(scores, targets, weights)
        f, y = scores.double(), relevant.double().mul(2).sub(1)
        rows = 0.5 * (counts * (1 - y * f).clamp(min=0) ** 2).sum(-1)
        if self.ranking and scores.shape[-1] > 1:
            prices = _pair_prices(relevant, counts)
            rows = rows + self.ranking * _PairHinges.apply(f, *prices, float(self.margin))[0]
        reduced = rows if self.reduction == "none" else getattr(rows, self.reduction)()
        return reduced.to(scores.dtype)

    def extra_repr(self) -> str:
        """The parameters, as `repr` shows them."""
        return f"ranking={self.ranking}, margin={self.margin}, reduction={self.reduction!r}"


def _entries(scores: Tensor, targets: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """Whether each entry is relevant, and what it counts: 0 where nobody looked."""
    if targets.shape != scores.shape:
        raise ValueError(
            f"targets must have the shape of the scores, {tuple(scores.shape)}. Got {tuple(targets.shape)}."
        )
    relevant = targets > 0
    counts = (~targets.isnan()).double()
    _check_coding(targets)
    if weights is None:
        return relevant, counts
    if weights.requires_grad:
        raise ValueError("weights must be constants. Got a tensor that requires a gradient; give weights.detach().")
    if weights.shape not in (scores.shape, scores.shape[:-1]):
        raise ValueError(
            f"weights must have the shape {tuple(scores.shape[:-1])}, of rows, or {tuple(scores.shape)}, of entries. "
            f"Got {tuple(weights.shape)}."
        )
    if not ((weights >= 0) & weights.isfinite()).all():
        raise ValueError(f"weights must be finite and >= 0. Got values from {weights.min()} to {weights.max()}.")
    return relevant, counts * (weights if weights.shape == scores.shape else weights[..., None])


def _check_coding(targets: Tensor) -> None:
    if targets.dtype == torch.bool:
        return
    for low in (0, -1):
        strange = ~((targets == low) | (targets == 1) | targets.isnan())
        if not strange.any():
            return
    values = ", ".join(f"{value:g}" for value in targets[~targets.isnan()].unique()[:6].tolist())
    raise InvalidLabelsError(
        f"targets must hold 0/1 or -1/+1, and NaN where nobody looked. Got the values {values}; a label that nobody looked "
        "at is NaN, or has the weight 0, and is not coded as 0 beside -1/+1."
    )


def _pair_prices(relevant: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """What relevant and irrelevant entries bring into the price of their pairs, which is the product; 0 for the others."""
    sides = [torch.where(side, counts, 0.0) for side in (relevant, ~relevant)]
    sums = [side.sum(-1, keepdim=True) for side in sides]
    a, b = (side / torch.where(total > 0, total, 1.0) for side, total in zip(sides, sums))
    mean = (sums[0] + sums[1]) / (counts > 0).sum(-1, keepdim=True).clamp(min=1)
    return mean * a, b


class _NuclearNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor) -> Tensor:
        U, sigma, Vt = torch.linalg.svd(weight, full_matrices=False)
        floor = sigma.max() * max(weight.shape) * torch.finfo(weight.dtype).eps
        ctx.save_for_backward((U * (sigma > floor)) @ Vt)
        return sigma.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (sign,) = ctx.saved_tensors
        return gradient * sign


def nuclear_norm(weight: Tensor) -> Tensor:
    r"""Sum of the singular values of a matrix, with a gradient that is finite everywhere.

    With :math:`W = U \operatorname{diag}(\sigma) V'` the gradient is :math:`UV'` over the singular values that are not 0:
    where some are, that is the subgradient of least norm, and repeated ones do no harm. It has no second derivative.

    Parameters
    ----------
    weight : tensor (n, m)

    Returns
    -------
    tensor
        A number.

    Examples
    --------
    >>> import torch
    >>> from rbrl.torch import nuclear_norm
    >>> W = torch.tensor([[3.0, 0.0], [0.0, 0.0]], requires_grad=True)
    >>> nuclear_norm(W).backward()
    >>> W.grad
    tensor([[1., 0.],
            [0., 0.]])
    """
    if weight.ndim != 2 or not weight.numel():
        raise ValueError(f"nuclear_norm is of a matrix with entries. Got a tensor of shape {tuple(weight.shape)}.")
    norm: Tensor = _NuclearNorm.apply(weight)
    return norm
