"""The terms of an explanation are the score: in every model, through every step of a pipeline, on any kind of row."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, FastICA, IncrementalPCA, TruncatedSVD
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.svm import SVC

import rbrl
from rbrl import (
    CPNL,
    MLFE,
    BinaryRelevance,
    BRLClassifier,
    CalibratedLabelRanking,
    CalibratedRankSVM,
    EnsembleOfChains,
    LabelPowerset,
    MLkNN,
    RAkEL,
    RankSVM,
    RankSVMz,
    RBRLClassifier,
    RBRLClassifierCV,
    TunedThresholdClassifier,
    explain,
)
from rbrl.decision import Chain, GlobalThreshold, LabelThresholds, NonEmpty, RowThreshold, TopK

N_LABELS = 4
NAMES = ["height", "width", "depth", "age", "mass"]
LABELS = ["sea", "sand", "sun", "sky"]


@pytest.fixture(scope="module")
def data():
    """Columns of different scales and far from 0; labels that hang on them."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((80, len(NAMES)))
    Y = (Z @ rng.standard_normal((len(NAMES), N_LABELS)) + 0.3 * rng.standard_normal((80, N_LABELS)) > 0.2).astype(int)
    Y[~Y.any(axis=1), 0] = 1
    return 10.0 + Z * [1.0, 5.0, 0.1, 2.0, 1.0], Y


@pytest.fixture(scope="module")
def frames(data):
    X, Y = data
    return pd.DataFrame(X, columns=NAMES), pd.DataFrame(Y, columns=LABELS)


TEXTS = [
    "the sea and the sand",
    "sun and sky",
    "sand in the sun",
    "a grey sky",
    "the blue sea",
    "sun sun sun",
    "sea sky",
    "x",
]
TEXT_LABELS = np.array(
    [[1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1], [0] * 4]
)


def assert_adds_up(model, x, rows):
    """Every label, and the last against the first, to 1e-9 of the sizes of the terms."""
    scores = np.atleast_2d(np.asarray(model.decision_function(rows)))
    for label in range(scores.shape[1]):
        found = explain(model, x, label)
        parts = found.to_frame()["contribution"]
        assert found.score == scores[0, label]
        assert abs(parts.sum() - scores[0, label]) <= 1e-9 * parts.abs().sum()
    last = scores.shape[1] - 1
    parts = explain(model, x, last, against=0).to_frame()["contribution"]
    assert abs(parts.sum() - (scores[0, last] - scores[0, 0])) <= 1e-9 * parts.abs().sum()


LINEAR = [
    RBRLClassifier(), BRLClassifier(fit_intercept=False), CPNL(), RankSVM(C=0.1), RankSVMz(C=0.1), CalibratedRankSVM(C=0.1),
    BinaryRelevance(), BinaryRelevance(LogisticRegression()), BinaryRelevance(make_pipeline(PCA(3), LogisticRegression())),
    BinaryRelevance(SVC(kernel="linear")), RidgeClassifier(), OneVsRestClassifier(LogisticRegression()),
    RBRLClassifierCV(ridges=[1, 10], rankings=[1], nuclears=[0.1], cv=2),
    GridSearchCV(RBRLClassifier(), {"ridge": [1, 10]}, cv=2, scoring=lambda *_: 0.0),
]  # fmt: skip
KERNEL = [
    RBRLClassifier(kernel="rbf"), BRLClassifier(kernel="poly", degree=2), CPNL(kernel="rbf"), RankSVM(C=0.1, kernel="rbf"),
    RankSVMz(C=0.1, kernel="poly"), CalibratedRankSVM(C=0.1, kernel="rbf"), BinaryRelevance(kernel="rbf"), MLFE(),
    RBRLClassifier(kernel="rbf", low_rank="function"),
    RBRLClassifier(kernel=lambda A, B: 1.0 + np.asarray(A @ B.T), fit_intercept=False),
]  # fmt: skip


