"""RBRL on top of a network: its loss and its penalties in PyTorch, and a last layer that is solved with a certificate.

The loss is a function of labels and scores alone, so it belongs on top of any network. What a network's last layer does
with the features below it is RBRL's own convex problem: :func:`refit_last_layer` solves it, and says how near the optimum
its answer is. Needs the extra `torch`.
"""

try:
    import torch as _torch  # noqa: F401 - here, so that its absence is said once, and clearly
except ImportError as error:
    raise ImportError(f"rbrl.torch needs PyTorch ({error}): pip install 'rbrl[torch]'.") from error

from rbrl.torch.last_layer import RBRLHead, refit_last_layer
from rbrl.torch.loss import RBRLLoss, nuclear_norm

__all__ = ["RBRLHead", "RBRLLoss", "nuclear_norm", "refit_last_layer"]
