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
    """Base of the errors that only this package raises."""


class InvalidFeaturesError(RBRLError, ValueError):
    """Features are not numbers; the message names the columns, and what turns them into numbers."""


class InvalidLabelsError(RBRLError, ValueError):
    """Labels are not coded as the receiver needs them."""


class DataFormatError(RBRLError, ValueError):
    """A data file cannot be read; the message names file, line and reason."""

    line: int | None = None


class DatasetNotFoundError(RBRLError, LookupError):
    """A data set is neither on disk nor to be downloaded; the message says what to put where."""


class CommandError(RBRLError, RuntimeError):
    """A method that is a command ended, or did not answer as it should; the message has what it said last."""


class ExportError(RBRLError, ValueError):
    """A model, or a part of it, cannot be written as an ONNX graph; the message names the part and the way out."""


class ModelFileError(RBRLError, ValueError):
    """A model file is damaged, not ours, or holds what a model file must not."""


class PlanError(RBRLError, ValueError):
    """A plan says something that cannot be done; the message names the key, the value and what is allowed."""


class StoreError(RBRLError, OSError):
    """A store cannot be read or written; the message says what has become of what it held."""


class GuessWarning(UserWarning):
    """Something about a data file was guessed; the message says what, and how to say it instead."""


class MemoryWarning(UserWarning):
    """A fit usually needs more memory than there is; the message says how much, and what needs less."""


class MissingLabelsWarning(UserWarning):
    """Nobody looked at some label in any row; the message says which, and what becomes of it."""


class ScalingWarning(UserWarning):
    """Columns of X differ too much in scale for one ridge; the message names a scaler."""


class SlowLoopsWarning(UserWarning):
    """Loops run in plain NumPy; the message says why, and what would get them compiled."""


class ModelVersionWarning(UserWarning):
    """A model file was written by another version of rbrl or scikit-learn."""


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
