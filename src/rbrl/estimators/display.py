"""What a fit shows of itself: on its way to scikit-learn's callbacks, in a notebook its gap and its rank."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])
# Told of a step, and perhaps of its gap; whether somebody asks to stop there.
Told: TypeAlias = Callable[..., bool]

if TYPE_CHECKING:

    class TakesCallbacks:
        """A classifier that callbacks can be set on."""

        def set_callbacks(self, *callbacks: Any) -> Any: ...

    def with_callbacks(method: Method) -> Method: ...

else:
    try:
        from sklearn.callback import CallbackSupportMixin as TakesCallbacks
        from sklearn.callback import with_callbacks
    except ImportError:  # before scikit-learn 1.9

        class TakesCallbacks:
            """A classifier that callbacks cannot be set on yet.

            Examples
            --------
            >>> from rbrl.estimators.display import TakesCallbacks
            >>> hasattr(TakesCallbacks(), "set_callbacks")
            False
            """

        def with_callbacks(method):
            """The method as it is.

            Examples
            --------
            >>> from rbrl.estimators.display import with_callbacks
            >>> with_callbacks(len)([1, 2])
            2
            """
            return method


class FitTask:
    """A fit as scikit-learn's callbacks see it: a task of a step for every gap that is certified, or for every model.

    How many steps there will be is known to nobody. To be used in a method that `with_callbacks` decorates.

    Parameters
    ----------
    model : estimator
        On which callbacks may have been set.
    X, y : Any
        What it is fitted to.
    step : str
        What a step is called.

    Attributes
    ----------
    told : callable or None
        To be called for every step, with its gap if it has one; True is a callback's wish to stop. None: nobody listens.

    Examples
    --------
    >>> from rbrl import RBRLClassifier
    >>> from rbrl.estimators.display import FitTask
    >>> task = FitTask(RBRLClassifier(), [[0.0], [1.0]], [[0, 1], [1, 0]], "certified step")
    >>> task.told is None  # nobody listens
    True
    >>> task.end()
    """

    def __init__(self, model: Any, X: Any, y: Any, step: str) -> None:
        self.model, self.data, self.step = model, {"X": X, "y": y}, step
        self.told: Told | None = None
        if getattr(model, "_skl_callbacks", None):
            self._task = model._init_callback_context(max_subtasks=None)
            self._task.call_on_fit_task_begin(estimator=model, **self.data)
            self.told = self._told

    def _told(self, gap: float | None = None) -> bool:
        step, metadata = self._task.subcontext(task_name=self.step), None if gap is None else {"gap": gap}
        step.call_on_fit_task_begin(estimator=self.model)
        return bool(step.call_on_fit_task_end(estimator=self.model, metadata=metadata))

    def end(self) -> None:
        """The model is fitted."""
        if self.told is not None:
            self._task.call_on_fit_task_end(estimator=self.model, **self.data, reconstruction_attributes={})


class CertifiedDisplay:
    """A classifier whose box in a notebook says how near the optimum it is, and of which rank, once it is fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl import RBRLClassifier
    >>> model = RBRLClassifier().fit(np.eye(4), np.array([[0, 1], [1, 1], [1, 0], [0, 1]]))
    >>> "certified gap" in model._repr_html_(), "certified gap" in RBRLClassifier()._repr_html_()
    (True, False)
    """

    def _sk_visual_block_(self) -> Any:
        # Where a version of scikit-learn has another home for it, it catches the ImportError and shows the box without.
        from sklearn.utils._repr_html.estimator import _VisualBlock

        facts = {"gap_": "certified gap {:.2g}", "rank_": "rank {}"}
        # A rank that nobody has asked for yet may take longer than the fit.
        known = {name: value for name, value in vars(self).items() if name in facts}
        caption = ", ".join(words.format(known[name]) for name, words in facts.items() if name in known)
        return _VisualBlock(
            "single", self, names=type(self).__name__, name_details=str(self), name_caption=caption or None
        )
