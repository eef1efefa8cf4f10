"""Inputs that users pass by mistake: each error message names the object, the rule, the value and the solution."""

import warnings
from typing import NamedTuple

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import rbrl
from rbrl import experiments, metrics
from rbrl.exceptions import GuessWarning


class Wrong(NamedTuple):
    """A wrong input, and the parts that the message of its error must have.

    Attributes
    ----------
    code : str
        Line that a user could type.
    owner : str
        Name of the argument, parameter, function or class that is wrong.
    rule : str
        Words of the rule.
    value : str
        Part of the value that the user passed, or of its description.
    solution : str
        Words of the way out.
    """

    code: str
    owner: str
    rule: str
    value: str
    solution: str

    def missing_parts(self, message: str) -> list[str]:
        """Return the names of the parts that a message lacks."""
        parts = self._asdict()
        return [name for name in ("owner", "rule", "value", "solution") if parts[name] not in message]


WRONG = [
    # Features: types of columns
    Wrong("RBRLClassifier().fit(with_dates, Y)", "'day'", "numbers", "datetime64", "dt."),
    Wrong("RBRLClassifier().fit(with_durations, Y)", "'age'", "numbers", "timedelta64", "total_seconds()"),
    Wrong("RBRLClassifier().fit(dates_only, Y)", "'day'", "numbers", "datetime64", "dt."),
    Wrong("RBRLClassifier().fit(pl_dates, Y)", "'day'", "numbers", "Datetime", "dt."),
    Wrong("RBRLClassifier().fit(X.astype('datetime64[s]'), Y)", "X", "numbers", "datetime64", "astype"),
    Wrong("RBRLClassifier().fit(pl_frame.lazy(), Y)", "X", "rows in memory", "LazyFrame", ".collect()"),
    Wrong("RBRLClassifier().fit(pl_frame, pl_labels.lazy())", "y", "rows in memory", "LazyFrame", ".collect()"),
    Wrong("model.predict(pl_frame.lazy())", "X", "rows in memory", "LazyFrame", ".collect()"),
    Wrong("RBRLClassifier().fit({'a': X[:, 0], 'b': X[:, 1]}, Y)", "X", "matrix", "dict", "pandas.DataFrame(X)"),
    Wrong("RBRLClassifier().fit([{'a': 1.0, 'b': 2.0}] * 30, Y)", "X", "matrix", "dict", "DictVectorizer"),
    Wrong("RBRLClassifier().fit(with_objects, Y)", "'tags'", "numbers", "list", "drop"),
    Wrong("RBRLClassifier().fit(X + 1j, Y)", "X", "real", "complex", "X.real"),
    Wrong("RBRLClassifier().fit(X, Y + 0j)", "y", "0/1", "complex", "y.real"),
    # Features: shapes
    Wrong("RBRLClassifier().fit(frame[[]], Y)", "X", "at least one column", "(30, 0)", "columns"),
    Wrong("RBRLClassifier().fit(X[:, :0], Y)", "X", "at least one column", "(30, 0)", "columns"),
    Wrong("RBRLClassifier().fit(X[:0], Y[:0])", "X", "at least one row", "(0, 4)", "rows"),
    Wrong("model.predict(X[:0])", "X", "at least one row", "(0, 4)", "rows"),
    Wrong("RBRLClassifier().fit(X[:, :, None], Y)", "X", "2-D", "(30, 4, 1)", "reshape"),
    Wrong("model.predict(X[0])", "X", "2-D", "(4,)", "reshape(1, -1)"),
    Wrong("RBRLClassifier().fit(X, Y[:20])", "y", "as many rows", "20 rows of y", "splitting X and y together"),
    Wrong("model.predict(X[:, :2])", "X", "4 features", "2 features", "columns"),
    Wrong("RBRLClassifier().fit(X, Y, sample_weight=np.ones(7))", "sample_weight", "30", "(7,)", "one weight per row"),
    Wrong("RBRLClassifier().fit(X, Y, sample_weight=-np.ones(30))", "sample_weight", ">= 0", "-1", "0 leaves a row out"),
    Wrong("RBRLClassifier().fit(None, Y)", "X", "matrix", "None", "n_samples"),
    Wrong("RBRLClassifier().fit(X)", "y", "labels", "None", "fit(X, y)"),
    Wrong("RBRLClassifier().fit('train.csv', Y)", "X", "matrix", "'train.csv'", "rbrl.datasets.load_file"),
    Wrong("RBRLClassifier().fit(pandas.Series(X[:, 0]), Y)", "X", "2-D", "Series", "to_frame()"),
    # Features: values
    Wrong("RBRLClassifier().fit(with_nan, Y)", "X", "NaN", "'wind'", "SimpleImputer"),
    Wrong("RBRLClassifier().fit(np.where(X > 10, X, np.nan), Y)", "X", "NaN", "column 0", "SimpleImputer"),
    Wrong("RBRLClassifier().fit(np.where(X > 10, X, np.inf), Y)", "X", "finite", "inf", "np.clip"),
    Wrong("RBRLClassifier().fit(X * 1e300, Y)", "ridge='auto'", "finite median", "Got inf", "scale X"),
    Wrong("model.predict(np.where(X > 10, X, np.nan))", "X", "NaN", "column 0", "SimpleImputer"),
    # Names of columns
    Wrong("RBRLClassifier().fit(twice, Y)", "X", "differ", "'wind'", "rename"),
    Wrong("RBRLClassifier().fit(X, labels_twice)", "y", "differ", "'sea'", "rename"),
    Wrong("RBRLClassifier().fit(frame, Y).predict(frame[['sun', 'wind', 'rain', 'snow']])", "X", "order",
          "'sun'", "X[model.feature_names_in_]"),
    Wrong("RBRLClassifier().fit(table, Y).predict(table.select(['sun', 'wind', 'rain', 'snow']))", "X", "order",
          "'sun'", "X.select(model.feature_names_in_"),
    Wrong("RBRLClassifier().fit(frame, Y).predict(frame.rename(columns={'sun': 'Sun'}))", "X", "columns of fit",
          "Sun", "rename"),
    Wrong("RBRLClassifier(label_names=['a', 'b']).fit(X, Y)", "label_names", "name for each label", "2 names", "3"),
    # Labels
    Wrong("RBRLClassifier().fit(X, Y * 3)", "y", "0/1 or -1/+1", "3", "(y == 3).astype(int)"),
    Wrong("RBRLClassifier().fit(X, Y * 0.4)", "y", "0/1 or -1/+1", "0.4", "(y > threshold).astype(int)"),
    Wrong("RBRLClassifier().fit(X, np.where(Y, 'yes', 'no'))", "y", "0/1", "'yes'", "y == 'yes'"),
    Wrong("RBRLClassifier().fit(X, X[:, 0] + 0.5)", "y", "0/1 or -1/+1", "continuous", "threshold"),
    Wrong("RBRLClassifier().fit(X, Y[:, :, None])", "y", "2-D", "(30, 3, 1)", "reshape"),
    Wrong("RBRLClassifier().fit(X, [{'sea': 1, 'sun': 0}] * 30)", "y", "label", "dict", "pandas.DataFrame"),
    Wrong("MLkNN().fit(X, np.where(Y, 1, np.nan))", "MLkNN", "known", "NaN", "RBRLClassifier"),
    # Parameters
    Wrong("RBRLClassifier(ridge=-1).fit(X, Y)", "ridge", ">= 0", "-1", "'auto'"),
    Wrong("RBRLClassifier(ridge='1').fit(X, Y)", "ridge", "finite number", "'1'", "1"),
    Wrong("RBRLClassifier(kernel='gauss').fit(X, Y)", "kernel", "one of", "'gauss'", "'rbf'"),
    Wrong("RBRLClassifier().set_params(lambda1=1)", "RBRLClassifier", "Valid parameters", "lambda1", "ridge"),
    Wrong("RBRLClassifier(solver='newton').fit(X, Y)", "solver", "one of", "'newton'", "'quasi-newton'"),
    # States
    Wrong("RBRLClassifier().predict(X)", "RBRLClassifier", "fitted", "not fitted", "fit"),
    Wrong("rbrl.save(RBRLClassifier(), folder / 'm.rbrl')", "RBRLClassifier", "fitted", "not fitted", "fit"),
    Wrong("model.predict_proba(X)", "RBRLClassifier", "predict_proba", "probabilities", "CalibratedMultiLabelClassifier"),
    Wrong("CalibratedMultiLabelClassifier(LogisticRegression()).fit(X, Y)", "LogisticRegression", "multi-label",
          "one label", "BinaryRelevance(LogisticRegression())"),
    Wrong("TunedThresholdClassifier(SVC()).fit(X, Y)", "SVC", "multi-label", "one label", "BinaryRelevance(SVC())"),
    Wrong("BinaryRelevance(estimator=LogisticRegression).fit(X, Y)", "estimator", "instance", "LogisticRegression",
          "LogisticRegression()"),
    Wrong("RAkEL(estimator=StandardScaler()).fit(X, Y)", "estimator", "classifier", "StandardScaler", "LogisticRegression"),
    # Metrics
    Wrong("metrics.coverage(Y[0], X[0, :3])", "Y", "matrix", "(3,)", "Y.reshape(1, -1)"),
    Wrong("metrics.hamming_loss(Y[:, 0], Y[:, 0])", "Y", "matrix", "(30,)", "reshape(-1, 1)"),
    Wrong("metrics.hamming_loss([['sea'], []], [['sea'], ['sun']])", "Y", "0/1", "'sea'", "MultiLabelBinarizer"),
    Wrong("metrics.hamming_loss(Y, model.decision_function(X))", "labels", "0 and 1", "values", "model.predict(X)"),
    Wrong("metrics.log_loss(Y, model.decision_function(X))", "probabilities", "between 0 and 1", "from",
          "CalibratedMultiLabelClassifier"),
    Wrong("metrics.hamming_loss(probabilities, model.predict(X))", "Y", "0 and 1", "0.", "first argument"),
    Wrong("metrics.ranking_loss(Y, Y[:20])", "Y and scores", "shape", "(20, 3)", "same rows"),
    Wrong("rbrl.evaluate(Y, model.predict(X))", "ranking_loss", "scores", "scores=None", "decision_function"),
    Wrong("rbrl.evaluate(Y, model.predict(X), metrics=['hamming'])", "metric", "one of", "'hamming'", "'hamming_loss'"),
    # Plans
    Wrong("run({'datasets': ['yeast'], 'methods': ['rbl']})", "method", "Allowed", "'rbl'", "'rbrl'"),
    Wrong("run({'datasets': ['yeast'], 'methods': {'a': {'use': 'sklearn.linear_model:LogisticRegression'}}})",
          "methods.a", "multi-label", "LogisticRegression", "BinaryRelevance"),
    Wrong("Plan.from_dict({'datasets': ['yeest'], 'methods': ['rbrl']})", "datasets", "catalogue", "'yeest'", "'yeast'"),
    Wrong("run({'datasets': ['yeast'], 'methods': {'rbrl': {'params': {'ridg': 1}}}})", "rbrl",
          "parameter", "ridg", "'ridge'"),
]  # fmt: skip


