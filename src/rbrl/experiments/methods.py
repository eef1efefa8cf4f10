"""Estimators of a plan. Import paths run code: only the classes that a plan names are imported."""

import hashlib
import importlib
import importlib.util
import inspect
import json
import sys
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Self, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils.metaestimators import available_if

from rbrl._common.bases import BaseEstimator, ClassifierMixin, Estimator
from rbrl._common.checks import hint
from rbrl._common.typing import Array, Matrix
from rbrl.decision import non_empty as best_where_empty
from rbrl.estimators.base_learners import learns_one_label
from rbrl.exceptions import PlanError, in_words
from rbrl.experiments.command import CommandClassifier, split_command
from rbrl.experiments.plan import Plan
from rbrl.experiments.specs import DataSpec, MethodSpec
from rbrl.metrics import get_metric, probabilities_of, scores_of
from rbrl.registry import REGISTRY
from rbrl.selection import RBRLClassifierCV

# A plan cannot contain None; for these parameters a word means the same.
WORDS_FOR_NONE = {"gamma": "paper", "intercept_ridge": "ridge"}
# Any scikit-learn classifier of label matrices: of rbrl, of another package, or of a user's file.
Classifier: TypeAlias = Any
# A module is in sys.modules before its code has run, so only one thread at a time imports a file. The lock is
# reentrant, because the file may build a plan of its own.
_IMPORTING = threading.RLock()


class NonEmptyClassifier(MetaEstimatorMixin, ClassifierMixin, Estimator):
    """Classifier that gives a row without any predicted label its best label, the first on ties.

    Parameters
    ----------
    estimator : scikit-learn classifier
        Classifier with `decision_function` or `predict_proba`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, Y = np.array([[0], [1], [2]]), np.array([[0, 1, 0], [0, 1, 0], [0, 0, 1]])
    >>> NonEmptyClassifier(KNeighborsClassifier(2, weights="distance")).fit(X, Y).predict(np.array([[1.5]]))
    array([[0, 1, 0]])
    """

    estimator_: Classifier

    def __init__(self, estimator: Classifier) -> None:
        self.estimator = estimator

    @property
    def takes_missing(self) -> bool:
        """True if the classifier can learn with missing labels."""
        return bool(getattr(self.estimator, "takes_missing", False))

    def fit(self, X: Matrix, y: Array) -> Self:
        """Fit a copy of the classifier."""
        self.estimator_ = clone(self.estimator).fit(X, y)
        return self

    def decision_function(self, X: Matrix) -> Array:
        """Return the classifier's scores, of shape (n_samples, n_labels)."""
        return scores_of(self.estimator_, X)

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Matrix) -> Array:
        """Return the classifier's probabilities, of shape (n_samples, n_labels)."""
        return probabilities_of(self.estimator_, X)

    def predict(self, X: Matrix) -> Array:
        """Return 0/1 labels of shape (n_samples, n_labels), at least one per row."""
        labels = self.estimator_.predict(X)
        labels = labels.toarray() if sparse.issparse(labels) else np.array(labels)
        empty = np.flatnonzero(~(labels > 0).any(axis=1))
        if len(empty):  # only these rows need scores
            labels[empty] = best_where_empty(labels[empty], self.decision_function(X[empty]))
        return labels


def find_class(use: str, folder: str | Path) -> type[Classifier]:
    """Return the class that `use` names.

    Parameters
    ----------
    use : str
        A name of the registry, "module:Class" or "file.py:Class".
    folder : path
        Folder where relative file paths start.

    Examples
    --------
    >>> find_class("brl", ".").__name__, find_class("sklearn.svm:SVC", ".").__name__
    ('BRLClassifier', 'SVC')
    """
    place, colon, name = use.rpartition(":")
    if not colon:
        if use not in REGISTRY:
            rule = "a class of your own is 'module:Class' or 'file.py:Class'"
            raise PlanError(f"no method is called {use!r}; {rule}.{hint(use, REGISTRY)}")
        return REGISTRY[use]
    with _as_plan_error(f"{use!r} cannot be imported"):
        module = _import_file(_find_file(place, folder)) if place.endswith(".py") else importlib.import_module(place)
    if not hasattr(module, name):
        classes = [one for one, value in vars(module).items() if isinstance(value, type)]
        raise PlanError(f"{use!r}: {place} has no {name!r}.{hint(name, classes)}")
    return getattr(module, name)


