"""Metrics label by label, and the report that is scikit-learn's where both can be had."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import metrics as theirs

from rbrl.exceptions import InvalidLabelsError
from rbrl.metrics import auc_macro, classification_report, evaluate, f1_macro

NAMES = ["sea", "sand", "sun", "a label with a long name", "wind", "fog", "rain"]


@pytest.fixture
def unknown(prediction):
    """The prediction with a fifth of its labels unknown, all of the last."""
    Y, labels, scores = prediction
    Z = np.where(np.random.default_rng(0).random(Y.shape) < 0.2, np.nan, Y)
    Z[:, -1], Z[5] = np.nan, np.nan
    return Z, labels, scores


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_the_report_is_that_of_scikit_learn(random_prediction):
    rng = np.random.default_rng(1)
    for digits in (1, 2, 5):
        for _ in range(20):
            Y, labels, _ = random_prediction(rng)
            names = NAMES[: Y.shape[1]]
            expected = theirs.classification_report(Y, labels, target_names=names, digits=digits)
            assert classification_report(Y, labels, label_names=names, digits=digits) == expected
            sparse_report = classification_report(sparse.csr_array(Y), sparse.csr_array(labels), digits=digits)
            assert sparse_report == theirs.classification_report(Y, labels, digits=digits)


def test_the_frame_has_the_numbers_of_scikit_learn(prediction):
    Y, labels, scores = prediction
    frame = evaluate(Y, labels, scores, convention="sklearn", per_label=True, label_names=NAMES)
    assert list(frame.columns) == ["precision", "recall", "f1", "auc", "support", "known"]
    assert list(frame.index) == NAMES
    found = theirs.precision_recall_fscore_support(Y, labels, average=None, zero_division=0)
    for name, values in zip(["precision", "recall", "f1", "support"], found):
        np.testing.assert_allclose(frame[name], values, rtol=1e-14)
    np.testing.assert_allclose(frame["auc"], theirs.roc_auc_score(Y, scores, average=None), rtol=1e-13)
    assert (frame["known"] == len(Y)).all()


def test_the_mean_of_the_frame_is_the_macro_average(unknown):
    Y, labels, scores = unknown
    frame = evaluate(Y, labels, scores, missing="ignore", per_label=True)
    assert list(frame.index) == list(range(Y.shape[1]))
    assert frame["f1"].mean() == pytest.approx(f1_macro(Y, labels, missing="ignore"), rel=1e-13)
    areas = frame.loc[frame["known"] > 0, "auc"].fillna(0.0)  # the paper counts labels without a pair 0
    assert areas.mean() == pytest.approx(auc_macro(Y, scores, missing="ignore"), rel=1e-13)


def test_what_nobody_looked_at_is_left_out(unknown):
    Y, labels, scores = unknown
    frame = evaluate(Y, labels, scores, missing="ignore", per_label=True, label_names=NAMES)
    seen = ~np.isnan(Y)
    for j, name in enumerate(NAMES[:-1]):
        rows = seen[:, j]
        alone = evaluate(Y[rows][:, [j]], labels[rows][:, [j]], scores[rows][:, [j]], per_label=True).iloc[0]
        pd.testing.assert_series_equal(frame.loc[name], alone, check_names=False)
    assert frame.loc["rain", ["precision", "recall", "f1", "auc"]].isna().all()
    assert frame["known"].tolist() == seen.sum(axis=0).tolist()
    with pytest.raises(InvalidLabelsError, match='pass missing="ignore"'):
        evaluate(Y, labels, per_label=True)


def test_the_report_counts_what_is_known(unknown):
    Y, labels, scores = unknown
    lines = classification_report(Y, labels, scores, label_names=NAMES, missing="ignore").splitlines()
    assert lines[0].split() == ["precision", "recall", "f1-score", "auc", "support", "known"]
    assert lines[8].split() == ["rain", "nan", "nan", "nan", "nan", "0", "0"]
    macro = next(line.split() for line in lines if "macro" in line)
    assert macro[4] == f"{f1_macro(Y, labels, missing='ignore'):.2f}"
    assert macro[-1] == str(np.count_nonzero(~np.isnan(Y)))
    micro = next(line.split() for line in lines if "micro" in line)
    assert len(micro) == len(macro) - 1, "a micro average has no area under a curve here"


@pytest.mark.parametrize("library", [pd, pl])
def test_names_come_from_frames_and_must_agree(prediction, library):
    Y, labels, scores = prediction
    columns = {name: column.tolist() for name, column in zip(NAMES, Y.T)}
    frame = library.DataFrame(columns)
    other = library.DataFrame({name: columns[name] for name in NAMES[::-1]})
    assert list(evaluate(frame, labels, per_label=True).index) == NAMES
    assert evaluate(frame, labels, scores) == evaluate(Y, labels, scores)
    assert NAMES[3] in classification_report(labels, frame)
    for options in ({"per_label": True}, {"metrics": ["hamming_loss"]}):
        with pytest.raises(InvalidLabelsError, match=r"Y and labels must have the same labels.*Got 'sea' and 'rain'"):
            evaluate(frame, other, **options)
    with pytest.raises(InvalidLabelsError, match=r"label_names and Y must have the same labels.*Got 6 and 7"):
        evaluate(frame, labels, per_label=True, label_names=NAMES[:-1])


def test_missing_values_of_a_frame_are_those_of_an_array(unknown):
    Y, labels, _ = unknown
    frame = pd.DataFrame(Y, columns=NAMES).astype("Int64")
    expected = evaluate(Y, labels, metrics=["hamming_loss", "f1_macro"], missing="ignore")
    assert evaluate(frame, labels, metrics=["hamming_loss", "f1_macro"], missing="ignore") == expected


def test_measures_are_chosen_by_name(prediction):
    Y, labels, scores = prediction
    assert list(evaluate(Y, labels, metrics=["f1", "recall"], per_label=True)) == ["f1", "recall", "support", "known"]
    assert list(evaluate(Y, scores=sparse.csr_array(scores), per_label=True)) == ["auc", "support", "known"]
    with pytest.raises(ValueError, match=r"one of precision, recall, f1, auc. Got 'coverage'"):
        evaluate(Y, labels, metrics=["coverage"], per_label=True)
    with pytest.raises(ValueError, match=r"auc compares Y with scores. Got scores=None"):
        evaluate(Y, labels, metrics=["auc"], per_label=True)
    with pytest.raises(ValueError, match="Got labels=None and scores=None"):
        evaluate(Y, per_label=True)
