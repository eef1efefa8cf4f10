"""LibMultiLabel's linear one-vs-rest (L2-regularised squared hinge, solved by LIBLINEAR)."""

from typing import Any

from libmultilabel.linear import train_1vsrest
from scipy import sparse
from serve import serve


def fit(X: Any, Y: Any, parameters: dict[str, Any]) -> Any:
    """LIBLINEAR's primal solver with a bias, as the package's example configurations have it; C, and one thread."""
    options = f"-s 2 -B 1 -e 0.0001 -q -m 1 -c {parameters.get('C', 1.0)}"
    model = train_1vsrest(sparse.csr_matrix(Y), sparse.csr_matrix(X), options=options, verbose=False)
    return lambda rows: (model.predict_values(sparse.csr_matrix(rows)), None)


if __name__ == "__main__":
    serve(fit)
