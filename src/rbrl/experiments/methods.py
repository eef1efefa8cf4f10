"""From a plan's words to an estimator. Import paths run code: only what a plan names is imported."""

import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone

from rbrl._common.checks import hint
from rbrl.exceptions import PlanError, in_words
from rbrl.metrics import scores_of
from rbrl.registry import REGISTRY


class NonEmptyClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Give a row for which the classifier predicts no label the label that it scores best, the first on ties.

    Parameters
    ----------
    estimator : scikit-learn classifier
        With `decision_function` or `predict_proba`.
    """

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y):
        """Fit a copy of the classifier."""
        self.estimator_ = clone(self.estimator).fit(X, y)
        return self

    def decision_function(self, X):
        """The classifier's scores."""
        return scores_of(self.estimator_, X)

    def predict(self, X):
        """Labels, 0/1, none of the rows empty."""
        labels = self.estimator_.predict(X)
        labels = labels.toarray() if sparse.issparse(labels) else np.array(labels)
        empty = np.flatnonzero(~(labels > 0).any(axis=1))
        if len(empty):
            labels[empty, self.decision_function(X[empty]).argmax(axis=1)] = 1
        return labels


def find_class(use, folder):
    """Return the class that `use` names.

    Parameters
    ----------
    use : str
        A name of the registry, "module:Class" or "file.py:Class".
    folder : Path
        Where relative file paths start.
    """
    place, colon, name = use.rpartition(":")
    if not colon:
        if use not in REGISTRY:
            raise PlanError(
                f"no method is called {use!r}; a class of your own is 'module:Class' or 'file.py:Class'."
                f"{hint(use, REGISTRY)}"
            )
        return REGISTRY[use]
    module = _module(place, use, folder)
    if not hasattr(module, name):
        raise PlanError(f"{use!r}: {place} has no {name!r}.{hint(name, _classes(module))}")
    return getattr(module, name)


def code_of(use, folder):
    """Content hash of the file that `use` names, so that an edited class is run anew; None for anything else."""
    place, _, _ = use.rpartition(":")
    return hashlib.sha256(_file(place, folder).read_bytes()).hexdigest()[:20] if place.endswith(".py") else None


def check_parameters(where, cls, names):
    """Refuse parameters that the class does not have; a name with `__` reaches inside, and only its start is checked."""
    if not issubclass(cls, BaseEstimator):
        return
    known = cls._get_param_names()
    for name in names:
        if name.partition("__")[0] not in known:
            raise PlanError(f"{where}: {cls.__name__} has no parameter {name!r}.{hint(name, known)}")


def check_decision_parameters(where, cls, names):
    """Refuse parameters that a fitted model cannot be given; names that are none of a class without such ones."""
    known = getattr(cls, "decision_parameters", None)
    if known is None:
        raise PlanError(
            f"{where}: {cls.__name__} does not say what may change after a fit; it has no decision_parameters."
        )
    for name in names:
        if name not in known:
            raise PlanError(f"{where}: {name!r} would need another fit of {cls.__name__}; allowed: {', '.join(known)}.")


def build(use, params, folder, *, non_empty=None, seed=None):
    """Return an unfitted estimator.

    Parameters
    ----------
    use, folder
        As for `find_class`.
    params : dict
        Its parameters; a table with the keys `use` and `params` becomes an estimator itself.
    non_empty : bool, optional
        Decision rule. Given to the estimator if it has that parameter, put around it otherwise.
    seed : int, optional
        Its random_state, if it has one that `params` leaves open.
    """
    cls = find_class(use, folder)
    estimator = cls(**{key: _value(value, folder) for key, value in params.items()})
    if not hasattr(estimator, "get_params"):
        raise PlanError(f"{use!r} must be a scikit-learn classifier with get_params. Got {cls.__name__} instead.")
    own = estimator.get_params(deep=False)
    if seed is not None and "random_state" in own and "random_state" not in params:
        estimator.set_params(random_state=seed)
    if non_empty is None:
        return estimator
    if "non_empty" in own:
        return estimator.set_params(non_empty=non_empty)
    return NonEmptyClassifier(estimator) if non_empty else estimator


def with_params(estimator, params, folder):
    """Return a copy of an unfitted estimator with some parameters replaced."""
    return clone(estimator).set_params(**inner_names(estimator, {k: _value(v, folder) for k, v in params.items()}))


def inner_names(estimator, table):
    """The keys of `table`, parameters of a plan's method, as `estimator` calls them."""
    prefix = "estimator__" if isinstance(estimator, NonEmptyClassifier) else ""
    return {f"{prefix}{key}": value for key, value in table.items()}


def _value(value: Any, folder):
    if isinstance(value, dict):
        return build(value["use"], value.get("params", {}), folder)
    return [_value(one, folder) for one in value] if isinstance(value, list) else value


def _module(place, use, folder):
    try:
        return _from_file(_file(place, folder)) if place.endswith(".py") else importlib.import_module(place)
    except PlanError:
        raise
    except (Exception, SystemExit) as error:  # importing runs foreign code, which may raise anything
        raise PlanError(f"{use!r} cannot be imported: {in_words(error)}.") from error


def _file(place, folder):
    path = Path(folder, place).resolve()
    if not path.is_file():
        raise PlanError(f"the file {place!r} is not there; looked for {str(path)!r}.")
    return path


def _from_file(path):
    """Import a file under a name that depends on its place and content, with its folder on the import path."""
    name = f"rbrl_plan_{path.stem}_{hashlib.sha256(str(path).encode() + path.read_bytes()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _classes(module):
    return [name for name, value in vars(module).items() if isinstance(value, type)]
