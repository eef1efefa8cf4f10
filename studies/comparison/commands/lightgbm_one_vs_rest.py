"""LightGBM, one model for each label."""

from typing import Any

import numpy as np
from lightgbm import LGBMClassifier
from serve import serve


def fit(X: Any, Y: Any, parameters: dict[str, Any]) -> Any:
    """A booster for each label, on one thread."""
    models = [LGBMClassifier(n_jobs=1, verbose=-1, **parameters).fit(X, y) for y in Y.T]

    def predict(rows: Any) -> Any:
        return np.column_stack([model.predict_proba(rows)[:, 1] for model in models]), None

    return predict


if __name__ == "__main__":
    serve(fit)