def make_namespace(folder):
    """Return the names that the lines of code use."""
    X, Y = make_multilabel_classification(30, 4, n_classes=3, random_state=0)
    X = X + 1.0
    features = ["wind", "sun", "rain", "snow"]
    names = ["sea", "sun", "hill"]
    frame = pandas.DataFrame(X, columns=features)
    days = pandas.date_range("2026-01-01", periods=30)
    twice = frame.set_axis(["wind", "wind", "rain", "snow"], axis=1)
    return {
        "X": X, "Y": Y, "folder": folder, "frame": frame, "twice": twice,
        "labels_twice": pandas.DataFrame(Y, columns=["sea", "sea", "hill"]),
        "with_dates": frame.assign(day=days), "with_durations": frame.assign(age=days - days[0]),
        "dates_only": pandas.DataFrame({"day": days}),
        "with_objects": frame.assign(tags=[["a"]] * 30), "with_nan": frame.where(frame.wind > 7),
        "pl_frame": polars.DataFrame(X, schema=features), "pl_labels": polars.DataFrame(Y, schema=names),
        "pl_dates": polars.DataFrame({"wind": X[:, 0], "day": days.to_numpy()}),
        "table": pyarrow.table(frame), "model": rbrl.RBRLClassifier().fit(X, Y), "probabilities": Y * 0.4 + 0.1,
        "np": np, "sparse": sparse, "pandas": pandas, "rbrl": rbrl, "metrics": metrics,
        "LogisticRegression": LogisticRegression, "SVC": SVC, "StandardScaler": StandardScaler, "Plan": experiments.Plan,
        "run": lambda plan: experiments.execute(experiments.Plan.from_dict(plan), experiments.Store(folder)),
        **{name: getattr(rbrl, name) for name in rbrl.__all__ if name[0].isupper()},
    }  # fmt: skip


def message_of(wrong, folder):
    """Return the message of the error that a wrong input raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuessWarning)
        with pytest.raises(Exception) as caught:
            eval(wrong.code, make_namespace(folder))
    return str(caught.value)


@pytest.mark.parametrize("wrong", WRONG, ids=[wrong.code for wrong in WRONG])
def test_messages_name_object_rule_value_and_solution(wrong, tmp_path):
    message = message_of(wrong, tmp_path)
    assert not wrong.missing_parts(message), message
