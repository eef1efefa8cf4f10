"""MLRL-Boomer: boosted multi-label rules."""

from typing import Any

import numpy as np
from mlrl.boosting import BoomerClassifier
from scipy import sparse
from serve import serve


def fit(X: Any, Y: Any, parameters: dict[str, Any]) -> Any:
    """The package's defaults; labels by its own rule.

    OMP_NUM_THREADS keeps it to one thread: its own switches do so, too, but end in a damaged heap (0.12.3).
    """
    seed = parameters.pop("random_state") + 1  # it takes none below 1
    model = BoomerClassifier(random_state=seed, **parameters).fit(_rows(X), Y.astype(np.uint8))

    def predict(rows: Any) -> Any:
        labels = model.predict(_rows(rows))
        return model.predict_proba(_rows(rows)), labels.toarray() if sparse.issparse(labels) else labels

    return predict


def _rows(X: Any) -> Any:
    return X.astype(np.float32)


if __name__ == "__main__":
    serve(fit)
