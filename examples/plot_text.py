"""
Labels of texts
===============

A pipeline of ``TfidfVectorizer`` and a classifier predicts sets of names from texts. The rows stay sparse throughout. The
model is a matrix of words and labels, which can be read.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from rbrl import RBRLClassifier, explain, predict_sets, predict_top
from rbrl.experiments.figures import use_style

# %%
# Messages and their topics
# -------------------------
# Messages to a shop, composed of random phrases about one to three topics. The labels are lists of names, one list for
# each text.

PHRASES = {
    "delivery": [
        "the parcel has not arrived",
        "delivery took two weeks",
        "the courier left no note",
        "late parcel again",
    ],
    "payment": [
        "my card was charged twice",
        "the invoice shows a wrong amount",
        "please refund my card",
        "no invoice came",
    ],
    "quality": [
        "the zip is broken",
        "the fabric is torn",
        "arrived with a broken handle",
        "colour faded and torn seam",
    ],
    "size": ["the shoes are too small", "sleeves too long", "the size chart is wrong", "too tight at the waist"],
    "praise": ["lovely service thank you", "great colour and fabric", "thank you for the quick help", "lovely shoes"],
}
FILLERS = ["hello", "last monday", "i ordered online", "as before", "kind regards", "for my sister"]
random = np.random.default_rng(0)


def write(topics):
    phrases = [random.choice(PHRASES[topic]) for topic in topics] + list(random.choice(FILLERS, 2, replace=False))
    return ", ".join(random.permutation(phrases))


topics = [sorted(random.choice(list(PHRASES), random.integers(1, 4), replace=False)) for _ in range(400)]
texts = [write(one) for one in topics]
print(texts[0], "->", ", ".join(topics[0]))

# %%
# Fit and predict
# ---------------
# The predictions are names, since the labels were names. A default model is enough: its ridge depends on the data.

model = make_pipeline(TfidfVectorizer(stop_words="english"), RBRLClassifier()).fit(texts, topics)
new = [
    "the parcel was torn and the courier rude",
    "charged twice, and the jacket is too small",
    "thank you, lovely jacket",
]
names, scores = predict_top(model, new, 2)
for text, found, best in zip(new, predict_sets(model, new), names):
    print(f"{text!r}: {', '.join(found)} (nearest: {', '.join(best)})")

# %%
# Explain a prediction
# --------------------
# A score is a sum over the words of a text.

print(explain(model, new[1], "size"))

# %%
# The words of a label
# --------------------
# Largest weights of words for each label: blue words speak for it, red words against it.

vectorizer, classifier = model[0], model[-1]
words = vectorizer.get_feature_names_out()
labels = list(classifier.label_names_)
strongest = [word for row in classifier.coef_ for word in np.argsort(-row)[:4]]
weights = classifier.coef_[:, strongest].T
largest = np.abs(weights).max()
with use_style({"axes.grid": False}) as palette:
    figure, axes = plt.subplots(figsize=(5.6, 5.4), layout="constrained")
    image = axes.imshow(weights, cmap="RdBu", vmin=-largest, vmax=largest, aspect="auto")
    axes.set_xticks(range(len(labels)), labels)
    axes.set_yticks(range(len(strongest)), words[strongest])
    axes.tick_params(length=0, labelsize=9, labelcolor=palette.ink)
    axes.set_title("The four words with the largest weights for each label")
    axes.spines[:].set_visible(False)
    for line in range(4, len(strongest), 4):
        axes.axhline(line - 0.5, color="white", lw=3)
    figure.colorbar(image, ax=axes, shrink=0.6, label="weight")
plt.show()
