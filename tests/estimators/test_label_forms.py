"""Labels of every form are learned alike, and predictions come in the type and the container of the labels."""

import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone

from rbrl import (
    BRLClassifier,
    CalibratedMultiLabelClassifier,
    MLkNN,
    RBRLClassifier,
    TunedThresholdClassifier,
    evaluate,
    explain,
    load,
    save,
)
from rbrl.datasets import Dataset
from rbrl.decision import LabelThresholds
from rbrl.exceptions import GuessWarning, InvalidLabelsError
from rbrl.metrics import brier_score, hamming_loss, ranking_loss
from rbrl.selection import PathSearchCV
from rbrl.splits import IterativeStratifiedKFold

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 4))
Y = (X[:, :3] + 0.3 * RNG.standard_normal((30, 3)) > 0).astype(np.int64)
UNKNOWN = np.zeros(Y.shape, dtype=bool)
UNKNOWN[3, 1] = UNKNOWN[7, 2] = True
NAN = np.where(UNKNOWN, np.nan, Y)
FRAME = pd.DataFrame(Y, columns=["sea", "sun", "wind"])
WITH_NA = pd.DataFrame(NAN, columns=FRAME.columns)
WITH_NULL = pl.DataFrame({name: [None if v != v else int(v) for v in WITH_NA[name]] for name in WITH_NA})
LINEAR = BRLClassifier(ridge=0.1)
MODELS = {
    "linear": LINEAR,
    "neighbours": MLkNN(3),
    "tuned": TunedThresholdClassifier(LINEAR, cv=2),
    "calibrated": CalibratedMultiLabelClassifier(LINEAR, cv=2),
    "search": PathSearchCV(BRLClassifier(), {"ridge": [0.1]}, cv=2),
}
FORMATS = ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"]
COMPLETE = {
    "masked array without a mask": (np.ma.array(Y), np.int64),
    "objects": (Y.astype(object), np.int64),
    "boolean objects": (Y.astype(bool).astype(object), np.bool_),
    "booleans": (Y.astype(bool), np.bool_),
    "categories": (FRAME.astype("category"), np.int64),
    "Int64": (FRAME.astype("Int64"), np.int64),
    "Int8": (FRAME.astype("Int8"), np.int8),
    "boolean": (FRAME.astype("boolean"), np.bool_),
    "Float32": (FRAME.astype("Float32"), np.float32),
    "arrow": (FRAME.astype("int16[pyarrow]"), np.int16),
    "polars": (pl.DataFrame(FRAME.to_dict("list")), np.int64),
    "polars booleans": (pl.DataFrame(FRAME.to_dict("list")).cast(pl.Boolean), np.bool_),
}
INCOMPLETE = {
    "masked integers": (np.ma.array(Y, mask=UNKNOWN), np.int64),
    "masked booleans": (np.ma.array(Y.astype(bool), mask=UNKNOWN), np.bool_),
    "masked objects": (np.ma.array(Y.astype(object), mask=UNKNOWN), np.int64),
    "None": (np.where(UNKNOWN, None, Y.astype(object)).tolist(), np.int64),
    "NaN": (NAN.astype(np.float32), np.float32),
    "Int64": (WITH_NA.astype("Int64"), np.int64),
    "Int16": (WITH_NA.astype("Int16"), np.int16),
    "boolean": (WITH_NA.astype("boolean"), np.bool_),
    "Float64": (WITH_NA.astype("Float64"), np.float64),
    "arrow": (WITH_NA.astype("Int8").astype("int8[pyarrow]"), np.int8),
    "categories": (WITH_NA.astype("Int64").astype("category"), np.int64),
    "polars": (WITH_NULL, np.int64),
    "polars booleans": (WITH_NULL.cast(pl.Boolean), np.bool_),
}


def fitted(name, labels, *args):
    return clone(MODELS[name]).fit(X, labels, *args)


@cache
def fitted_to_array(name, low):
    """Return a model of the labels as an array, in which `low` is the label that a row does not have."""
    return fitted(name, np.where(Y > 0, 1, low))