def hash_code(use: str, params: Mapping[str, Any], folder: str | Path) -> str | None:
    """Return a hash of the files of a method, so that an edited method runs again; None without files.

    For a command, its words that are files in the folder count. Its interpreter, which lies
    elsewhere, does not. See `build` for the parameters.
    """
    place, _, _ = use.rpartition(":")
    files = [_find_file(place, folder)] if place.endswith(".py") else []
    if "command" in params and issubclass(find_class(use, folder), CommandClassifier):
        home = Path(folder).resolve()
        paths = [Path(home, part).resolve() for part in split_command(params["command"])]
        files += [path for path in paths if path.is_file() and path.is_relative_to(home)]
    if not files:
        return None
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:20]


def check_method(plan: Plan, method: MethodSpec) -> None:
    """Refuse unknown classes and parameters of a method, and decision rules that need another fit."""
    where = f"methods.{method.name}"
    cls = find_class(method.use, plan.folder)
    if method.also_judged:
        _check_rules(f"{where}.also_judged", cls, [name for rule in method.also_judged for name in rule["params"]])
    takes_any = getattr(cls, "takes_any_parameter", False) or not issubclass(cls, BaseEstimator)
    known = None if takes_any else getattr(cls, "_get_param_names")()  # noqa: B009
    for data in plan.datasets:
        params, grids = method.on(data)
        for name in (*params, *(name for grid in grids for name in grid)):
            # A name with `__` is a parameter of an inner estimator; only its first part is checked.
            if known is not None and name.partition("__")[0] not in known:
                problem = f"has no parameter {name!r}.{hint(name, known)}"
                raise PlanError(f"{where} (on {data.name}): {cls.__name__} {problem}")
        for value in params.values():
            if isinstance(value, dict):
                with _as_plan_error(f"{where}: {value['use']!r} cannot be made with these params"):
                    _build_value(value, plan.folder)
        if cls.__module__.startswith("sklearn."):
            _refuse_single_label(where, method.use, params, plan.folder)
        if grids:
            _check_criterion(plan, method, where, params)


def _refuse_single_label(where: str, use: str, params: dict[str, Any], folder: str | Path) -> None:
    """Refuse a classifier of scikit-learn that learns one label."""
    with _as_plan_error(f"{where}: {use!r} cannot be made with these params"):
        estimator = build(use, params, folder)
        one_label = learns_one_label(estimator)
    if one_label:
        raise PlanError(
            f"{where}.use must name a multi-label classifier. Got {use!r}, which learns one label; write use = 'br', which "
            f"is BinaryRelevance, with params.estimator = {{use = {use!r}}}."
        )


def _check_criterion(plan: Plan, method: MethodSpec, where: str, params: dict[str, Any]) -> None:
    """Refuse a criterion that needs probabilities if the method has none.

    `where` is the place of the method in the plan; `params` are its parameters on one data set.
    """
    criterion = plan.tuning.criterion
    names = [name for name in ([criterion] if isinstance(criterion, str) else criterion) if name != "mean_rank"]
    needed = [name for name in names if get_metric(name).needs == "probabilities"]
    if not needed:
        return
    with _as_plan_error(f"{where}: {method.use!r} cannot be made with these params"):
        estimator = build(method.use, params, plan.folder, non_empty=method.non_empty)
    if not hasattr(estimator, "predict_proba"):
        problem = f"parameters cannot be chosen by {', '.join(needed)}: {type(estimator).__name__} has no probabilities"
        way_out = "Wrap it in 'rbrl:CalibratedMultiLabelClassifier', or choose another criterion."
        raise PlanError(f"{where}: {problem}. {way_out}")


