"""Names of labels survive everywhere: every classifier, every form of the labels, pipelines, searches, folds and files.

It reads like a notebook: rows in a frame, a pipeline, a search, folds, a file; and every classifier that the package
exports goes through all of it, one that is added tomorrow too.
"""

import inspect
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import rbrl
from rbrl.metrics import METRICS

NAMES, FEATURES = ["sea", "sand", "sun", "wind"], ["length", "width", "height", "weight", "age"]
X, Y = make_multilabel_classification(32, 5, n_classes=4, random_state=0)
SETS = [[name for name, is_relevant in zip(NAMES, row) if is_relevant] for row in Y]
PANDAS = pd.DataFrame(X, columns=FEATURES, index=[f"row {i}" for i in range(len(X))])
MODELS = [
    found
    for name in rbrl.__all__
    if inspect.isclass(found := getattr(rbrl, name)) and issubclass(found, BaseEstimator) and hasattr(found, "predict")
] + [rbrl.selection.PathSearchCV]
# What a classifier needs to be made, and what makes it quick.
GIVEN = {
    "estimator": rbrl.BRLClassifier(), "param_grid": {"ridge": [10.0, 1.0]}, "ridges": [10.0], "rankings": [1.0],
    "nuclears": [0.1, 1.0], "cv": 2, "n_chains": 2, "random_state": 0,
}  # fmt: skip
# How rows and labels come, and the parameter that names what has no names.
FORMS = {
    "pandas": (PANDAS, pd.DataFrame(Y, columns=NAMES, index=PANDAS.index), None),
    "polars": (pl.DataFrame(X, schema=FEATURES), pl.DataFrame(Y, schema=NAMES), None),
    "arrays": (X, Y, NAMES),
    "sparse": (sparse.csr_array(X), sparse.csr_array(Y), NAMES),
    "label sets": (X, SETS, NAMES),
}


def made(cls, label_names=None):
    parameters = inspect.signature(cls).parameters
    needed = {name: value for name, value in GIVEN.items() if name in parameters}
    if "estimator" in needed and parameters["estimator"].default is None:
        del needed["estimator"]  # it has one of its own
    return cls(**needed, label_names=label_names) if "label_names" in parameters else cls(**needed)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def check_names(model, rows):
    """A model, a pipeline or a search says names, and they are those of the columns of its answers."""
    assert rbrl.label_names(model) == NAMES
    labels = model.predict(rows)
    labels = labels.toarray() if sparse.issparse(labels) else labels
    assert rbrl.predict_sets(model, rows) == [[NAMES[j] for j in np.flatnonzero(row)] for row in labels]
    best, scores = rbrl.predict_top(model, rows, 2)
    assert best.shape == scores.shape == (len(X), 2)
    assert set(best.ravel().tolist()) <= set(NAMES)
    assert (scores[:, 0] >= scores[:, 1]).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cls", MODELS, ids=lambda cls: cls.__name__)
def test_a_model_and_a_pipeline_know_the_names(cls, form):
    rows, labels, names = FORMS[form]
    pipeline = make_pipeline(MaxAbsScaler(), made(cls, names)).fit(rows, labels)
    check_names(pipeline, rows)
    model, scaled = pipeline[-1], pipeline[0].transform(rows)
    check_names(model, scaled)
    assert model.predict_sets(scaled) == rbrl.predict_sets(pipeline, rows)
    assert list(model.label_names_) == NAMES
    assert model.classes_.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("cls", "form"),
    [(cls, "pandas") for cls in MODELS] + [(rbrl.RBRLClassifier, form) for form in ("polars", "arrays", "sparse")],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_a_search_and_its_folds_know_the_names(cls, form):
    rows, labels, names = FORMS[form]
    pipeline = make_pipeline(MaxAbsScaler(), made(cls, names))
    scoring, folds = METRICS["hamming_loss"], KFold(2)
    search = GridSearchCV(pipeline, {}, scoring=scoring, cv=folds, error_score="raise").fit(rows, labels)
    check_names(search, rows)
    if sparse.issparse(labels):  # which scikit-learn's cross_validate refuses
        labels = labels.toarray()
    found = cross_validate(
        pipeline, rows, labels, cv=folds, scoring=scoring, return_estimator=True, error_score="raise"
    )
    assert [rbrl.label_names(model) for model in found["estimator"]] == [NAMES, NAMES]


@pytest.mark.parametrize("cls", MODELS, ids=lambda cls: cls.__name__)
def test_a_file_keeps_the_names(cls, tmp_path):
    rows, labels, _ = FORMS["pandas"]
    pipeline = make_pipeline(MaxAbsScaler(), made(cls)).fit(rows, labels)
    rbrl.save(pipeline, tmp_path / "model")
    again = rbrl.load(tmp_path / "model")
    check_names(again, rows)
    assert rbrl.predict_sets(again, rows) == rbrl.predict_sets(pipeline, rows)
    rbrl.save(pipeline[-1], tmp_path / "model")
    assert rbrl.label_names(rbrl.load(tmp_path / "model")) == NAMES


@pytest.mark.parametrize("cls", MODELS, ids=lambda cls: cls.__name__)
def test_frames_come_out_where_they_are_asked_for(cls):
    rows, labels, _ = FORMS["pandas"]
    plain = made(cls).fit(rows, labels)
    asked = clone(made(cls).set_output(predict="pandas")).fit(rows, labels)
    for method in ("predict", "decision_function", "predict_proba"):
        if not hasattr(plain, method):
            continue
        values, frame = getattr(plain, method)(rows), getattr(asked, method)(rows)
        assert isinstance(values, np.ndarray)
        assert list(frame.columns) == NAMES
        assert frame.index.equals(rows.index)
        np.testing.assert_array_equal(frame.to_numpy(), values)
        other = getattr(asked.set_output(predict="polars"), method)(rows)
        assert isinstance(other, pl.DataFrame)
        assert other.columns == NAMES
        np.testing.assert_array_equal(other.to_numpy(), values)
        asked.set_output(predict="pandas")
    assert asked.predict_sets(rows) == plain.predict_sets(rows)
    assert isinstance(asked.set_output(predict="default").predict(rows), np.ndarray)


@pytest.mark.parametrize("cls", MODELS, ids=lambda cls: cls.__name__)
def test_a_column_of_text_is_named_with_its_encoder(cls):
    # Few words would become columns of 0/1.
    rows = PANDAS.assign(colour=[f"colour {i}" for i in range(len(PANDAS))])
    with pytest.raises(ValueError, match=r"needs numbers. Got text in column 'colour' of X.*'colour', OneHotEncoder"):
        made(cls).fit(rows, Y)
    model = made(cls).fit(PANDAS, Y)
    with pytest.raises(ValueError, match=r"column 'age' of X, such as 'young'"):
        model.predict(PANDAS.assign(age=["young"] * len(PANDAS)))