@pytest.mark.parametrize("model", LINEAR + KERNEL, ids=lambda model: repr(model)[:60])
def test_terms_add_up_to_the_score(model, data):
    X, Y = data
    # Scaled here: not all of these classifiers like columns far from 0.
    X = StandardScaler().fit_transform(X)
    model.fit(X, Y)
    assert_adds_up(model, X[3], X[3:4])


@pytest.mark.parametrize("model", [RBRLClassifier(), RankSVM(C=0.1), BinaryRelevance(kernel="rbf")], ids=repr)
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix, sparse.csc_matrix])
def test_sparse_rows(model, container, data):
    X, Y = data
    X = container(np.where(np.median(X, axis=0) < X, X, 0.0))
    model.fit(X, Y)
    rows = sparse.csr_matrix(X)[3]
    assert_adds_up(model, container(rows), rows)
    assert 0.0 not in explain(model, rows).values


def test_a_row_of_a_sparse_array_is_one_dimensional(data):
    X, Y = sparse.csr_array(data[0]), data[1]
    model = BinaryRelevance().fit(X, Y)
    assert explain(model, X[2]).to_frame().equals(explain(model, data[0][2]).to_frame())


def named(value):
    """The classes of some steps, or what is expected of them: the same in every process, which addresses are not."""
    return "-".join(type(step).__name__ for step in value) if isinstance(value, list) else None


STEPS = [
    [StandardScaler()], [MinMaxScaler((-1, 2))], [MaxAbsScaler()], [RobustScaler()], [Normalizer()],
    [StandardScaler(with_mean=False)], [StandardScaler(with_std=False)], [RobustScaler(with_centering=False)],
    [StandardScaler(), MinMaxScaler()], [QuantileTransformer(n_quantiles=20)], [MinMaxScaler(clip=True)],
    [VarianceThreshold(1.0)], [StandardScaler(), SelectKBest(k=3, score_func=lambda X, y: X.std(axis=0) + X[0])],
    [PCA(3)], [StandardScaler(), PCA(3, whiten=True)], [IncrementalPCA(3)], [FastICA(3, random_state=0)], [TruncatedSVD(3)],
    [TruncatedSVD(3), Normalizer()], [StandardScaler(), PCA(4), MinMaxScaler(), VarianceThreshold(), PCA(2)],
    [PCA(4), VarianceThreshold(0.5), RobustScaler()], [Pipeline([("a", StandardScaler()), ("b", "passthrough")]), None],
    [GaussianRandomProjection(3, random_state=0)], [SparseRandomProjection(3, random_state=0)], [SimpleImputer(), PCA(3)],
]  # fmt: skip


@pytest.mark.parametrize("steps", STEPS, ids=named)
def test_linear_steps_are_undone(steps, frames):
    X, Y = frames
    model = make_pipeline(*steps, BRLClassifier(ridge=1.0)).fit(X, Y)
    assert_adds_up(model, X.iloc[5], X.iloc[5:6])
    found = explain(model, X.iloc[5], "sun")
    assert set(found.terms) <= set(NAMES)
    assert [X.loc[5, term] for term in found.terms] == list(found.values)
    assert_contributes_nothing_at_its_reference(model, steps, X.iloc[5], found)


def assert_contributes_nothing_at_its_reference(model, steps, row, found):
    """The meaning of `references`, by the model itself: move the feature there, and its contribution is gone."""
    if any(isinstance(step, QuantileTransformer | SimpleImputer) or getattr(step, "clip", False) for step in steps):
        assert np.isnan(found.references).all()
        return
    assert np.isfinite(found.references).all()
    if any(isinstance(step, Normalizer) for step in steps):  # linear with the length of this row alone
        return
    moved = row.copy()
    moved[found.terms[0]] = found.references[0]
    (before,), (after,) = (model.decision_function(one.to_frame().T)[:, 2] for one in (row, moved))
    # PCA's own subtraction of the mean costs digits where columns are far from 0.
    assert before - after == pytest.approx(found.contributions[0], abs=1e-8 * np.abs(found.contributions).sum())