# Arrays and matrices have the same formats: matrices of one format stand for the others without --soak.
@pytest.mark.parametrize(
    ("fmt", "kind"),
    [
        *((fmt, "array") for fmt in FORMATS),
        *(pytest.param(fmt, "matrix", marks=[pytest.mark.soak] * (fmt != "lil")) for fmt in FORMATS),
    ],
)
@pytest.mark.parametrize("name", MODELS)
def test_sparse_labels_of_every_format(name, fmt, kind, tmp_path):
    container, expected_container = getattr(sparse, f"{fmt}_{kind}"), getattr(sparse, f"csr_{kind}")
    for low, labels in ((0, container(Y)), (-1, container(2 * Y - 1))):
        model = fitted(name, labels)
        expected = fitted_to_array(name, low)
        save(model, tmp_path / "model")
        for one in (model, load(tmp_path / "model")):
            answer = one.predict(X)
            assert type(answer) is expected_container
            assert answer.dtype == labels.dtype
            np.testing.assert_array_equal(answer.toarray(), expected.predict(X))
        assert model.score(X, labels) == expected.score(X, labels.toarray())
        assert model.predict_sets(X) == expected.predict_sets(X)


@pytest.mark.parametrize("form", COMPLETE)
@pytest.mark.parametrize("name", MODELS)
def test_labels_of_every_form(name, form):
    labels, dtype = COMPLETE[form]
    answer = fitted(name, labels).predict(X)
    assert type(answer) is np.ndarray
    assert answer.dtype == dtype
    np.testing.assert_array_equal(answer, fitted_to_array(name, 0).predict(X))
    assert fitted(name, labels).score(X, labels) == fitted(name, Y).score(X, Y)


@pytest.mark.parametrize("form", INCOMPLETE)
@pytest.mark.parametrize("name", MODELS)
def test_missing_labels_of_every_form(name, form):
    labels, dtype = INCOMPLETE[form]
    if name == "neighbours":
        with pytest.raises(InvalidLabelsError, match=r"needs to know every label of every row\. Got y with 2 of 90"):
            fitted(name, labels)
        return
    answer = fitted(name, labels).predict(X)
    assert answer.dtype == dtype
    np.testing.assert_array_equal(answer, fitted(name, NAN).predict(X))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("target", "dtype"),
    [
        (Y[:, 0].astype(object), np.int64),
        (FRAME["sea"].astype("Int64"), np.int64),
        (FRAME["sea"].astype("boolean"), np.bool_),
        (FRAME["sea"].astype("category"), np.int64),
        (pl.Series(Y[:, 0]), np.int64),
        (np.ma.array(Y[:, 0]), np.int64),
    ],
    ids=["objects", "Int64", "boolean", "category", "polars", "masked"],
)
def test_classes_of_every_form(name, target, dtype):
    model = fitted(name, target)
    np.testing.assert_array_equal(model.predict(X), fitted(name, Y[:, 0]).predict(X))
    assert model.predict(X).dtype == model.classes_.dtype == dtype


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "target", [np.ma.array(Y[:, 0], mask=UNKNOWN[:, 1]), np.ma.array(Y[:, 0].astype(str), mask=UNKNOWN[:, 1])]
)
def test_a_masked_class_is_a_missing_class(name, target):
    with pytest.raises(ValueError, match="contains NaN"):
        fitted(name, target)


@pytest.mark.parametrize("name", MODELS)
def test_masked_features_are_refused(name):
    masked = np.ma.array(X, mask=np.arange(X.size).reshape(X.shape) == 5)
    message = re.escape("X must have a value in every entry. Got a masked array with 1 of 120 entries masked; fill")
    model = fitted(name, Y)
    for method in (model.predict, model.decision_function, lambda rows: fitted(name, Y).fit(rows, Y)):
        with pytest.raises(ValueError, match=message):
            method(masked)
    np.testing.assert_array_equal(model.predict(np.ma.array(X)), model.predict(X))


def test_masked_weights_are_refused():
    weights = np.ma.array(np.ones(30), mask=np.arange(30) == 3)
    with pytest.raises(ValueError, match="sample_weight must have a value in every entry"):
        fitted("linear", Y, weights)
    with pytest.raises(ValueError, match="sample_weight must have a value in every entry"):
        fitted("calibrated", Y, weights)
    with pytest.raises(ValueError, match="label_mask must have a value in every entry"):
        BRLClassifier().fit(X, Y, label_mask=np.ma.array(~UNKNOWN, mask=UNKNOWN))


