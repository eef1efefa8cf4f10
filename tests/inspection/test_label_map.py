"""A label map is the geometry of the labels' weights: inner products, factors, names and figure."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rbrl import (
    CPNL,
    MLFE,
    BinaryRelevance,
    BRLClassifier,
    MLkNN,
    RankSVM,
    RBRLClassifier,
    RBRLClassifierCV,
    TunedThresholdClassifier,
    label_map,
)

LABELS = ["sea", "sand", "sun", "sky", "snow"]


@pytest.fixture(scope="module")
def data():
    X, Y = make_multilabel_classification(n_samples=60, n_features=8, n_classes=5, random_state=0)
    return StandardScaler().fit_transform(X), Y


def products(found):
    return found.factors @ found.factors.T


@pytest.mark.parametrize(
    "model",
    [
        RBRLClassifier(ridge=1.0), CPNL(), RankSVM(C=0.1), BinaryRelevance(), BinaryRelevance(LogisticRegression()),
        make_pipeline(StandardScaler(), BRLClassifier(ridge=1.0)), OneVsRestClassifier(LogisticRegression()),
        RBRLClassifierCV(ridges=[1], rankings=[1], nuclears=[0.1], cv=2),
        TunedThresholdClassifier(BRLClassifier(ridge=1.0), cv=2),
    ],
    ids=lambda model: repr(model)[:50],
)  # fmt: skip
def test_factors_have_the_inner_products_of_the_weights(model, data):
    model.fit(*data)
    inner = model[-1] if hasattr(model, "steps") else model
    inner = getattr(inner, "best_estimator_", getattr(inner, "estimator_", inner))
    bank = hasattr(inner, "estimators_")
    W = np.vstack([one.coef_ for one in inner.estimators_]) if bank else inner.coef_
    found = label_map(model)
    size = np.linalg.norm(W) ** 2
    # Directions below 1e-6 of the largest are left out of the map.
    np.testing.assert_allclose(products(found), W @ W.T, atol=1e-11 * size)
    np.testing.assert_allclose(found.singular_values**2, np.diag(found.factors.T @ found.factors), atol=1e-11 * size)
    assert found.shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    "model", [RBRLClassifier(kernel="rbf", gamma=0.1), BinaryRelevance(kernel="rbf", gamma=0.1), MLFE()], ids=repr
)
def test_functions_of_a_kernel_model_have_those_of_the_kernel(model, data):
    X, Y = data
    model.fit(X, Y)
    A = model.dual_coef_.toarray() if hasattr(model.dual_coef_, "toarray") else model.dual_coef_
    expected = A.T @ rbf_kernel(X, gamma=model.gamma_) @ A
    # Singular values below 1e-6 of the largest, and their squares below 1e-12 of its square, are left out.
    np.testing.assert_allclose(products(label_map(model)), expected, atol=1e-10 * np.trace(expected))


def test_a_linear_kernel_has_the_map_of_its_weights(data):
    X, Y = data
    model = BRLClassifier(kernel=lambda A, B: A @ B.T, fit_intercept=False, ridge=1.0).fit(X, Y)
    W = X.T @ model.dual_coef_
    np.testing.assert_allclose(products(label_map(model)), W.T @ W, atol=1e-10 * np.linalg.norm(W) ** 2)


@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_approximated_kernels_have_weights_of_their_features(approximation, data):
    model = RBRLClassifier(kernel="rbf", approximation=approximation, n_components=20, random_state=0).fit(*data)
    W = model.feature_coef_
    np.testing.assert_allclose(products(label_map(model)), W.T @ W, atol=1e-10 * np.linalg.norm(W) ** 2)


def test_low_rank_is_seen(data):
    X, Y = data
    model = RBRLClassifier(ridge=1.0, nuclear=40.0, fit_intercept=False).fit(X, Y)
    assert 1 <= model.rank_ < Y.shape[1]
    found = label_map(model)
    assert found.factors.shape == (Y.shape[1], model.rank_)
    assert str(found).startswith(f"5 labels, weights of rank {model.rank_}")


@pytest.fixture
def made():
    """Two labels that are one, their opposite, one at a right angle, and one that nothing is known of."""
    model = BRLClassifier().fit(pd.DataFrame(np.eye(5)), pd.DataFrame(np.eye(5, dtype=int), columns=LABELS))
    model.coef_ = np.array([[2.0, 0, 0, 0, 0], [1, 0, 0, 0, 0], [-3, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0]])
    return label_map(model)


def test_by_hand(made):
    expected = np.eye(5)
    expected[0, 1] = expected[1, 0] = 1.0
    expected[2, :2] = expected[:2, 2] = -1.0
    np.testing.assert_allclose(made.similarity, expected, atol=1e-15)
    np.testing.assert_allclose(made.singular_values, [np.sqrt(14), 1.0])
    np.testing.assert_allclose(made.factors[:, 0], [-2, -1, 3, 0, 0], atol=1e-14)
    assert str(made).splitlines() == [
        "5 labels, weights of rank 2",
        "factor 1, 93% of the squared weights:  sun  against  sea",
        "factor 2, 7% of the squared weights:  sky",
        "most alike:  sea and sand +1.00, sea and sky +0.00, sea and snow +0.00",
        "most opposed:  sea and sun -1.00, sand and sun -1.00, sea and sky +0.00",
    ]


def test_frame_and_figure_have_alike_labels_together(made):
    frame = made.to_frame()
    assert sorted(frame.index) == sorted(LABELS)
    assert list(frame.index) == list(frame.columns)
    assert abs(list(frame.index).index("sea") - list(frame.index).index("sand")) == 1
    assert frame.loc["sea", "sun"] == pytest.approx(-1.0)
    _, matrix, _ = made.plot().axes
    assert [text.get_text() for text in matrix.get_yticklabels()] == list(frame.index)
    np.testing.assert_array_equal(matrix.images[0].get_array(), frame.to_numpy())


@pytest.mark.parametrize("n_labels", [1, 2, 3, 60])
def test_any_number_of_labels_is_drawn(n_labels):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 6))
    Y = (X @ rng.standard_normal((6, n_labels)) > 0).astype(int)
    found = label_map(BinaryRelevance().fit(X, Y))
    figure = found.plot()
    figure.draw_without_rendering()
    assert len(figure.axes[1].get_yticklabels()) == min(n_labels, 40)
    assert found.to_frame().shape == (n_labels, n_labels)
    assert ("most alike" in str(found)) == (n_labels > 1)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MLkNN(), "MLkNN has no scores that are sums"),
        (
            BinaryRelevance(make_pipeline(StandardScaler(), LogisticRegression())),
            "Pipeline has no scores that are sums",
        ),
        (RBRLClassifier(kernel="precomputed", fit_intercept=False), "keeps no training rows to compare"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_has_no_weights_to_compare_is_refused(model, message, data):
    X, Y = data
    X = X @ X.T if getattr(model, "kernel", None) == "precomputed" else X
    with pytest.raises(ValueError, match=message):
        label_map(model.fit(X, Y))
