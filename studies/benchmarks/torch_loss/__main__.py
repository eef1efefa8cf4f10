"""Time the loss in PyTorch beside PyTorch's own losses: ``python -m studies.benchmarks.torch_loss``"""

import time
from statistics import median

import torch
from torch import nn

from rbrl.interop.torch import RBRLLoss
from studies.benchmarks.problems import write_results

CELLS, ROUNDS = 2**18, 15
LABELS = ((20, 3), (200, 10), (2000, 20), (5000, 20))
TEXT = """Value and gradient of a batch of about %d scores in float32, of rows with so many relevant labels on average, in
processor time: the median of %d rounds, in each of which the losses took turns. RBRLLoss has the hinges and all pairs, and
"hinges alone" is `ranking=0`. MultiLabelMarginLoss takes its targets as padded lists of labels, made beforehand; its hinges
are of all pairs too, not squared. "rows per second" is RBRLLoss."""


def batch(n_labels, n_relevant):
    """Scores, targets of 0/1, and the same as lists of labels that end with -1."""
    generator = torch.Generator().manual_seed(0)
    shape = max(1, CELLS // n_labels), n_labels
    scores = torch.randn(shape, generator=generator, requires_grad=True)
    targets = (torch.rand(shape, generator=generator) < n_relevant / n_labels).float()
    values, order = targets.sort(dim=1, descending=True, stable=True)
    return scores, targets, torch.where(values > 0, order, -1)


def seconds(loss, scores, targets):
    started = time.process_time()
    loss(scores, targets).backward()
    return time.process_time() - started


def row(n_labels, n_relevant):
    scores, targets, lists = batch(n_labels, n_relevant)
    losses = {
        "RBRLLoss": (RBRLLoss(), targets),
        "hinges alone": (RBRLLoss(ranking=0), targets),
        "BCEWithLogitsLoss": (nn.BCEWithLogitsLoss(), targets),
        "MultiLabelMarginLoss": (nn.MultiLabelMarginLoss(), lists),
    }
    rounds = [{name: seconds(loss, scores, of) for name, (loss, of) in losses.items()} for _ in range(ROUNDS + 1)][1:]
    each = {name: median(times[name] for times in rounds) / len(scores) for name in losses}
    return (
        {"labels": n_labels, "relevant": n_relevant}
        | {f"{name}, µs a row": f"{1e6 * value:.1f}" for name, value in each.items()}
        | {"rows per second": f"{1 / each['RBRLLoss']:,.0f}"}
        | {f"times {other}": f"{each['RBRLLoss'] / each[other]:.1f}" for other in list(losses)[2:]}
    )


def main():
    torch.set_num_threads(1)
    rows = [row(*size) for size in LABELS]
    write_results(__file__, "The loss in PyTorch", TEXT % (CELLS, ROUNDS), rows)


if __name__ == "__main__":
    main()
