"""From a plan's words to an estimator. Import paths run code: only what a plan names is imported."""

import hashlib
import importlib
import importlib.util
import inspect
import json
import sys
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
from rbrl.exceptions import PlanError, in_words
from rbrl.experiments.command import CommandClassifier, words_of
from rbrl.experiments.plan import Plan
from rbrl.experiments.specs import DataSpec, MethodSpec
from rbrl.metrics import get_metric, probabilities_of, scores_of
from rbrl.registry import REGISTRY
from rbrl.selection.cv import RBRLClassifierCV

# A plan has no None; these words say what it means for parameters of these names.
NONE_IN_WORDS = {"gamma": "paper", "intercept_ridge": "ridge"}
# Any scikit-learn classifier of label matrices: of rbrl, of another package, or of a user's file.
Classifier: TypeAlias = Any


class NonEmptyClassifier(MetaEstimatorMixin, ClassifierMixin, Estimator):
    """Give a row for which the classifier predicts no label the label that it scores best, the first on ties.

    Parameters
    ----------
    estimator : scikit-learn classifier
        With `decision_function` or `predict_proba`.

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
        """Whether labels may be missing: as the classifier says."""
        return bool(getattr(self.estimator, "takes_missing", False))

    def fit(self, X: Matrix, y: Array) -> Self:
        """Fit a copy of the classifier.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples, n_labels)

        Returns
        -------
        NonEmptyClassifier
        """
        self.estimator_ = clone(self.estimator).fit(X, y)
        return self

    def decision_function(self, X: Matrix) -> Array:
        """The classifier's scores.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_labels)
        """
        return scores_of(self.estimator_, X)

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Matrix) -> Array:
        """The classifier's probabilities that labels are relevant, if it has any.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_labels)
        """
        return probabilities_of(self.estimator_, X)

    def predict(self, X: Matrix) -> Array:
        """Labels, 0/1, none of the rows empty.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_labels)
        """
        labels = self.estimator_.predict(X)
        labels = labels.toarray() if sparse.issparse(labels) else np.array(labels)
        empty = np.flatnonzero(~(labels > 0).any(axis=1))
        if len(empty):  # only these rows are scored
            labels[empty] = best_where_empty(labels[empty], self.decision_function(X[empty]))
        return labels


def find_class(use: str, folder: str | Path) -> type[Classifier]:
    """Return the class that `use` names.

    Parameters
    ----------
    use : str
        A name of the registry, "module:Class" or "file.py:Class".
    folder : path
        Where relative file paths start.

    Returns
    -------
    type

    Examples
    --------
    >>> find_class("brl", ".").__name__, find_class("sklearn.svm:SVC", ".").__name__
    ('BRLClassifier', 'SVC')
    """
    place, colon, name = use.rpartition(":")
    if not colon:
        if use not in REGISTRY:
            words = "a class of your own is 'module:Class' or 'file.py:Class'"
            raise PlanError(f"no method is called {use!r}; {words}.{hint(use, REGISTRY)}")
        return REGISTRY[use]
    with _foreign_code(f"{use!r} cannot be imported"):
        module = _from_file(_file(place, folder)) if place.endswith(".py") else importlib.import_module(place)
    if not hasattr(module, name):
        classes = [one for one, value in vars(module).items() if isinstance(value, type)]
        raise PlanError(f"{use!r}: {place} has no {name!r}.{hint(name, classes)}")
    return getattr(module, name)


def code_of(use: str, params: Mapping[str, Any], folder: str | Path) -> str | None:
    """Content hash of the files that a method is made of, so that an edited one is run anew; None if it has none.

    Parameters
    ----------
    use, folder
        As for `find_class`.
    params : mapping
        Of a command, the words that are files in the folder count; its interpreter, elsewhere, does not.
    """
    place, _, _ = use.rpartition(":")
    files = [_file(place, folder)] if place.endswith(".py") else []
    if "command" in params and issubclass(find_class(use, folder), CommandClassifier):
        home = Path(folder).resolve()
        files += [path for word in words_of(params["command"]) if _is_file_in(home, path := Path(home, word).resolve())]
    if not files:
        return None
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:20]


def _is_file_in(home: Path, path: Path) -> bool:
    return path.is_file() and path.is_relative_to(home)


def check_method(plan: Plan, method: MethodSpec) -> None:
    """Refuse a class, a parameter, or an estimator in a parameter that does not exist, and a rule that needs another fit.

    Parameters
    ----------
    plan : Plan
    method : MethodSpec
        One of the plan's.
    """
    where, cls = f"methods.{method.name}", find_class(method.use, plan.folder)
    if method.also_judged:
        _check_rules(f"{where}.also_judged", cls, [name for rule in method.also_judged for name in rule["params"]])
    is_open = getattr(cls, "takes_any_parameter", False) or not issubclass(cls, BaseEstimator)
    known = None if is_open else getattr(cls, "_get_param_names")()  # noqa: B009
    for data in plan.datasets:
        params, grids = method.on(data)
        for name in (*params, *(name for grid in grids for name in grid)):
            # A name with `__` reaches inside, and only its start is checked.
            if known is not None and name.partition("__")[0] not in known:
                words = f"has no parameter {name!r}.{hint(name, known)}"
                raise PlanError(f"{where} (on {data.name}): {cls.__name__} {words}")
        for value in params.values():
            if isinstance(value, dict):
                with _foreign_code(f"{where}: {value['use']!r} cannot be made with these params"):
                    _value(value, plan.folder)
        if grids:
            _check_criterion(plan, method, where, params)


def _check_criterion(plan: Plan, method: MethodSpec, where: str, params: dict[str, Any]) -> None:
    """Refuse to choose parameters by probabilities that the method does not have."""
    criterion = plan.tuning.criterion
    names = [name for name in ([criterion] if isinstance(criterion, str) else criterion) if name != "mean_rank"]
    needed = [name for name in names if get_metric(name).needs == "probabilities"]
    if not needed:
        return
    with _foreign_code(f"{where}: {method.use!r} cannot be made with these params"):
        estimator = build(method.use, params, plan.folder, non_empty=method.non_empty)
    if not hasattr(estimator, "predict_proba"):
        words = f"parameters cannot be chosen by {', '.join(needed)}: {type(estimator).__name__} has no probabilities"
        raise PlanError(f"{where}: {words}. Use 'rbrl:CalibratedMultiLabelClassifier' around it, or another criterion.")


def check_missing_labels(plan: Plan, data: DataSpec, Y: Array) -> None:
    """Refuse methods that cannot learn where labels are missing; those that can have `takes_missing`, a true attribute.

    Parameters
    ----------
    plan : Plan
    data : DataSpec
        One of the plan's.
    Y : array
        Its labels, NaN where nobody looked.
    """
    n_missing, refused = np.count_nonzero(np.isnan(Y)), []
    for method in plan.methods if n_missing else ():
        with _foreign_code(f"methods.{method.name}: {method.use!r} cannot be made"):
            estimator = build(method.use, method.on(data)[0], plan.folder, non_empty=method.non_empty)
        refused += [] if getattr(estimator, "takes_missing", False) else [method.name]
    if refused:
        able = ", ".join(name for name, cls in REGISTRY.items() if cls.takes_missing)
        raise PlanError(
            f"the data set {data.name!r} has {n_missing} of {Y.size} labels missing, and these methods need all of them: "
            f"{', '.join(refused)}. Leave them out, or fill the labels in; methods that learn from the others: {able}."
        )


def _check_rules(where: str, cls: type[Classifier], names: Iterable[str]) -> None:
    """Refuse parameters that a fitted model cannot be given, and a class that does not say which these are."""
    known = getattr(cls, "decision_parameters", None)
    if known is None:
        words = "does not say what may change after a fit; it has no decision_parameters."
        raise PlanError(f"{where}: {cls.__name__} {words}")
    for name in names:
        if name not in known:
            raise PlanError(f"{where}: {name!r} would need another fit of {cls.__name__}; allowed: {', '.join(known)}.")


@contextmanager
def _foreign_code(what: str) -> Iterator[None]:
    """Tell whatever a class of a plan raises, be it imported or made, as an error of the plan."""
    try:
        yield
    except PlanError:
        raise
    except (Exception, SystemExit) as error:
        raise PlanError(f"{what}: {in_words(error)}.") from error


@cache
def first_defaults() -> dict[str, dict[str, Any]]:
    """Defaults of every class of rbrl when it first had them, by the name of the class.

    A run's identity leaves them out, so that stores of all versions stay usable. They never change: a parameter that is
    new gets its first default added to the file, and one whose default changes keeps its old one there.
    """
    return json.loads(Path(__file__).with_name("first_defaults.json").read_text(encoding="utf-8"))


def resolved(use: str, params: dict[str, Any], folder: str | Path, but: Collection[str] = ()) -> dict[str, Any]:
    """The parameters of a plan, and those defaults of the class that are no longer its first ones.

    Where a plan states the first default of a parameter that has another one now, it is left out: what was done when it was
    the default is the same run. Of classes that are not rbrl's nothing is known; a class of a file that takes its
    parameters from one of rbrl's has its defaults, too. Parameters that are estimators are resolved in their turn.

    Parameters
    ----------
    use, params, folder
        As for `build`.
    but : collection of str
        Parameters that are always set in another way, so that their defaults do not count.

    Examples
    --------
    >>> resolved("rank-svm", {"C": 2.0}, ".")
    {'C': 2.0}
    >>> resolved("cpnl", {"ridge": 1.0, "intercept_ridge": "ridge", "gamma": "paper"}, ".")
    {'non_empty': 'auto'}
    """
    cls = find_class(use, folder)
    found = {name: _resolved_value(value, folder) for name, value in params.items()}
    first = _first_defaults_of(cls)
    for name, parameter in inspect.signature(cls.__init__).parameters.items() if first else ():
        if parameter.default is parameter.empty:
            continue
        default = json.loads(json.dumps(parameter.default, default=repr))
        first_default = first.get(name, parameter.empty)
        if name in found:
            is_none = found[name] == NONE_IN_WORDS.get(name) and first_default is None
            if is_none or (default != first_default and found[name] == first_default):
                del found[name]
        elif name not in but and default != first_default:
            found[name] = default
    if cls is RBRLClassifierCV and found.get("estimator") is None:
        # What it searches is a classifier with defaults of its own; the three weights are the search's.
        found |= _resolved_default("rbrl", folder, ("ridge", "ranking", "nuclear"))
    return found


def _resolved_default(use: str, folder: str | Path, but: Collection[str]) -> dict[str, Any]:
    params = resolved(use, {}, folder, but)
    return {"estimator": {"use": use, "params": params}} if params else {}


def _first_defaults_of(cls: type[Classifier]) -> dict[str, Any]:
    """Those of the class, or of one of rbrl's whose parameters it has inherited; empty for others."""
    of_rbrl = (one for one in getattr(cls, "__mro__", ()) if one.__module__.startswith("rbrl."))
    names = (one.__name__ for one in of_rbrl if one.__init__ is cls.__init__)
    return next((first_defaults()[name] for name in names if name in first_defaults()), {})


