"""Loss and nuclear norm of RBRL in PyTorch, with their derivatives."""

from __future__ import annotations  # the documentation is built without PyTorch

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from rbrl._common.checks import check_choice, check_number
from rbrl.exceptions import InvalidLabelsError


class _PairHinges(torch.autograd.Function):
    r"""Half of :math:`\sum_{pq} a_p b_q |c - (f_p - f_q)|_+^2` in every row, and its gradient in the scores.

    Sort the positions :math:`f_p` of the relevant labels and :math:`f_q + c` of the irrelevant labels. The slack
    of a pair is the distance by which the irrelevant label lies to the right of the relevant one. From left to
    right, the sum of the slacks grows by the step times the sum of the weights on the left, and the sum of
    squares grows by the step times the sums of slacks before and after it. Both are prefix sums of terms that
    are never negative, so that no digits cancel.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, relevant: Tensor, irrelevant: Tensor, margin: float) -> tuple[Tensor, Tensor]:
        """Return the hinges of each row and their gradient in the scores.

        `relevant` and `irrelevant` have the shape of the scores. A pair has the product of their
        entries as its weight.
        """
        positions, order = torch.where(irrelevant > 0, scores + margin, scores).sort(dim=-1)
        a = relevant.gather(-1, order)
        b = irrelevant.gather(-1, order)
        steps = positions.diff(dim=-1)
        left = _sum_before(steps * a.cumsum(-1)[..., :-1])
        right = _sum_before((steps * _sum_from(b)[..., 1:]).flip(-1)).flip(-1)
        squares = _sum_before(steps * (left[..., :-1] + left[..., 1:]))
        gradient = torch.empty_like(scores).scatter_(-1, order, b * left - a * right)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(order, a, b, gradient)
        return 0.5 * (b * squares).sum(-1), gradient

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, None, None, None]:
        """Return the gradient in the scores, from gradients of the value and of the gradient.

        Either may be None, which stands for zeros.
        """
        value_gradient, gradient_gradient = gradients
        order, a, b, gradient = ctx.saved_tensors
        parts = [] if value_gradient is None else [value_gradient[..., None] * gradient]
        if gradient_gradient is not None:
            # Product with the Hessian, in which every pair with a positive slack couples its two scores.
            d = gradient_gradient.gather(-1, order)
            right = b * (d * a.cumsum(-1) - (a * d).cumsum(-1))
            left = a * (d * _sum_from(b) - _sum_from(b * d))
            parts.append(torch.empty_like(d).scatter(-1, order, left + right))
        return sum(parts) if parts else None, None, None, None


def _sum_before(terms: Tensor) -> Tensor:
    """Return the sums of the terms before each position of the last axis; the first sum is 0.

    The result has one entry more than the terms.
    """
    return nn.functional.pad(terms.cumsum(-1), (1, 0))


def _sum_from(values: Tensor) -> Tensor:
    """Return the sums from each position of the last axis to its end."""
    return values.flip(-1).cumsum(-1).flip(-1)


class RBRLLoss(nn.Module):
    r"""Loss of RBRL for a batch: squared hinges of the labels and of the pairs of relevant and irrelevant labels.

    .. math:: \tfrac12 \sum_{ij} |1 - y_{ij} f_{ij}|_+^2 + \lambda_2\, \tfrac12 \sum_i \tfrac{1}{|Y_i^+||Y_i^-|}
              \sum_{p \in Y_i^+,\, q \in Y_i^-} |c - (f_{ip} - f_{iq})|_+^2

    The loss equals :class:`rbrl.losses.SquaredHinge` plus `ranking` times
    :class:`rbrl.losses.PairwiseSquaredHinge`. Pairs are not formed: one sort of each row gives their sums, in time
    l log l and with memory linear in the scores. The loss is computed in float64 for scores of any type. Second
    derivatives are available.

    Parameters
    ----------
    ranking : float, default=1.0
        Weight :math:`\lambda_2` of the pairs; 0 leaves them out.
    margin : float, default=2.0
        Margin c between relevant and irrelevant scores.
    reduction : {"mean", "sum", "none"}, default="mean"
        Reduction over the rows: "mean" divides by the number of rows, also if they have weights; "sum" is the
        loss that the library minimises; "none" returns a loss for each row.

    Examples
    --------
    >>> import torch
    >>> from rbrl.interop.torch import RBRLLoss
    >>> scores = torch.tensor([[0.5, 0.0]], requires_grad=True)
    >>> targets = torch.tensor([[1, 0]])
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
        """Return the loss of a batch.

        Parameters
        ----------
        scores : tensor (..., n_labels)
            Scores. All dimensions before the last one are rows.
        targets : tensor (..., n_labels)
            Labels in 0/1, -1/+1 or bool, as in `fit`; NaN is a missing label. A batch with both 0 and -1 raises
            InvalidLabelsError.
        weights : tensor (...) of the rows or (..., n_labels) of the entries, default=None
            Weights, as `sample_weight` of `fit`. An entry of weight 0 is in no hinge and in no pair. Weights have
            no gradient.

        Returns
        -------
        tensor, of the type of the scores
            Scalar, or with ``reduction="none"`` the loss of each row.
        """
        relevant, entry_weights = _check_entries(scores, targets, weights)
        f = scores.double()
        y = relevant.double().mul(2).sub(1)
        rows = 0.5 * (entry_weights * (1 - y * f).clamp(min=0) ** 2).sum(-1)
        if self.ranking and scores.shape[-1] > 1:
            pair_weights = _pair_weights(relevant, entry_weights)
            rows = rows + self.ranking * _PairHinges.apply(f, *pair_weights, float(self.margin))[0]
        reduced = rows if self.reduction == "none" else getattr(rows, self.reduction)()
        return reduced.to(scores.dtype)

    def extra_repr(self) -> str:
        """Return the parameters for `repr`."""
        return f"ranking={self.ranking}, margin={self.margin}, reduction={self.reduction!r}"


