"""Every error and warning class of the package."""

from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "ConvergenceWarning",
    "DataFormatError",
    "DatasetNotFoundError",
    "InvalidLabelsError",
    "ModelFileError",
    "RBRLError",
]


class RBRLError(Exception):
    """Base of the errors that only this package raises."""


class InvalidLabelsError(RBRLError, ValueError):
    """Labels are not coded as the receiver needs them."""


class DataFormatError(RBRLError, ValueError):
    """A data file cannot be read; the message names file, line and reason."""


class DatasetNotFoundError(RBRLError, LookupError):
    """A data set is neither on disk nor to be downloaded; the message says what to put where."""


class ModelFileError(RBRLError, ValueError):
    """A model file is damaged, not ours, or holds what a model file must not."""