def _resolved_value(value: Any, folder: str | Path) -> Any:
    if isinstance(value, list):
        return [_resolved_value(one, folder) for one in value]
    if not isinstance(value, dict):
        return value
    params = resolved(value["use"], value.get("params", {}), folder)
    return {**value, "params": params} if params else value


def build(
    use: str, params: dict[str, Any], folder: str | Path, *, non_empty: bool | None = None, seed: int | None = None
) -> Classifier:
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

    Returns
    -------
    classifier

    Examples
    --------
    >>> build("rakel", {"estimator": {"use": "br", "params": {"C": 2.0}}}, ".", seed=3)
    RAkEL(estimator=BinaryRelevance(C=2.0), random_state=3)
    """
    cls = find_class(use, folder)
    estimator = cls(**{key: _value(value, folder) for key, value in params.items()})
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
    """The keys of `table`, parameters of a plan's method, as `estimator` calls them.

    Parameters
    ----------
    estimator : classifier
        As `build` gives it.
    table : dict

    Returns
    -------
    dict
    """
    prefix = "estimator__" if isinstance(estimator, NonEmptyClassifier) else ""
    return {f"{prefix}{key}": value for key, value in table.items()}


def _value(value: Any, folder: str | Path) -> Any:
    if isinstance(value, dict):
        return build(value["use"], value.get("params", {}), folder)
    return [_value(one, folder) for one in value] if isinstance(value, list) else value


def _file(place: str, folder: str | Path) -> Path:
    path = Path(folder, place).resolve()
    if not path.is_file():
        raise PlanError(f"the file {place!r} is not there; looked for {str(path)!r}.")
    return path


def _from_file(path: Path) -> ModuleType:
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
