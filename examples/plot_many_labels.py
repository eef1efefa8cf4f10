"""
Hundreds of labels
==================

With many labels, two things change. A row has only a few of them, so the label matrix is sparse, and the best five labels
are often more useful than all relevant ones. And the weights can be stored as factors, whose rank ``max_rank`` limits.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from rbrl import RBRLClassifier
from rbrl.experiments.figures import use_style
from rbrl.metrics import precision_at_k

# %%
# Rows and their labels
# ---------------------
# Ten hidden topics determine 500 labels. A row gets the five labels that fit it best, with some noise.

N_ROWS, N_FEATURES, N_LABELS, N_TOPICS, N_RELEVANT = 900, 50, 500, 10, 5
random = np.random.default_rng(0)
topics = random.normal(size=(N_ROWS, N_TOPICS))
X = topics @ random.normal(size=(N_TOPICS, N_FEATURES)) + random.normal(size=(N_ROWS, N_FEATURES))
fit_of_labels = topics @ random.normal(size=(N_TOPICS, N_LABELS)) + random.normal(size=(N_ROWS, N_LABELS))
best = np.argsort(-fit_of_labels, axis=1)[:, :N_RELEVANT]
places = (np.repeat(np.arange(N_ROWS), N_RELEVANT), best.ravel())
Y = sparse.csr_array((np.ones(best.size, dtype=np.int8), places), shape=(N_ROWS, N_LABELS))
train, new = slice(0, 600), slice(600, None)
print(
    f"{Y.shape[1]} labels, {Y.nnz / len(X):.0f} of them in a row: {Y.nnz} entries in place of {Y.shape[0] * Y.shape[1]}"
)

# %%
# Factors
# -------
# The problem with ``max_rank`` is not convex, so its gap is measured against the best weights of any rank: it shows the
# cost of the limit. At rank 10 this cost is small.

models = {f"rank {rank}": RBRLClassifier(max_rank=rank, tol=1e-2) for rank in (2, 5, 10)}
models["any rank"] = RBRLClassifier(tol=1e-2)
for name, model in models.items():
    model.fit(X[train], Y[train])
    print(f"{name:8}  at most {model.gap_:4.0%} above the optimum of any rank")

# %%
# The best five
# -------------
# ``predict_top`` returns them with their scores, best first, without storing the scores of all labels.

labels, scores = model.predict_top(X[new], 5)
print("best five of a new row:", labels[2], "its own:", np.sort(best[new][2]))

# %%
# As many factors as topics
# -------------------------
# The precision of the best k labels is the share of them that is relevant. Two factors are too few for 500 labels. Ten,
# the number of topics, come close to weights without a limit.

counts = range(1, 11)
with use_style() as palette:
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    colours = [*plt.get_cmap("viridis")([0.75, 0.5, 0.2]), palette.accent]
    for (name, model), colour, style in zip(models.items(), colours, ("o-", "s-", "^-", "--")):
        scores = model.decision_function(X[new])
        axes.plot(counts, [precision_at_k(Y[new], scores, k=k) for k in counts], style, ms=4, color=colour, label=name)
    axes.set(xlabel="k", ylabel="precision of the best k labels", ylim=(0, None), xticks=list(counts))
    axes.set_title(f"{N_LABELS} labels, {N_RELEVANT} of them relevant in a row")
    axes.legend(title="weights of", ncols=2)
plt.show()