def test_parts_have_labels_of_every_form():
    expected = BRLClassifier(tol=1e-8).fit([(X[:15], NAN[:15]), (X[15:], NAN[15:])])
    masked = np.ma.array(Y, mask=UNKNOWN)
    parts = [(X[:15], masked[:15]), (X[15:], masked[15:])]
    np.testing.assert_array_equal(BRLClassifier(tol=1e-8).fit(parts).coef_, expected.coef_)
    full = BRLClassifier(tol=1e-8).fit([(X[:15], Y[:15]), (X[15:], Y[15:])])
    for container in (sparse.lil_array, sparse.dok_matrix):
        parts = [(X[:15], container(Y[:15])), (X[15:], container(Y[15:]))]
        np.testing.assert_array_equal(BRLClassifier(tol=1e-8).fit(parts).coef_, full.coef_)
    with pytest.raises(ValueError, match="part 0 holds NaN"):
        BRLClassifier().fit([(np.ma.array(X, mask=X > 2), Y)])


def test_decision_rules_and_splits_take_masks():
    masked = np.ma.array(Y, mask=UNKNOWN)
    rules = (LabelThresholds().fit(X[:, :3], labels) for labels in (masked, NAN))
    np.testing.assert_array_equal(*(rule.thresholds_ for rule in rules))
    with pytest.raises(ValueError, match=r"scores must be numbers\. Got NaN in 2 entries"):
        LabelThresholds().fit(np.ma.array(X[:, :3], mask=UNKNOWN), Y)
    everywhere = np.ma.array(np.ones((30, 1), dtype=int), mask=np.arange(30)[:, None] >= 10)
    for _, test in IterativeStratifiedKFold(5).split(X, everywhere):
        assert np.count_nonzero(test < 10) == 2


def test_a_masked_row_is_not_explained():
    model = fitted("linear", Y)
    with pytest.raises(ValueError, match="x must have a value in every entry"):
        explain(model, np.ma.array(X[0], mask=[True, False, False, False]))


def test_a_data_set_of_masked_arrays_has_missing_values():
    data = Dataset(np.ma.array(X, mask=X > 1), np.ma.array(Y, mask=UNKNOWN))
    np.testing.assert_array_equal(np.isnan(data.X), X > 1)
    assert data.missing_labels == 2


SHUFFLED = RNG.permutation(30)
ROWS = pd.DataFrame(X, columns=list("abcd"), index=[f"row {i:02}" for i in range(30)])
LABELS = FRAME.set_index(ROWS.index)


@pytest.mark.parametrize("name", MODELS)
def test_rows_in_another_order_are_refused(name):
    expected = fitted(name, Y).predict(X)
    other = LABELS.iloc[SHUFFLED]
    message = re.escape(
        f"X and y must have the same rows in the same order. Got the index 'row 00' in X and {other.index[0]!r} in y, in "
        "row 0; pass y.loc[X.index]."
    )
    for labels in (other, other["sea"].map({0: "no", 1: "yes"}), other["sea"].map({0: [], 1: ["sea"]})):
        with pytest.raises(InvalidLabelsError, match=message):
            fitted(name, Y).fit(ROWS, labels)
    model = fitted(name, Y).fit(ROWS, other.loc[ROWS.index])
    np.testing.assert_array_equal(model.predict(ROWS), expected)
    with pytest.raises(InvalidLabelsError, match=message):
        model.score(ROWS, other)