# It mixes columns, and says nothing of the names of its output.
SUMMED_UP = FunctionTransformer(np.cumsum, validate=True, kw_args={"axis": 1})


@pytest.mark.parametrize(
    ("steps", "some"),
    [
        ([PolynomialFeatures(2)], {"height width", "mass^2"}),
        ([StandardScaler(), Nystroem(n_components=4, random_state=0)], {"nystroem0"}),
        ([StandardScaler(), FunctionTransformer(np.tanh)], {"functiontransformer0"}),
        ([PCA(3), QuantileTransformer(n_quantiles=20)], {"pca0", "pca1", "pca2"}),
        ([clone(SUMMED_UP), clone(SUMMED_UP)], {"functiontransformer4"}),
        ([Nystroem(n_components=4, random_state=0), Nystroem(n_components=3, random_state=1)], {"nystroem2"}),
    ],
    ids=named,
)
def test_the_way_back_ends_at_a_step_that_is_not_linear(steps, some, frames):
    X, Y = frames
    model = make_pipeline(*steps, BRLClassifier(ridge=1.0)).fit(X, Y)
    assert_adds_up(model, X.iloc[5], X.iloc[5:6])
    found = explain(model, X.iloc[5], 0)
    assert some <= set(found.terms)
    last = 1 if isinstance(steps[0], PCA) else len(steps)  # a QuantileTransformer keeps the names of its columns
    made = np.asarray(model[:last].transform(X.iloc[5:6]))[0]
    assert set(found.values) <= set(made), "the values are those of the step that the terms are named after"


def test_a_row_of_zeros_has_no_length():
    X = sparse.csr_array(np.vstack([np.eye(4), np.ones(4)]))
    model = make_pipeline(TruncatedSVD(2, random_state=0), Normalizer(), BRLClassifier()).fit(
        X, np.eye(5, 3, dtype=int)
    )
    found = explain(model, np.zeros(4), 0)
    assert (found.terms, list(found.constants.values())) == ([], [found.score])


def test_by_hand():
    """f = 2 (x - 10) / 5 + 0 * y + 1: at x = 20 the feature x contributes 4."""
    scaler = StandardScaler().fit([[5.0, -1.0], [15.0, 1.0]])
    model = BRLClassifier().fit([[-1.0, -1.0], [1.0, 1.0]], [[0, 1], [1, 0]])
    model.coef_, model.intercept_ = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, 0.0])
    found = explain(make_pipeline(scaler, model), [20.0, 7.0], label=0)
    assert (found.terms, found.values.tolist(), found.references.tolist()) == (["x0"], [20.0], [10.0])
    assert found.contributions.tolist() == [4.0]
    assert found.constants == {"intercept": 1.0}
    assert str(found) == "label 0: score 5.000, predicted\n  +4.000  x0 = 20\n  +1.000  intercept"


@pytest.mark.parametrize(
    "steps",
    [
        [TfidfVectorizer()],
        [CountVectorizer(), TfidfTransformer(sublinear_tf=True)],
        [TfidfVectorizer(), TruncatedSVD(3, random_state=0), Normalizer()],
        [CountVectorizer(), MaxAbsScaler()],
    ],
    ids=named,
)
@pytest.mark.parametrize("x", ["the sun and the sea", ["the sun and the sea"]])
def test_words(steps, x):
    model = make_pipeline(*steps, BRLClassifier(ridge=0.1)).fit(TEXTS, TEXT_LABELS)
    assert_adds_up(model, x, ["the sun and the sea"])
    found = explain(model, x, label=2)
    assert set(found.terms) == {"the", "sun", "and", "sea"}
    assert found.contributions[found.terms.index("sun")] > 0 > found.contributions[found.terms.index("sea")]


