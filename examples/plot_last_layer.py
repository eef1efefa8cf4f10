"""
A network's last layer, solved
==============================

For fixed features, the problem of a network's last layer is convex, so it can be solved with a certificate. Here a
small network learns yeast with RBRL's loss. After every epoch, the example measures how far its last layer is from the
best one for the current features, and how the best one performs on new rows.

Needs the extra ``torch``.
"""

# sphinx_gallery_thumbnail_path = 'images/last-layer.png'

import copy

import matplotlib.pyplot as plt
import torch
from sklearn.preprocessing import StandardScaler
from torch import nn

from rbrl import datasets
from rbrl.experiments.figures import plain_powers, use_style
from rbrl.interop.torch import RBRLHead, RBRLLoss, refit_last_layer
from rbrl.metrics import ranking_loss

EPOCHS, HIDDEN = 12, 128

# %%
# The network
# -----------
# ``RBRLHead`` is a linear layer with penalties. The loss is a mean over the rows of a batch, so the penalties are
# divided by the number of training rows.

train, test = datasets.load("yeast").split(seed=0)
scaler = StandardScaler().fit(train.X)
X, X_test = (torch.tensor(scaler.transform(part.X), dtype=torch.float32) for part in (train, test))
Y = torch.tensor(train.Y)

torch.manual_seed(0)
head = RBRLHead(HIDDEN, Y.shape[1], ridge=300.0)
network = nn.Sequential(nn.Linear(X.shape[1], HIDDEN), nn.ReLU(), nn.Dropout(0.2), head)
loss, optimiser = RBRLLoss(), torch.optim.Adam(network.parameters(), lr=1e-3)


def train_an_epoch():
    network.train()
    for rows in torch.randperm(len(X)).split(64):
        optimiser.zero_grad()
        (loss(network(X[rows]), Y[rows]) + head.penalty() / len(X)).backward()
        optimiser.step()


def on_new_rows(model):
    model.eval()
    with torch.no_grad():
        return ranking_loss(test.Y, model(X_test).numpy())


# %%
# Train, and solve a copy of the last layer after every epoch
# -----------------------------------------------------------
# ``refit_last_layer`` passes the rows through the body once, in evaluation mode. The difference between the objective of
# the trained layer and the certified lower bound is the gain that is left to training.

left, certified, as_trained, as_solved = [], [], [], []
for _ in range(EPOCHS):
    train_an_epoch()
    solved = copy.deepcopy(network)
    best = refit_last_layer(solved, zip(X.split(500), Y.split(500)), tol=1e-3)
    left.append(best.objective_before_ * (1 + best.gap_) / best.objective_ - 1)
    certified.append(best.gap_)
    as_trained.append(on_new_rows(network))
    as_solved.append(on_new_rows(solved))

print(f"after {EPOCHS} epochs the trained layer is at most {left[-1]:.1%} above its optimum")
print(f"the solved one is within {max(certified):.0e} of it, certified")
print(f"ranking loss on new rows: trained {as_trained[-1]:.4f}, solved {as_solved[-1]:.4f}")

# %%
# The gain on training rows and on new rows
# -----------------------------------------
# A solved last layer helps most early in training: on new rows, it is after three epochs as good as training after
# five. Later the body overfits the training rows, and the best layer for its features is no longer better on new rows.
# Then the ridge has to be chosen, on rows that the body has not seen.

epochs = range(1, EPOCHS + 1)
with use_style():
    figure, (objectives, losses) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    objectives.semilogy(epochs, left, "o-", ms=4, label="as trained")
    objectives.semilogy(epochs, certified, "s--", ms=4, label="solved: certified gap")
    objectives.set(xlabel="epoch", ylabel="objective above its optimum, at most")
    objectives.set_title("The last layer, given its features")
    plain_powers(objectives.yaxis)
    losses.plot(epochs, as_trained, "o-", ms=4, label="as trained")
    losses.plot(epochs, as_solved, "s--", ms=4, label="last layer solved")
    losses.set(xlabel="epoch", ylabel="ranking loss (less is better)", title="New rows")
    for panel in (objectives, losses):
        panel.legend()
plt.show()