def test_weights_and_masks_in_another_order_are_refused():
    weights = pd.Series(np.arange(1.0, 31), index=ROWS.index)
    mask = LABELS.astype(bool) | True
    for model in (BRLClassifier(), PathSearchCV(BRLClassifier(), {"ridge": [0.1]}, cv=2)):
        model.fit(ROWS, LABELS, weights, label_mask=mask)
        with pytest.raises(InvalidLabelsError, match="X and sample_weight must have the same rows"):
            model.fit(ROWS, LABELS, weights[::-1])
        with pytest.raises(InvalidLabelsError, match="y and sample_weight must have the same rows"):
            model.fit(X, LABELS, weights[::-1])
        with pytest.raises(InvalidLabelsError, match="X and label_mask must have the same rows"):
            model.fit(ROWS, LABELS, label_mask=mask[::-1])
        with pytest.raises(InvalidLabelsError, match="y and label_mask must have their columns in the same order"):
            model.fit(ROWS, LABELS, label_mask=mask[["sun", "sea", "wind"]])
    with pytest.raises(InvalidLabelsError, match="X and y must have the same rows"):
        BRLClassifier(ridge=1.0).partial_fit(ROWS, LABELS[::-1])
    with pytest.raises(InvalidLabelsError, match="X and sample_weight must have the same rows"):
        CalibratedMultiLabelClassifier(BRLClassifier()).fit(ROWS, LABELS, weights[::-1])
    with pytest.raises(InvalidLabelsError, match="X and Y must have the same rows"):
        Dataset(ROWS, LABELS[::-1])


NUMBERED = ROWS.set_index(np.arange(30) * 3 + 1)


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        (ROWS, FRAME),
        (ROWS.iloc[SHUFFLED].reset_index(drop=True), LABELS.iloc[SHUFFLED]),
        (NUMBERED, FRAME),
        (NUMBERED.iloc[SHUFFLED], FRAME.iloc[SHUFFLED]),
        (ROWS.iloc[SHUFFLED], FRAME.iloc[SHUFFLED]),
        (ROWS, Y),
        (X, LABELS.iloc[SHUFFLED]),
        (ROWS.set_index(np.zeros(30)), FRAME.set_index(np.zeros(30))),
        (ROWS, pl.DataFrame(FRAME.to_dict("list"))),
    ],
    ids=["no index of y", "no index of X", "numbers", "split numbers", "split names", "array", "rows", "one", "polars"],
)
def test_indexes_that_tell_nothing_are_allowed(rows, labels):
    expected = BRLClassifier().fit(np.asarray(rows), np.asarray(labels)).coef_
    np.testing.assert_array_equal(BRLClassifier().fit(rows, labels).coef_, expected)


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        (ROWS.iloc[SHUFFLED].reset_index(drop=True), FRAME.iloc[SHUFFLED]),
        (NUMBERED.iloc[SHUFFLED][:15], FRAME.set_index(NUMBERED.index).iloc[SHUFFLED][15:]),
        (ROWS.iloc[SHUFFLED][:15], LABELS.iloc[SHUFFLED][15:]),
        (ROWS.iloc[SHUFFLED][:20], LABELS.iloc[SHUFFLED][5:25]),
    ],
    ids=["0 to n shuffled", "test labels", "test labels by name", "some in common"],
)
def test_indexes_that_sort_the_rows_differently_are_refused(rows, labels):
    with pytest.raises(InvalidLabelsError, match="must have the same rows in the same order"):
        BRLClassifier().fit(rows, labels)


def test_metrics_take_masks_and_refuse_another_order():
    predicted = 1 - LABELS
    masked = np.ma.array(Y, mask=UNKNOWN)
    with pytest.raises(InvalidLabelsError, match="Got NaN in 2 of 90 entries"):
        evaluate(masked, predicted)
    for options in ({"labels": Y}, {"scores": X[:, :3], "metrics": ["ranking_loss"]}):
        options = {"metrics": ["hamming_loss", "f1_macro"], "missing": "ignore"} | options
        assert evaluate(masked, **options) == evaluate(NAN, **options)
    for name, metric in {"labels": hamming_loss, "scores": ranking_loss, "probabilities": brier_score}.items():
        assert 0 <= metric(LABELS, predicted) <= 1
        with pytest.raises(InvalidLabelsError, match=f"Y and {name} must have the same rows"):
            metric(LABELS, predicted[::-1])
        with pytest.raises(InvalidLabelsError, match=f"Y and {name} must have their columns in the same order"):
            metric(LABELS, predicted[["sun", "sea", "wind"]])
        with pytest.raises(ValueError, match=f"{name} must have a value in every entry"):
            metric(Y, masked)


JOINED = {
    ",": ["sea,sun", "sun", "wind, sea", "sea", "wind"],
    ";": ["sea;sun", "sun", "sun;wind", "wind"],
    "|": ["Action|Drama", "Drama", "Comedy|Drama", "Action", "Action|Comedy|Romance", "Comedy"],
}