def test_dicts():
    rows = [{"colour": "red", "n": 1.0}, {"colour": "blue", "n": 2.0}, {"colour": "red", "n": 5.0}]
    model = make_pipeline(DictVectorizer(), BinaryRelevance()).fit(rows, [[1, 0], [0, 1], [1, 1]])
    assert set(explain(model, {"colour": "blue", "n": 3.0}, 0).terms) == {"colour=blue", "n"}


def mixed_table():
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": rng.uniform(20, 60, len(TEXTS)), "text": TEXTS, "size": ["s", "m", "l", "s"] * 2,
            "wide": rng.standard_normal(len(TEXTS)), "deep": rng.standard_normal(len(TEXTS)),
        }
    )  # fmt: skip


@pytest.mark.parametrize("prefix", [True, False])
@pytest.mark.parametrize("output", ["default", "pandas"])
def test_columns_of_all_kinds(prefix, output):
    table = mixed_table()
    parts = [
        ("number", make_pipeline(SimpleImputer(), StandardScaler()), ["age"]),
        ("word", CountVectorizer(), "text"),
        ("kind", OneHotEncoder(sparse_output=False), [2]),
        ("code", OrdinalEncoder(), ["size"]),
        ("svd", PCA(1), slice(3, 5)),
    ]
    if output == "pandas":  # for which a vectoriser has no frame
        parts = [part for part in parts if part[0] != "word"]
    if not prefix:  # without which a name may stand for one column only
        parts = [part for part in parts if part[0] != "code"]
    step = ColumnTransformer(parts, verbose_feature_names_out=prefix)
    step = step.set_output(transform=output) if output == "pandas" else step
    model = make_pipeline(step, BRLClassifier(ridge=0.1)).fit(table, TEXT_LABELS)
    assert_adds_up(model, table.iloc[0], table.iloc[:1])
    frame = explain(model, table.iloc[0], 0).to_frame().set_index("term")
    before = (lambda name: f"{name}__") if prefix else (lambda name: "")
    assert frame.loc[before("number") + "age", "value"] == table.loc[0, "age"]
    assert frame.loc[before("svd") + "wide", "value"] == table.loc[0, "wide"]
    assert frame.loc[before("kind") + "size_s", "value"] == 1.0
    if output == "default":
        assert frame.loc[before("word") + "sand", "value"] == 1
    if prefix:
        assert frame.loc["code__size", "value"] == "s"


def test_a_remainder_is_handed_on(frames):
    X, Y = frames
    step = ColumnTransformer([("scaled", StandardScaler(), ["mass", "age"])], remainder="passthrough")
    model = make_pipeline(step, SelectKBest(lambda X, y: np.arange(5.0), k=4), BRLClassifier(ridge=1.0)).fit(X, Y)
    assert_adds_up(model, X.iloc[0], X.iloc[:1])
    found = explain(model, X.iloc[0], 0)
    assert set(found.terms) == {"scaled__age", "remainder__height", "remainder__width", "remainder__depth"}


@pytest.mark.parametrize("kind", ["frame", "series", "polars", "array", "list"])
def test_rows_of_every_kind_are_the_same_row(kind, frames):
    X, Y = frames
    model = BRLClassifier(ridge=1.0).fit(X, Y)
    row = {
        "frame": X.iloc[3:4], "series": X.iloc[3], "polars": pl.DataFrame(dict(X))[3],
        "array": X.to_numpy()[3], "list": X.iloc[3].tolist(),
    }[kind]  # fmt: skip
    found = explain(model, row)
    assert found.label in LABELS
    assert found.to_frame().equals(explain(model, X.iloc[3:4]).to_frame())


