"""Probabilities from scores: what they mean, for any classifier, any target, rare and constant and missing labels."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rbrl
from rbrl import BinaryRelevance, CalibratedMultiLabelClassifier, MLkNN, RBRLClassifier
from rbrl.decision import LabelThresholds, NonEmpty, TopK
from rbrl.metrics import expected_calibration_error, log_loss, scores_of
from rbrl.selection.thresholds import check_targets, held_out_scores
from rbrl.targets import SignedTargets

X, Y = make_multilabel_classification(n_samples=240, n_features=8, n_classes=5, n_labels=2, random_state=0)
METHODS = pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
CLASSIFIERS = [
    RBRLClassifier(),
    RBRLClassifier(kernel="rbf"),
    MLkNN(),
    OneVsRestClassifier(LogisticRegression()),
    MultiOutputClassifier(LogisticRegression()),
    RandomForestClassifier(n_estimators=20, random_state=0),
    KNeighborsClassifier(),
    make_pipeline(StandardScaler(), RBRLClassifier()),
]


@METHODS
@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda c: type(c).__name__)
def test_any_classifier_has_probabilities(classifier, method):
    model = CalibratedMultiLabelClassifier(classifier, method).fit(X[:160], Y[:160])
    P = model.predict_proba(X[160:])
    assert P.shape == (80, 5)
    assert np.all((P > 0) & (P < 1))
    # Better than the shares of the labels, which know nothing of the rows.
    assert log_loss(Y[160:], P) < log_loss(Y[160:], np.tile(Y[:160].mean(axis=0), (80, 1)))


@METHODS
def test_probabilities_rise_with_the_scores(method):
    model = CalibratedMultiLabelClassifier(RBRLClassifier(), method).fit(X, Y)
    scores, P = scores_of(model.estimator_, X), model.predict_proba(X)
    order = np.argsort(scores, axis=0)
    assert np.all(np.diff(np.take_along_axis(P, order, axis=0), axis=0) >= 0)


def test_they_mean_what_they_say_where_the_sigmoid_of_scores_does_not():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((1500, 6))
    labels = (rng.random((1500, 8)) < 1 / (1 + np.exp(2 - rows @ rng.standard_normal((6, 8))))).astype(int)
    model = CalibratedMultiLabelClassifier(RBRLClassifier()).fit(rows[:500], labels[:500])
    naive = 1 / (1 + np.exp(-model.estimator_.decision_function(rows[500:])))
    ours, theirs = (expected_calibration_error(labels[500:], P) for P in (model.predict_proba(rows[500:]), naive))
    assert ours < 0.3 * theirs


@pytest.mark.parametrize("classifier", [RBRLClassifier(), MultiOutputClassifier(LogisticRegression())])
def test_constant_labels_have_their_share(classifier):
    labels = Y.copy()
    labels[:, 1], labels[:, 3] = 0, 1
    model = CalibratedMultiLabelClassifier(classifier).fit(X, labels)
    P = model.predict_proba(X[:3])
    share = (labels.sum() + 1) / (labels.size + 2)
    np.testing.assert_allclose(P[:, 1], share / 241, rtol=1e-12)
    np.testing.assert_allclose(P[:, 3], (240 + share) / 241, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X[:3])[:, [1, 3]], [[0, 1]] * 3)


def test_a_label_that_a_fold_lacks_is_left_out_of_that_fold():
    labels = Y.copy()
    labels[:, 2] = 0
    labels[7, 2] = 1
    _, targets, _ = check_targets(RBRLClassifier(), X, labels)
    scores = held_out_scores(MultiOutputClassifier(LogisticRegression()), X, labels, targets, KFold(3))
    lacking = np.isnan(scores)
    assert lacking[:80, 2].all()
    assert not lacking[80:, 2].any()
    assert not lacking[:, [0, 1, 3, 4]].any()
    model = CalibratedMultiLabelClassifier(MultiOutputClassifier(LogisticRegression()), cv=KFold(3)).fit(X, labels)
    assert np.all(model.predict_proba(X)[:, 2] < 0.05)


def test_missing_labels_are_left_out():
    rng = np.random.default_rng(3)
    holes = np.where(rng.random(Y.shape) < 0.3, np.nan, Y)
    holes[:, 4] = np.nan
    with pytest.warns(UserWarning, match="label"):  # nobody looked at the last one
        model = CalibratedMultiLabelClassifier(RBRLClassifier(), cv=3).fit(X, holes)
    assert model.takes_missing
    P = model.predict_proba(X)
    assert log_loss(holes, P, missing="ignore") < 0.6
    known = ~np.isnan(holes)
    share = (np.nansum(holes) + 1) / (known.sum() + 2)
    np.testing.assert_allclose(P[:, 4], share, rtol=1e-12)


def test_weights_are_repetitions():
    """With folds that keep copies of a row together, and models solved to the end."""
    weights = np.arange(60) % 3
    rows, labels = X[:60], Y[:60]
    folds = [(np.flatnonzero(np.arange(60) % 4 != k), np.flatnonzero(np.arange(60) % 4 == k)) for k in range(4)]
    place = np.repeat(np.arange(60), weights)
    repeated = [tuple(np.flatnonzero(np.isin(place, part)) for part in fold) for fold in folds]
    tight = OneVsRestClassifier(LogisticRegression(tol=1e-12))
    plain = BinaryRelevance(LogisticRegression(tol=1e-12, max_iter=1000))
    weighted = CalibratedMultiLabelClassifier(plain, cv=folds).fit(rows, labels, sample_weight=weights)
    copies = CalibratedMultiLabelClassifier(plain, cv=repeated).fit(rows[place], labels[place])
    np.testing.assert_allclose(weighted.predict_proba(rows), copies.predict_proba(rows), atol=1e-6)
    with pytest.warns(UserWarning, match=r"OneVsRestClassifier\.fit takes no sample_weight"):
        CalibratedMultiLabelClassifier(tight, cv=folds).fit(rows, labels, sample_weight=weights + 1)


@METHODS
@pytest.mark.parametrize(
    "target",
    [Y, 2 * Y - 1, Y[:, :1], sparse.csr_array(Y), Y[:, 0], np.array(["no", "yes"])[Y[:, 0]]],
    ids=["0/1", "-1/+1", "one label", "sparse", "1-D", "words"],
)
def test_answers_come_in_the_coding_of_the_target(target, method):
    model = CalibratedMultiLabelClassifier(RBRLClassifier(), method, non_empty=False).fit(X, target)
    found, P = model.predict(X), model.predict_proba(X)
    assert type(found) is type(target)
    assert found.dtype == target.dtype
    assert P.shape == (target.shape if target.ndim == 2 else (240, 2))
    values = found.toarray() if sparse.issparse(found) else found
    likely = P > 0.5 if target.ndim == 2 else P[:, 1] > 0.5
    np.testing.assert_array_equal(values == np.unique(values)[-1], likely)


@pytest.mark.parametrize("classifier", [RBRLClassifier(), RandomForestClassifier(n_estimators=10, random_state=0)])
def test_several_classes_sum_to_one(classifier):
    classes = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    model = CalibratedMultiLabelClassifier(classifier).fit(X, classes)
    P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X), model.classes_[P.argmax(axis=1)])


def test_a_class_that_a_fold_lacks_is_no_obstacle():
    classes = np.argmax(X[:, :3], axis=1)
    classes[:3] = 3
    folds = [(np.arange(60, 240), np.arange(60)), (np.arange(60), np.arange(60, 240))]
    P = CalibratedMultiLabelClassifier(RBRLClassifier(), cv=folds).fit(X, classes).predict_proba(X)
    assert P.shape == (240, 4)
    assert np.isfinite(P).all()


def test_rules_of_decision_cut_the_probabilities():
    plain = CalibratedMultiLabelClassifier(RBRLClassifier(), non_empty=False).fit(X, Y)
    P = plain.predict_proba(X)
    np.testing.assert_array_equal(plain.predict(X), P > 0.5)
    filled = CalibratedMultiLabelClassifier(RBRLClassifier(), rule=NonEmpty()).fit(X, Y).predict(X)
    np.testing.assert_array_equal(filled, plain.set_params(non_empty=True).predict(X))
    assert filled.any(axis=1).all()
    two = CalibratedMultiLabelClassifier(RBRLClassifier(), rule=TopK(2)).fit(X, Y)
    assert np.all(two.predict(X).sum(axis=1) == 2)
    cut = CalibratedMultiLabelClassifier(RBRLClassifier(), rule=LabelThresholds(), non_empty=False).fit(X, Y)
    np.testing.assert_allclose(cut.predict_proba(X), P)
    np.testing.assert_array_equal(cut.predict(X), cut.rule_.thresholds_ < P - 0.5)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_warm_starts_end_at_the_same_scores(kernel):
    model = RBRLClassifier(kernel=kernel, tol=1e-9)
    targets = SignedTargets().fit(Y)
    cold = held_out_scores(model, X, Y, targets, 4)
    warm = held_out_scores(model, X, Y, targets, 4, fitted=RBRLClassifier(kernel=kernel, tol=1e-9).fit(X, Y))
    # A gap of 1e-9 of the objective leaves scores near 1 free in their fifth digit.
    np.testing.assert_allclose(warm, cold, atol=1e-3)


@METHODS
def test_a_model_file_keeps_it(method, tmp_path):
    names = [f"label {j}" for j in range(5)]
    model = CalibratedMultiLabelClassifier(RBRLClassifier(), method).fit(X, pd.DataFrame(Y, columns=names))
    assert model.label_names_.tolist() == names
    rbrl.save(model, tmp_path / "model")
    loaded = rbrl.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.label_names_.tolist() == names


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match=r"method parameter .* 'sigmoid', 'isotonic'\. Got 'platt'"):
        CalibratedMultiLabelClassifier(RBRLClassifier(), "platt").fit(X, Y)
    with pytest.raises(ValueError, match="cv must put every row into one test part"):
        CalibratedMultiLabelClassifier(RBRLClassifier(), cv=ShuffleSplit(3, random_state=0)).fit(X, Y)
    with pytest.raises(ValueError, match="every label is constant"):
        CalibratedMultiLabelClassifier(MultiOutputClassifier(LogisticRegression())).fit(X, np.zeros_like(Y))


def test_methods_with_probabilities_of_their_own():
    knn = MLkNN().fit(X, Y)
    np.testing.assert_allclose(knn.predict_proba(X) - 0.5, knn.decision_function(X))
    logistic = BinaryRelevance(LogisticRegression()).fit(X, Y)
    expected = np.column_stack(
        [P[:, 1] for P in MultiOutputClassifier(LogisticRegression()).fit(X, Y).predict_proba(X)]
    )
    np.testing.assert_allclose(logistic.predict_proba(X), expected, rtol=1e-6)
    assert not hasattr(BinaryRelevance(), "predict_proba")
    assert not hasattr(RBRLClassifier(), "predict_proba")


@pytest.mark.parametrize("container", ["default", "pandas"])
def test_the_best_labels_are_the_most_probable_ones_with_their_probabilities(container):
    names = ["sea", "sun", "hill", "rain", "wind"]
    model = CalibratedMultiLabelClassifier(RBRLClassifier(), rule=LabelThresholds(), cv=3, label_names=names).fit(X, Y)
    P = model.predict_proba(X)
    labels, found = model.set_output(predict=container).predict_top(X, 2)
    np.testing.assert_array_equal(found, -np.sort(-P, axis=1)[:, :2])
    assert labels[:, 0].tolist() == [names[j] for j in P.argmax(axis=1)]
    pipeline = make_pipeline(StandardScaler(), model).fit(X, Y)
    np.testing.assert_array_equal(
        rbrl.predict_top(pipeline, X, 1)[1][:, 0], np.asarray(pipeline.predict_proba(X)).max(1)
    )


def test_the_most_probable_classes_have_the_probabilities_of_classes():
    classes = np.array(["a", "b", "c"])[Y[:, :3].argmax(axis=1)]
    model = CalibratedMultiLabelClassifier(RBRLClassifier(), cv=3).fit(X, classes)
    labels, found = model.predict_top(X, 3)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert labels[:, 0].tolist() == model.classes_[model.predict_proba(X).argmax(axis=1)].tolist()