@pytest.mark.parametrize("separator", JOINED)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("container", [list, np.array, pd.Series, pl.Series, lambda y: pd.DataFrame({"tags": y})])
def test_joined_texts_are_refused(name, separator, container):
    y = JOINED[separator] * 6
    message = f"Got {y[0]!r} in row 0, which looks like labels joined by {separator!r}; pass y.str.split({separator!r})"
    with pytest.raises(InvalidLabelsError, match=re.escape(message)):
        fitted(name, Y).fit(X[: len(y)], container(y[: len(X)]))


@pytest.mark.parametrize(
    "names",
    [
        ["Smith, John", "Smith, Anna", "Doe, John", "Doe"],
        ["Thomas, Dylan", "Dylan, Bob", "James, Henry", "Wilde, Oscar", "Woolf, Virginia"],
        ["Portland, OR", "Portland, ME", "Salem, OR", "New York, New York"],
        ["Pain", "Pain, chronic", "Fatigue", "Fatigue, chronic", "Fever"],
        ["Other", "Retail, Other", "Food, Other", "Retail, Clothing", "Food, Dairy"],
        ["Electronics", "Electronics|Phones", "Electronics|Phones|Smart", "Garden|Tools", "Garden"],
        ["0,5", "1,0", "1,5", "5,0", "0"],
        ["a,b", "c"],
        ["no", "yes"],
    ],
)
def test_names_of_classes_may_have_separators(names):
    y = np.resize(names, 30)
    assert BRLClassifier().fit(X, y).classes_.tolist() == sorted(names)


@pytest.mark.parametrize("container", [list, np.array, pd.Series, pl.Series])
@pytest.mark.parametrize("separator", JOINED)
@pytest.mark.parametrize("name", MODELS)
def test_few_texts_that_may_join_labels_are_classes_with_a_warning(name, separator, container):
    y = [f"a{separator}b", *"cdcdcd"]
    way_out = f"pass y.str.split({separator!r}) of a series, or [text.split({separator!r}) for text in y]"
    with pytest.warns(GuessWarning, match=re.escape(f"'a{separator}b' in row 0 of y is taken for")) as caught:
        fitted(name, Y).fit(X[: len(y)], container(y))
    assert all(way_out in str(w.message) for w in caught if w.category is GuessWarning)
    assert {w.filename for w in caught if w.category is GuessWarning} == {__file__}


def test_a_list_of_two_texts_does_not_become_classes_silently():
    with pytest.warns(GuessWarning, match="'a,b' in row 0 of y is taken for the name of a class"):
        model = BRLClassifier().fit(X[:2], ["a,b", "c"])
    assert model.classes_.tolist() == ["a,b", "c"]


@pytest.mark.parametrize(
    "names", [["Smith, John", "Doe, Anna"], ["1,5", "2"], ["Pain, chronic", "Pain, chronic", "Fever"], ["a,", "b"]]
)
def test_few_names_of_classes_need_no_warning(names):
    with warnings.catch_warnings():
        warnings.simplefilter("error", GuessWarning)
        BRLClassifier().fit(X[: len(names)], names)


def test_classes_that_are_known_are_not_taken_for_joined_labels():
    """The same texts may look otherwise in a few rows: these are looked at only where classes are learned."""
    names = ["blue", "red, blue", "x, y", "z, w"]
    y = np.resize(names, 60)
    few = np.flatnonzero(np.isin(y, ["blue", "red, blue"]))
    model, stream = BRLClassifier().fit(X, y[: len(X)]), BRLClassifier(ridge=1.0)
    few = few[few < len(X)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", GuessWarning)
        assert 0 <= model.score(X[few], y[few]) <= 1
        stream.partial_fit(X[few], y[few], classes=names).partial_fit(X[:1], ["x, y"])
    assert stream.classes_.tolist() == names


def test_joined_texts_that_are_split_are_label_sets():
    y = pd.Series(JOINED["|"] * 5)
    model = RBRLClassifier().fit(X, y.str.split("|"))
    assert model.label_names_.tolist() == ["Action", "Comedy", "Drama", "Romance"]
