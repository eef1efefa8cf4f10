"""Callbacks of a fit, and its display in a notebook."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])
# A function that is called after a step, perhaps with its gap; it returns True to stop.
StepCallback: TypeAlias = Callable[..., bool]

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
            """Return the method unchanged.

            Examples
            --------
            >>> from rbrl.estimators.display import with_callbacks
            >>> with_callbacks(len)([1, 2])
            2
            """
            return method


class FitTask:
    """A fit as scikit-learn's callbacks see it: a task with a step for every certified gap, or for every model.

    The number of steps is not known in advance. Use it in a method that `with_callbacks` decorates.

    Parameters
    ----------
    model : estimator
        Estimator on which callbacks may have been set.
    X, y : Any
        Data of the fit.
    step : str
        Name of a step.

    Attributes
    ----------
    callback : callable or None
        Function to call after every step, with its gap if it has one; it returns True to stop. None means that no
        callbacks have been set.

    Examples
    --------
    >>> from rbrl import RBRLClassifier
    >>> from rbrl.estimators.display import FitTask
    >>> task = FitTask(RBRLClassifier(), [[0.0], [1.0]], [[0, 1], [1, 0]], "certified step")
    >>> task.callback is None
    True
    >>> task.end()
    """

    def __init__(self, model: Any, X: Any, y: Any, step: str) -> None:
        self.model = model
        self.data = {"X": X, "y": y}
        self.step = step
        self.callback: StepCallback | None = None
        if getattr(model, "_skl_callbacks", None):
            support: Any = TakesCallbacks
            self._task = support._init_callback_context(model, max_subtasks=None)
            self._task.call_on_fit_task_begin(estimator=model, **self.data)
            self.callback = self._report_step

    def _report_step(self, gap: float | None = None) -> bool:
        """Report a step to the callbacks; return whether one of them asks to stop.

        Without a gap, the step is a model of a search.
        """
        step = self._task.subcontext(task_name=self.step)
        metadata = None if gap is None else {"gap": gap}
        step.call_on_fit_task_begin(estimator=self.model)
        return bool(step.call_on_fit_task_end(estimator=self.model, metadata=metadata))

    def end(self) -> None:
        """Report the end of the fit to the callbacks."""
        if self.callback is not None:
            self._task.call_on_fit_task_end(estimator=self.model, **self.data, reconstruction_attributes={})


def show_certificate(model: Any) -> Any:
    """Return the box of a model in a notebook, with the certified gap and the rank once it is fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from rbrl import RBRLClassifier
    >>> model = RBRLClassifier().fit(np.eye(4), np.array([[0, 1], [1, 1], [1, 0], [0, 1]]))
    >>> "certified gap" in model._repr_html_(), "certified gap" in RBRLClassifier()._repr_html_()
    (True, False)
    """
    # If this module moves in a later version, scikit-learn catches the ImportError and shows its own box.
    from sklearn.utils._repr_html.estimator import _VisualBlock

    formats = {"gap_": "certified gap {:.2g}", "rank_": "rank {}"}
    # Computing a rank that is not stored yet may take longer than the fit.
    known = {name: value for name, value in vars(model).items() if name in formats}
    caption = ", ".join(text.format(known[name]) for name, text in formats.items() if name in known)
    return _VisualBlock(
        "single", model, names=type(model).__name__, name_details=str(model), name_caption=caption or None
    )