def _check_entries(scores: Tensor, targets: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the mask of the relevant entries, and the weights of the entries; a missing label has weight 0."""
    if targets.shape != scores.shape:
        raise ValueError(
            f"targets must have the shape of the scores, {tuple(scores.shape)}. Got {tuple(targets.shape)}."
        )
    relevant = targets > 0
    is_known = (~targets.isnan()).double()
    _check_coding(targets)
    if weights is None:
        return relevant, is_known
    if weights.requires_grad:
        raise ValueError("weights must be constants. Got a tensor that requires a gradient; pass weights.detach().")
    if weights.shape not in (scores.shape, scores.shape[:-1]):
        raise ValueError(
            f"weights must have the shape {tuple(scores.shape[:-1])}, of rows, or {tuple(scores.shape)}, of entries. "
            f"Got {tuple(weights.shape)}."
        )
    if not ((weights >= 0) & weights.isfinite()).all():
        raise ValueError(f"weights must be finite and >= 0. Got values from {weights.min()} to {weights.max()}.")
    return relevant, is_known * (weights if weights.shape == scores.shape else weights[..., None])


def _check_coding(targets: Tensor) -> None:
    """Raise InvalidLabelsError for targets other than 0/1, -1/+1 and NaN."""
    if targets.dtype == torch.bool:
        return
    for low in (0, -1):
        if ((targets == low) | (targets == 1) | targets.isnan()).all():
            return
    values = ", ".join(f"{value:g}" for value in targets[~targets.isnan()].unique()[:6].tolist())
    raise InvalidLabelsError(
        f"targets must hold 0/1 or -1/+1, and NaN for missing labels. Got the values {values}; code a missing label as "
        "NaN, or give it the weight 0. With -1/+1, a missing label cannot be coded as 0."
    )


def _pair_weights(relevant: Tensor, entry_weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return the factors of the relevant and of the irrelevant entries in the weights of their pairs; 0 for others."""
    sides = [torch.where(side, entry_weights, 0.0) for side in (relevant, ~relevant)]
    sums = [side.sum(-1, keepdim=True) for side in sides]
    a, b = (side / torch.where(total > 0, total, 1.0) for side, total in zip(sides, sums))
    mean = (sums[0] + sums[1]) / (entry_weights > 0).sum(-1, keepdim=True).clamp(min=1)
    return mean * a, b


class _NuclearNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor) -> Tensor:
        """Return the sum of the singular values of a matrix."""
        U, sigma, Vt = torch.linalg.svd(weight, full_matrices=False)
        floor = sigma.max() * max(weight.shape) * torch.finfo(weight.dtype).eps
        ctx.save_for_backward((U * (sigma > floor)) @ Vt)
        return sigma.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        """Return the gradient U V', times the gradient of the value."""
        (sign,) = ctx.saved_tensors
        return gradient * sign


def nuclear_norm(weight: Tensor) -> Tensor:
    r"""Return the sum of the singular values of a matrix, with a gradient that is finite everywhere.

    With :math:`W = U \operatorname{diag}(\sigma) V'`, the gradient is :math:`UV'` over the nonzero singular values.
    If some singular values are 0, this is the subgradient of least norm. Repeated singular values are no problem.
    There is no second derivative.

    Parameters
    ----------
    weight : tensor (n, m)

    Returns
    -------
    tensor
        Scalar.

    Examples
    --------
    >>> import torch
    >>> from rbrl.interop.torch import nuclear_norm
    >>> W = torch.tensor([[3.0, 0.0], [0.0, 0.0]], requires_grad=True)
    >>> nuclear_norm(W).backward()
    >>> W.grad
    tensor([[1., 0.],
            [0., 0.]])
    """
    if weight.ndim != 2 or not weight.numel():
        raise ValueError(f"weight must be a matrix that is not empty. Got a tensor of shape {tuple(weight.shape)}.")
    norm: Tensor = _NuclearNorm.apply(weight)
    return norm