def check_missing_labels(plan: Plan, data: DataSpec, Y: Array) -> None:
    """Refuse methods that cannot learn with missing labels (NaN in Y) if the data set has some.

    A method that can learn with missing labels has a true attribute `takes_missing`.
    """
    n_missing = np.count_nonzero(np.isnan(Y))
    refused = []
    for method in plan.methods if n_missing else ():
        with _as_plan_error(f"methods.{method.name}: {method.use!r} cannot be made"):
            estimator = build(method.use, method.on(data)[0], plan.folder, non_empty=method.non_empty)
        refused += [] if getattr(estimator, "takes_missing", False) else [method.name]
    if refused:
        able = ", ".join(name for name, cls in REGISTRY.items() if cls.takes_missing)
        raise PlanError(
            f"the data set {data.name!r} has {n_missing} of {Y.size} labels missing, and these methods need all of them: "
            f"{', '.join(refused)}. Leave them out, or fill in the labels. Methods that accept missing labels: {able}."
        )


def _check_rules(where: str, cls: type[Classifier], names: Iterable[str]) -> None:
    """Refuse parameters that cannot change after a fit, and classes that do not say which can.

    `names` are the parameters of the rules, and `where` is their place in the plan.
    """
    known = getattr(cls, "decision_parameters", None)
    if known is None:
        problem = "does not say which parameters may change after a fit; it has no decision_parameters."
        raise PlanError(f"{where}: {cls.__name__} {problem}")
    for name in names:
        if name not in known:
            raise PlanError(f"{where}: {name!r} would need another fit of {cls.__name__}; allowed: {', '.join(known)}.")


@contextmanager
def _as_plan_error(message: str) -> Iterator[None]:
    """Turn any error of a class of a plan into a PlanError that starts with `message`."""
    try:
        yield
    except PlanError:
        raise
    except (Exception, SystemExit) as error:
        raise PlanError(f"{message}: {in_words(error)}.") from error


@cache
def first_defaults() -> dict[str, dict[str, Any]]:
    """Return the first defaults of the parameters of every class of rbrl, by the name of the class.

    The identity of a run leaves first defaults out, so that stores of all versions stay usable. They
    never change: a new parameter adds its first default to the file, and a parameter whose default
    changes keeps the old one there.
    """
    return json.loads(Path(__file__).with_name("first_defaults.json").read_text(encoding="utf-8"))


def resolve_params(use: str, params: dict[str, Any], folder: str | Path, but: Collection[str] = ()) -> dict[str, Any]:
    """Return the parameters of a plan, and the defaults of the class that differ from its first defaults.

    A parameter that the plan sets to its first default is left out if its default is another today:
    the run is the same as when this was the default. Classes that are not of rbrl have no known
    first defaults. A class in a user's file that inherits its parameters from a class of rbrl has
    the first defaults of that class. Parameters that are estimators are resolved in the same way.

    Parameters
    ----------
    use, params, folder
        See `build`.
    but : collection of str
        Parameters whose defaults do not count, because they are always set in another way.

    Examples
    --------
    >>> resolve_params("rank-svm", {"C": 2.0}, ".")
    {'C': 2.0}
    >>> resolve_params("cpnl", {"ridge": 1.0, "intercept_ridge": "ridge", "gamma": "paper"}, ".")
    {'non_empty': 'auto'}
    """
    cls = find_class(use, folder)
    resolved = {name: _resolve_value(value, folder) for name, value in params.items()}
    first = _first_defaults_of(cls)
    for name, parameter in inspect.signature(cls.__init__).parameters.items() if first else ():
        if parameter.default is parameter.empty:
            continue
        default = json.loads(json.dumps(parameter.default, default=repr))
        first_default = first.get(name, parameter.empty)
        if name in resolved:
            is_none = resolved[name] == WORDS_FOR_NONE.get(name) and first_default is None
            if is_none or (default != first_default and resolved[name] == first_default):
                del resolved[name]
        elif name not in but and default != first_default:
            resolved[name] = default
    if cls is RBRLClassifierCV and resolved.get("estimator") is None:
        # It searches over a classifier with defaults of its own; the search sets the three weights.
        inner = resolve_params("rbrl", {}, folder, ("ridge", "ranking", "nuclear"))
        resolved |= {"estimator": {"use": "rbrl", "params": inner}} if inner else {}
    return resolved


