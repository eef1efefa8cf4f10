"""Use an installed rbrl once: fit, predict, save and load, on real data; print the versions.

The package must be the installed one, compiled, and away from its sources.
"""

import tempfile
from pathlib import Path

import rbrl
from rbrl import RBRLClassifier, datasets, evaluate

found = rbrl.info()
assert found["core"] == "compiled", found["core"]
assert "site-packages" in Path(rbrl.__file__).parts, rbrl.__file__

train, test = datasets.load("yeast").split(seed=0)
model = RBRLClassifier().fit(*train)
labels, scores = model.predict(test.X), model.decision_function(test.X)
ranking_loss = evaluate(test.Y, labels, scores)["ranking_loss"]
assert model.gap_ <= model.tol, model.gap_
assert ranking_loss < 0.2, ranking_loss

with tempfile.TemporaryDirectory() as folder:
    rbrl.save(model, Path(folder, "model"))
    assert (rbrl.load(Path(folder, "model")).predict(test.X) == labels).all()

versions = ", ".join(f"{name} {found[name]}" for name in ("numpy", "scipy", "scikit-learn"))
print(f"{versions}: ranking loss {ranking_loss:.4f}, certified.")
