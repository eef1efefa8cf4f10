"""Every error and warning class of the package."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "CommandError", "ConvergenceWarning", "DataFormatError", "DatasetNotFoundError", "ExportError", "GuessWarning",
    "InvalidFeaturesError", "InvalidLabelsError", "MemoryWarning", "MissingLabelsWarning", "ModelFileError",
    "ModelVersionWarning", "PlanError", "RBRLError", "ScalingWarning", "SlowLoopsWarning", "StoreError",
]  # fmt: skip


class RBRLError(Exception):
    """Base of the errors that only this package raises.

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
    """Features are not numbers; the message names the columns, and what turns them into numbers.

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
    """Labels are not coded as the receiver needs them.

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
    """A data file cannot be read; the message names file, line and reason.

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
    """A data set is neither on disk nor to be downloaded; the message says what to put where.

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
    """A method that is a command ended, or did not answer as it should; the message has what it said last.

    Examples
    --------
    >>> from rbrl.exceptions import CommandError, RBRLError
    >>> issubclass(CommandError, RBRLError), issubclass(CommandError, RuntimeError)
    (True, True)
    """


class ExportError(RBRLError, ValueError):
    """A model, or a part of it, cannot be written as an ONNX graph; the message names the part and the way out.

    Examples
    --------
    >>> from rbrl.exceptions import ExportError, RBRLError
    >>> issubclass(ExportError, RBRLError), issubclass(ExportError, ValueError)
    (True, True)
    """


class ModelFileError(RBRLError, ValueError):
    """A model file is damaged, not ours, or holds what a model file must not.

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
    """A plan says something that cannot be done; the message names the key, the value and what is allowed.

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
    """A store cannot be read or written; the message says what has become of what it held.

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
    """More than half of the training rows have labels, and get none from the model; the message names the ways out.

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
    """Something about a data file or about labels was guessed; the message says what, and how to say it instead.

    Examples
    --------
    >>> import tempfile
    >>> import warnings
    >>> from pathlib import Path
    >>> from rbrl.datasets import load_file
    >>> from rbrl.exceptions import GuessWarning
    >>> path = Path(tempfile.mkdtemp(), "birds.svm")
    >>> _ = path.write_text("1,2 1:0.5 2:3")
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always", GuessWarning)
    ...     data = load_file(path)
    >>> print(str(said[0].message).removeprefix(f"{path}: ").partition(";")[0])
    its features and labels are taken to count from 1, because none is 0
    """


class MemoryWarning(UserWarning):
    """A fit usually needs more memory than there is; the message says how much, and what needs less.

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
    """Nobody looked at some label in any row; the message says which, and what becomes of it.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from rbrl import RBRLClassifier
    >>> from rbrl.exceptions import MissingLabelsWarning
    >>> Y = [[1, 0, np.nan], [0, 1, np.nan]]
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always", MissingLabelsWarning)
    ...     model = RBRLClassifier().fit(np.eye(2), Y)
    >>> print(said[0].message)
    Nobody looked at 1 of 3 labels in any row: 2. Their scores are 0, and predictions call them irrelevant.
    """


class ScalingWarning(UserWarning):
    """Columns of X differ too much in scale for one ridge; the message names a scaler.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from rbrl import RBRLClassifier
    >>> from rbrl.exceptions import ScalingWarning
    >>> X = np.arange(30.0).reshape(10, 3) * [1.0, 1.0, 1e6]
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always", ScalingWarning)
    ...     model = RBRLClassifier().fit(X, np.eye(10, 3, dtype=int))
    >>> any(one.category is ScalingWarning for one in said)
    True
    """


class SlowLoopsWarning(UserWarning):
    """Loops run in plain NumPy; the message says why, and what would get them compiled.

    Examples
    --------
    >>> import warnings
    >>> from rbrl.exceptions import SlowLoopsWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", SlowLoopsWarning)  # it is said at the first import of a classifier
    ...     from rbrl import RBRLClassifier
    """


class ModelVersionWarning(UserWarning):
    """A model file was written by another version of rbrl or scikit-learn.

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
    # scikit-learn's own warning: what only needs the errors above should not wait for scikit-learn.
    if name != "ConvergenceWarning":
        raise AttributeError(f"module 'rbrl.exceptions' has no attribute {name!r}")
    from sklearn.exceptions import ConvergenceWarning

    return ConvergenceWarning


def in_words(error: BaseException) -> str:
    """An exception in one text: its type, and what it says if it says anything.

    Parameters
    ----------
    error : BaseException

    Returns
    -------
    str

    Examples
    --------
    >>> in_words(SystemExit(3)), in_words(AssertionError())
    ('SystemExit: 3', 'AssertionError')
    """
    return f"{type(error).__name__}: {error}".removesuffix(": ")
