"""Error and warning classes of the package."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "CommandError", "ConvergenceWarning", "DataFormatError", "DatasetNotFoundError",
    "EmptyPredictionsWarning", "ExportError", "GuessWarning", "InvalidFeaturesError",
    "InvalidLabelsError", "MemoryWarning", "MissingLabelsWarning", "ModelFileError",
    "ModelVersionWarning", "PlanError", "RBRLError", "ScalingWarning", "SlowLoopsWarning", "StoreError",
]  # fmt: skip


class RBRLError(Exception):
    """Base class of all errors of the package.

    Examples
    --------
    >>> from rbrl.exceptions import RBRLError
    >>> from rbrl.experiments import Plan
    >>> try:
    ...     Plan.from_dict({"datasets": ["yeast"], "methods": {}})
    ... except RBRLError as error:
    ...     print(type(error).__name__, isinstance(error, ValueError))
    PlanError True
    """


class InvalidFeaturesError(RBRLError, ValueError):
    """Error of features that are not numbers; the message names the columns and an encoder.

    Examples
    --------
    >>> from rbrl import RBRLClassifier
    >>> from rbrl.exceptions import InvalidFeaturesError
    >>> try:
    ...     RBRLClassifier().fit([["red"], ["blue"]], [[1, 0], [0, 1]])
    ... except InvalidFeaturesError as error:
    ...     print(str(error).partition(":")[0])
    RBRLClassifier needs numbers. Got text in column 0 of X, such as 'blue'; encode it first
    """


class InvalidLabelsError(RBRLError, ValueError):
    """Error of labels in a coding that a function does not accept.

    Examples
    --------
    >>> from rbrl.exceptions import InvalidLabelsError
    >>> from rbrl.metrics import hamming_loss
    >>> try:
    ...     hamming_loss([[1, -1]], [[1, 0]])
    ... except InvalidLabelsError as error:
    ...     print(error)
    Y must hold only 0 and 1. Got the values -1, 1 instead. For labels coded -1/+1 pass (Y > 0).astype(int).
    """


class DataFormatError(RBRLError, ValueError):
    """Error of a data file that cannot be read; the message names file, line and reason.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rbrl.datasets import load_file
    >>> from rbrl.exceptions import DataFormatError
    >>> path = Path(tempfile.mkdtemp(), "birds.csv")
    >>> _ = path.write_text("length,sings\\n11.5,1\\n58,7\\n")
    >>> try:
    ...     load_file(path, labels=-1)
    ... except DataFormatError as error:
    ...     print(str(error).partition(", ")[2])
    line 3: the label 'sings' must be 0 or 1; got '7.0'
    """

    line: int | None = None


class DatasetNotFoundError(RBRLError, LookupError):
    """Error of a data set that was not found; the message says which file to put where.

    Examples
    --------
    >>> from rbrl import datasets
    >>> from rbrl.exceptions import DatasetNotFoundError
    >>> try:
    ...     datasets.load("yeest")
    ... except DatasetNotFoundError as error:
    ...     print(str(error).partition(".")[0])
    no data set is called 'yeest'
    """


class CommandError(RBRLError, RuntimeError):
    """Error of a method that is a shell command; the message contains the end of its output.

    Examples
    --------
    >>> from rbrl.exceptions import CommandError, RBRLError
    >>> issubclass(CommandError, RBRLError), issubclass(CommandError, RuntimeError)
    (True, True)
    """


class ExportError(RBRLError, ValueError):
    """Error of a model that cannot be exported to ONNX; the message names the part and the way out.

    Examples
    --------
    >>> from rbrl.exceptions import ExportError, RBRLError
    >>> issubclass(ExportError, RBRLError), issubclass(ExportError, ValueError)
    (True, True)
    """


class ModelFileError(RBRLError, ValueError):
    """Error of a file that is damaged, is not a model file of rbrl, or holds forbidden types.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import rbrl
    >>> from rbrl.exceptions import ModelFileError
    >>> path = Path(tempfile.mkdtemp(), "model.rbrl")
    >>> _ = path.write_bytes(b"no model")
    >>> try:
    ...     rbrl.load(path)
    ... except ModelFileError as error:
    ...     print(str(error).removeprefix(str(path)))
    : not an rbrl model file; it starts with b'no model', not b'rbrl model 1\\n'.
    """


class PlanError(RBRLError, ValueError):
    """Error of a plan; the message names the key, the value and the allowed values.

    Examples
    --------
    >>> from rbrl.exceptions import PlanError
    >>> from rbrl.experiments import Plan
    >>> try:
    ...     Plan.from_dict({"datasets": ["yeast"], "methods": {"rbrl": {}}, "splits": {"numbre": 2}})
    ... except PlanError as error:
    ...     print(str(error).partition(" Allowed")[0])
    the key 'numbre' in splits (value 2) is unknown. Did you mean 'number'?
    """


class StoreError(RBRLError, OSError):
    """Error of a store that cannot be read or written; the message says if its rows are safe.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rbrl.exceptions import StoreError
    >>> from rbrl.experiments import Store
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "runs.sqlite").write_text("no database")
    >>> try:
    ...     Store(folder).rows()
    ... except StoreError as error:
    ...     print(str(error).removeprefix(str(folder)))
    /runs.sqlite is not a store of rbrl, or a damaged one (file is not a database). Choose another folder.
    """


class EmptyPredictionsWarning(UserWarning):
    """Warning that a model predicts no label for most training rows, although they have labels.

    The message names the ways out.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from rbrl import RBRLClassifier
    >>> from rbrl.exceptions import EmptyPredictionsWarning
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", EmptyPredictionsWarning)
    ...     model = RBRLClassifier(ridge=1e6).fit(np.eye(6), np.eye(6)[:, :5])
    >>> print(str(caught[0].message).partition(".")[0])
    RBRLClassifier gives 100% of the training rows no label, and 17% have none
    """


class GuessWarning(UserWarning):
    """Warning of a guess about a data file or about labels; the message says how to avoid it.

    Examples
    --------
    >>> import tempfile
    >>> import warnings
    >>> from pathlib import Path
    >>> from rbrl.datasets import load_file
    >>> from rbrl.exceptions import GuessWarning
    >>> path = Path(tempfile.mkdtemp(), "birds.svm")
    >>> _ = path.write_text("1,2 1:0.5 2:3")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", GuessWarning)
    ...     data = load_file(path)
    >>> print(str(caught[0].message).removeprefix(f"{path}: ").partition(";")[0])
    its features and labels are assumed to start at 1, because there is no column 0
    """


class MemoryWarning(UserWarning):
    """Warning that a fit may need more memory than available; the message says how to use less.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from rbrl import RBRLClassifier
    >>> from rbrl.exceptions import MemoryWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", MemoryWarning)  # rather stop than swap
    ...     model = RBRLClassifier().fit(np.eye(4), np.eye(4, dtype=int))
    >>> model.coef_.shape
    (4, 4)
    """


class MissingLabelsWarning(UserWarning):
    """Warning of labels that are missing in every row; the message names them and their scores.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from rbrl import RBRLClassifier
    >>> from rbrl.exceptions import MissingLabelsWarning
    >>> Y = [[1, 0, np.nan], [0, 1, np.nan]]
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", MissingLabelsWarning)
    ...     model = RBRLClassifier().fit(np.eye(2), Y)
    >>> "1 of 3 labels" in str(caught[0].message)
    True
    """


class ScalingWarning(UserWarning):
    """Warning that the columns of X differ too much in scale for one ridge penalty.

    The message names a scaler.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from rbrl import RBRLClassifier
    >>> from rbrl.exceptions import ScalingWarning
    >>> X = np.arange(30.0).reshape(10, 3) * [1.0, 1.0, 1e6]
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", ScalingWarning)
    ...     model = RBRLClassifier().fit(X, np.eye(10, 3, dtype=int))
    >>> any(one.category is ScalingWarning for one in caught)
    True
    """


class SlowLoopsWarning(UserWarning):
    """Warning that loops run in plain NumPy; the message says why, and how to compile them.

    Examples
    --------
    >>> import warnings
    >>> from rbrl.exceptions import SlowLoopsWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", SlowLoopsWarning)  # raised at the first import of a classifier
    ...     from rbrl import RBRLClassifier
    """


class ModelVersionWarning(UserWarning):
    """Warning that a model file was written by another version of rbrl or scikit-learn.

    Examples
    --------
    >>> import tempfile
    >>> import warnings
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import rbrl
    >>> from rbrl.exceptions import ModelVersionWarning
    >>> path = Path(tempfile.mkdtemp(), "model.rbrl")
    >>> rbrl.save(rbrl.RBRLClassifier().fit(np.eye(4), np.eye(4, dtype=int)), path)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", ModelVersionWarning)  # refuse a model of another version
    ...     model = rbrl.load(path)
    >>> type(model).__name__
    'RBRLClassifier'
    """


def __getattr__(name: str) -> Any:
    # The warning of scikit-learn is imported on demand, because scikit-learn is slow to import.
    if name != "ConvergenceWarning":
        raise AttributeError(f"module 'rbrl.exceptions' has no attribute {name!r}")
    from sklearn.exceptions import ConvergenceWarning

    return ConvergenceWarning


def in_words(error: BaseException) -> str:
    """Return the type and the message of an exception as one text.

    Examples
    --------
    >>> in_words(SystemExit(3)), in_words(AssertionError())
    ('SystemExit: 3', 'AssertionError')
    """
    return f"{type(error).__name__}: {error}".removesuffix(": ")