@pytest.mark.parametrize(
    "rule",
    [
        None, GlobalThreshold(), RowThreshold(), TopK(2), Chain([LabelThresholds(), NonEmpty()]),
        Chain([GlobalThreshold(), TopK(1)]),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("outside", [True, False])
def test_learned_rules_are_terms(rule, outside, data):
    X, Y = data
    inner = TunedThresholdClassifier(BRLClassifier(ridge=1.0), rule, cv=2)
    model = make_pipeline(StandardScaler(), inner)
    if outside:
        model = TunedThresholdClassifier(make_pipeline(StandardScaler(), BRLClassifier(ridge=1.0)), rule, cv=2)
    model.fit(X, Y)
    for i in range(5):
        assert_adds_up(model, X[i], X[i : i + 1])
    tuned = model if outside else model[-1]
    constants = explain(model, X[0], 1).constants
    if rule is None:
        assert constants["threshold (GlobalThreshold)"] == pytest.approx(-tuned.rule_.threshold_)
    assert len(constants) == 1 + (len(rule.rules) if isinstance(rule, Chain) else 1)


def test_the_threshold_of_rank_svm_is_a_term_and_no_reason_for_one_label_above_another(data):
    X, Y = data
    model = make_pipeline(StandardScaler(), RankSVM(C=0.1)).fit(X, Y)
    Z = model[:-1].transform(X[:1])
    raw = (Z @ model[-1].coef_.T + model[-1].intercept_)[0]
    threshold = raw @ model[-1].threshold_coef_ + model[-1].threshold_intercept_
    assert explain(model, X[0], 1).constants["threshold (RowThreshold)"] == pytest.approx(-threshold)
    against = explain(model, X[0], 1, against=2)
    assert against.constants["threshold (RowThreshold)"] == pytest.approx(0.0, abs=1e-12)
    assert "threshold" not in str(explain(make_pipeline(StandardScaler(), RankSVMz(C=0.1)).fit(X, Y), X[0]))


def test_a_filled_row_says_so():
    X, Y = np.array([[-1.0], [1.0], [0.5]]), np.array([[0, 1], [1, 0], [0, 1]])
    model = BinaryRelevance(non_empty=True).fit(X, Y)
    model.intercept_ = np.array([-50.0, -40.0])
    found = explain(model, [0.0])
    assert (found.label, found.predicted) == (1, True)
    assert "non_empty" in str(found)
    other = explain(model, [0.0], 0)
    assert not other.predicted
    assert "not predicted" in str(other)
    assert "non_empty" not in str(other)
    assert "non_empty" not in str(explain(model.set_params(non_empty=False), [0.0]))


def test_the_label_of_the_highest_score_is_explained(frames):
    X, Y = frames
    model = BRLClassifier(ridge=1.0).fit(X, Y)
    for i in range(10):
        scores = model.decision_function(X.iloc[i : i + 1])[0]
        assert explain(model, X.iloc[i]).label == LABELS[scores.argmax()]
    assert explain(model, X.iloc[0], "sky").to_frame().equals(explain(model, X.iloc[0], 3).to_frame())


@pytest.mark.parametrize("y", [["no", "yes"] * 40, [3, 7] * 40, ["a", "b", "c", "d"] * 20])
@pytest.mark.parametrize("model", [BRLClassifier(ridge=1.0), RankSVM(C=0.1), LogisticRegression()], ids=repr)
def test_classes_of_a_flat_target(model, y, data):
    X = StandardScaler().fit_transform(data[0])
    model.fit(X, y)
    found = explain(model, X[0])
    scores = np.ravel(model.decision_function(X[:1]))
    assert found.label == (y[-1] if len(scores) == 1 else model.classes_[scores.argmax()])
    assert found.predicted == (model.predict(X[:1])[0] == found.label)
    assert found.to_frame()["contribution"].sum() == pytest.approx(
        scores.max() if len(scores) > 1 else scores[0], rel=1e-9
    )


def test_a_precomputed_kernel(data):
    X, Y = data
    K = 1.0 + X @ X.T / 100
    model = RBRLClassifier(kernel="precomputed", fit_intercept=False, ridge=1.0).fit(K, Y)
    assert_adds_up(model, K[4], K[4:5])
    assert explain(model, K[4]).kind == "training row"


def test_training_rows_speak_for_the_labels_they_have(data):
    """Without low rank, a row's coefficient has the sign of its label: what speaks for a label has it."""
    X, Y = data
    model = BRLClassifier(kernel="rbf", nuclear=0.0, ridge=1.0).fit(X, Y)
    found = explain(model, X[0], 2)
    signs = np.where(Y[found.terms, 2] == 1, 1, -1)
    large = np.abs(found.contributions) > 1e-3 * np.abs(found.contributions).max()
    assert (np.sign(found.contributions) == signs)[large].all()


def test_a_label_that_is_constant_has_an_intercept_alone(data):
    X, Y = data[0], np.column_stack([data[1], np.ones(80, int)])
    model = BinaryRelevance(LogisticRegression(), non_empty=True)
    found = explain(model.fit(StandardScaler().fit_transform(X), Y), X[0], N_LABELS)
    assert (found.terms, found.constants) == ([], {"intercept": 1.0})


def test_refitted_with_a_kernel_it_is_a_kernel_model(data):
    model = BRLClassifier(ridge=1.0).fit(*data)
    model.set_params(kernel="rbf").fit(*data)
    assert explain(model, data[0][0]).kind == "training row"


def test_single_precision_adds_up_to_its_own_rounding(data):
    X, Y = data[0].astype(np.float32), data[1]
    found = explain(make_pipeline(StandardScaler(), BRLClassifier(ridge=1.0)).fit(X, Y), X[0])
    frame = found.to_frame()
    assert frame["contribution"].sum() == pytest.approx(found.score, abs=1e-3 * frame["contribution"].abs().sum())


def test_text_and_frame_and_figure_say_the_same(frames):
    X, Y = frames
    found = explain(make_pipeline(StandardScaler(), BRLClassifier(ridge=1.0)).fit(X, Y), X.iloc[0], "sea")
    lines = found.text(2).splitlines()
    others = [line.split()[1:] for line in lines if "other" in line]
    assert sum(int(words[0]) for words in others) == 3
    assert len(lines) == 4 + len(others)
    shown = [float(line.split()[0]) for line in lines[1:]]
    assert sum(shown) == pytest.approx(found.score, abs=len(shown) * 5e-4)
    bars = [bar.get_width() for bar in found.plot(2).axes[0].patches]
    np.testing.assert_allclose(bars[:2], shown[:2], atol=5e-4)
    assert sum(bars[:-1]) == pytest.approx(bars[-1])
    assert bars[-1] == found.score
    assert repr(found) == str(found)
    sizes = found.to_frame()["contribution"].abs()[:5]
    assert sizes.is_monotonic_decreasing


def test_against_names_both(frames):
    X, Y = frames
    model = BRLClassifier(ridge=1.0).fit(X, Y)
    text = {
        a: str(explain(model, X.iloc[0], a, against="sun" if a == "sky" else "sky")).splitlines()[0]
        for a in ("sun", "sky")
    }
    assert sorted(line.split()[1] for line in text.values()) == ["above", "below"]
    assert text["sun"].startswith("sun ")
    assert " sky: " in text["sun"]


REFUSED = [
    (MLkNN(), "MLkNN has no scores that are sums"),
    (CalibratedLabelRanking(), "CalibratedLabelRanking has coefficients of 10 scores for 4 labels"),
    (RAkEL(random_state=0), "RAkEL has no scores"),
    (LabelPowerset(), "LabelPowerset has no scores"),
    (EnsembleOfChains(random_state=0), "EnsembleOfChains has no scores"),
    (BinaryRelevance(scores="hard"), "scores='decision'"),
    (BinaryRelevance(GaussianNB()), "GaussianNB has no scores"),
    (BinaryRelevance(SVC()), "SVC has no scores"),
    (RBRLClassifier(kernel="rbf", approximation="nystroem", n_components=5), "approximation=None"),
    (RBRLClassifier(kernel="rbf", approximation="fourier", n_components=5), "approximation=None"),
    (RandomForestClassifier(5), "RandomForestClassifier has no decision_function"),
]


@pytest.mark.parametrize(("model", "message"), REFUSED, ids=lambda value: repr(value)[:50])
def test_what_is_no_sum_is_refused(model, message, data):
    X, Y = data
    with pytest.raises(ValueError, match=message) as error:
        explain(model.fit(StandardScaler().fit_transform(X), Y), X[0])
    assert "Linear models (coef_, intercept_) and kernel models (dual_coef_, X_fit_) can be explained" in str(
        error.value
    )


def test_a_model_whose_terms_do_not_add_up_is_refused(data):
    class Bent(BRLClassifier):
        def decision_function(self, X):
            return np.tanh(super().decision_function(X))

    with pytest.raises(ValueError, match=r"Bent has a score of .* but terms that add up to"):
        explain(Bent(ridge=1.0).fit(*data), data[0][0])


def test_bad_arguments_are_named(frames):
    X, Y = frames
    model = BRLClassifier(ridge=1.0).fit(X, Y)
    for arguments, message in [
        ((X.iloc[:2],), r"x must be one row\. Got shape \(2, 5\)"),
        (
            (X.iloc[0], "see"),
            r"label must be one of the labels, or a column from 0 to 3\. Got 'see'\. Did you mean 'sea'",
        ),
        ((X.iloc[0], 4), r"Got 4\."),
        ((X.iloc[0], -1), r"Got -1\."),
        ((X.iloc[0], "sea", "mud"), "against must be one of the labels"),
        ((X.iloc[0], "sea", 0), "against must be another label than the one explained, 'sea'"),
    ]:
        with pytest.raises(ValueError, match=message):
            explain(model, *arguments)
    with pytest.raises(ValueError, match=r"n_terms parameter of Explanation must be an integer >= 1"):
        explain(model, X.iloc[0]).text(0)
    with pytest.raises(NotFittedError):
        explain(BRLClassifier(), X.iloc[0])


def test_without_matplotlib_the_extra_is_named(data, monkeypatch):
    found = explain(BRLClassifier(ridge=1.0).fit(*data), data[0][0])
    monkeypatch.delitem(sys.modules, "rbrl.experiments.figures", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"figures needs matplotlib.*rbrl\[report\]"):
        found.plot()


def test_the_names_at_the_top_are_functions():
    assert callable(rbrl.explain)
    assert callable(rbrl.label_map)


def test_a_union_of_features_has_their_names():
    step = FeatureUnion([("word", CountVectorizer()), ("letter", CountVectorizer(analyzer="char"))])
    model = make_pipeline(step, BRLClassifier(ridge=0.1)).fit(TEXTS, TEXT_LABELS)
    assert_adds_up(model, "sea", ["sea"])
    assert set(explain(model, "sea", 0).terms) == {"word__sea", "letter__s", "letter__e", "letter__a"}


def test_a_frame_of_polars_goes_through_a_column_transformer(frames):
    X, Y = frames
    table = pl.DataFrame(dict(X))
    step = ColumnTransformer([("pca", PCA(2), ["mass", "age"]), ("own", "passthrough", ["width"])])
    model = make_pipeline(step, BRLClassifier(ridge=1.0)).fit(table, Y)
    assert_adds_up(model, table[3], table[3])
    found = explain(model, table[3], "sea")
    assert set(found.terms) == {"pca__mass", "pca__age", "own__width"}
    assert found.values[found.terms.index("own__width")] == X.loc[3, "width"]


def test_learners_with_columns_of_their_own_are_compared_by_name(frames):
    """Each label's learner selects its own columns: what one of two labels does not see still counts for the other."""
    X, Y = frames
    best = make_pipeline(StandardScaler(), SelectKBest(k=2), LogisticRegression())
    model = BinaryRelevance(best).fit(X, Y)
    seen = [set(explain(model, X.iloc[0], label).terms) for label in LABELS]
    a, b = next((i, j) for i in range(4) for j in range(i) if seen[i] != seen[j])
    assert set(explain(model, X.iloc[0], a, against=b).terms) == seen[a] | seen[b]
    assert_adds_up(model, X.iloc[0], X.iloc[:1])
