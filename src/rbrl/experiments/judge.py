"""Metrics of predictions, whose shape is checked: a method of a plan may answer anything."""

from rbrl.metrics import evaluate


def judge(Y, labels, scores, metrics, convention):
    """Return {metric name: value}; refuse predictions of another shape than Y."""
    for what, predicted in (("labels", labels), ("scores", scores)):
        if predicted is not None and predicted.shape != Y.shape:
            raise ValueError(f"the method's {what} must have the shape of Y, {Y.shape}. Got {predicted.shape} instead.")
    return evaluate(Y, labels, scores, metrics, convention)