def _first_defaults_of(cls: type[Classifier]) -> dict[str, Any]:
    """Return the first defaults of the class of rbrl that defines the parameters; empty for other classes."""
    of_rbrl = (one for one in getattr(cls, "__mro__", ()) if one.__module__.startswith("rbrl."))
    names = (one.__name__ for one in of_rbrl if one.__init__ is cls.__init__)
    return next((first_defaults()[name] for name in names if name in first_defaults()), {})


def _resolve_value(value: Any, folder: str | Path) -> Any:
    if isinstance(value, list):
        return [_resolve_value(one, folder) for one in value]
    if not isinstance(value, dict):
        return value
    params = resolve_params(value["use"], value.get("params", {}), folder)
    return {**value, "params": params} if params else value


def build(
    use: str, params: dict[str, Any], folder: str | Path, *, non_empty: bool | None = None, seed: int | None = None
) -> Classifier:
    """Return an unfitted estimator.

    Parameters
    ----------
    use, folder
        Name of the class, and folder where relative paths start; see `find_class`.
    params : dict
        Parameters of the estimator; a table with the keys `use` and `params` becomes an estimator.
    non_empty : bool, optional
        Decision rule: the parameter of this name, or a `NonEmptyClassifier` around an estimator without it.
    seed : int, optional
        Value of the parameter random_state, if there is one that `params` does not set.

    Examples
    --------
    >>> build("rakel", {"estimator": {"use": "br", "params": {"C": 2.0}}}, ".", seed=3)
    RAkEL(estimator=BinaryRelevance(C=2.0), random_state=3)
    """
    cls = find_class(use, folder)
    estimator = cls(**{key: _build_value(value, folder) for key, value in params.items()})
    if not hasattr(estimator, "get_params"):
        raise PlanError(f"{use!r} must be a scikit-learn classifier with get_params. Got {cls.__name__} instead.")
    own = estimator.get_params(deep=False)
    if seed is not None and "random_state" in own and "random_state" not in params:
        estimator.set_params(random_state=seed)
    if isinstance(estimator, CommandClassifier) and estimator.folder is None:
        estimator.set_params(folder=str(Path(folder).resolve()))
    if non_empty is not None and "non_empty" in own:
        return estimator.set_params(non_empty=non_empty)
    return NonEmptyClassifier(estimator) if non_empty else estimator


def inner_names(estimator: Classifier, table: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of a plan's method under the names that the estimator of `build` gives them."""
    prefix = "estimator__" if isinstance(estimator, NonEmptyClassifier) else ""
    return {f"{prefix}{key}": value for key, value in table.items()}


def _build_value(value: Any, folder: str | Path) -> Any:
    if isinstance(value, dict):
        return build(value["use"], value.get("params", {}), folder)
    return [_build_value(one, folder) for one in value] if isinstance(value, list) else value


def _find_file(place: str, folder: str | Path) -> Path:
    """Return the full path of a file, whose place is relative to the folder; raise PlanError if there is none."""
    path = Path(folder, place).resolve()
    if not path.is_file():
        raise PlanError(f"the file {place!r} does not exist; its full path would be {str(path)!r}.")
    return path


def _import_file(path: Path) -> ModuleType:
    """Import a file under a name that depends on its place and content, with its folder on the import path."""
    name = f"rbrl_plan_{path.stem}_{hashlib.sha256(str(path).encode() + path.read_bytes()).hexdigest()[:12]}"
    with _IMPORTING:
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
