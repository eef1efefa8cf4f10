"""Graphs answer as the models do that they were made of, in onnxruntime; what has no graph is refused by its name."""

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from rbrl import (
    CPNL,
    BinaryRelevance,
    BRLClassifier,
    CalibratedRankSVM,
    MLkNN,
    RAkEL,
    RankSVM,
    RankSVMz,
    RBRLClassifier,
    RBRLClassifierCV,
    TunedThresholdClassifier,
    compress,
    datasets,
    to_onnx,
)
from rbrl.decision import (
    Chain,
    DecisionRule,
    GlobalThreshold,
    LabelThresholds,
    NonEmpty,
    RowThreshold,
    TopK,
    ZeroThreshold,
)
from rbrl.exceptions import ExportError
from rbrl.interop import onnx
from rbrl.interop.onnx import operators

pytest.importorskip("onnx", reason="needs the extra onnx")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")

X, Y = make_multilabel_classification(n_samples=90, n_features=10, n_classes=5, random_state=0)
NEW = X[60:]
# Scores are sums of a few hundred products, so off by some 1e-14 of their largest; the promise is 1e-5.
DOUBLE, SINGLE = 1e-10, 1e-5
# The map of landmarks divides by roots of eigenvalues down to 1e-12: what is rounded before it counts up to 1e6 times.
LANDMARKS = 1e-6


def run(model, rows, dtype="float64"):
    """The outputs of a model's graph, by name."""
    session = onnxruntime.InferenceSession(to_onnx(model, dtype=dtype).SerializeToString())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": np.asarray(rows).astype(dtype)})))


def check_agreement(model, rows=NEW, dtype="float64", tolerance=DOUBLE):
    found, labels, scores = run(model, rows, dtype), model.predict(rows), model.decision_function(rows)
    labels = labels.toarray() if sparse.issparse(labels) else labels
    assert found["scores"].shape == scores.shape
    np.testing.assert_allclose(found["scores"], scores, rtol=0, atol=tolerance * np.abs(scores).max())
    assert found["labels"].shape == labels.shape
    np.testing.assert_array_equal(found["labels"], labels)
    if labels.dtype.kind not in "US":
        assert found["labels"].dtype == labels.dtype


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("kind", [RBRLClassifier, BRLClassifier, CPNL, RankSVM, RankSVMz, CalibratedRankSVM])
def test_models(kind, kernel):
    check_agreement(kind(kernel=kernel, gamma=0.01).fit(X[:60], Y[:60]))


@pytest.mark.parametrize(
    "model",
    [
        RBRLClassifier(kernel="rbf", approximation="nystroem", n_components=20, random_state=0),
        RBRLClassifier(kernel="poly", approximation="nystroem", n_components=20, random_state=0),
        RBRLClassifier(kernel="rbf", approximation="fourier", n_components=20, random_state=0),
        BinaryRelevance(),
        BinaryRelevance(kernel="rbf", gamma=0.01),
        BinaryRelevance(scores="hard", non_empty=True),
        RBRLClassifierCV([1.0, 10.0], [1.0], [0.1], cv=2),
        GridSearchCV(make_pipeline(StandardScaler(), BRLClassifier()), {"brlclassifier__ridge": [1.0, 10.0]}, cv=2),
    ],
    ids=repr,
)
def test_approximations_reductions_and_searches(model):
    tolerance = LANDMARKS if getattr(model, "approximation", None) == "nystroem" else DOUBLE
    check_agreement(model.fit(X[:60], Y[:60]), tolerance=tolerance)


@pytest.mark.parametrize("never_empty", [True, False])
def test_rows_without_a_positive_score(never_empty):
    """Scores that are all negative, two of them equal: the first of the best is the answer, or none."""
    model = RBRLClassifier(non_empty=never_empty).fit(X[:60], Y[:60])
    model.coef_, model.intercept_ = np.zeros((5, 10)), np.array([-3.0, -1.0, -2.0, -1.0, -4.0])
    expected = [[0, 1, 0, 0, 0]] if never_empty else [[0, 0, 0, 0, 0]]
    assert run(model, NEW[:1])["labels"].tolist() == expected
    check_agreement(model)


CODINGS = {
    "plus and minus one": np.where(Y > 0, 1, -1),
    "int8": Y.astype(np.int8),
    "bool": Y.astype(bool),
    "floats": Y.astype(np.float64),
    "sparse": sparse.csr_array(Y),
    "sparse plus and minus one": sparse.csr_array(np.where(Y > 0, 1, -1)),
    "one label": Y[:, :1],
    "two classes": np.array(["sea", "sand"])[Y[:, 0]],
    "three classes": np.array(["none", "one", "both"])[Y[:, :2].sum(axis=1)],
    "numbers": Y[:, :3].sum(axis=1),
}


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("kind", [RBRLClassifier, RankSVM])
def test_answers_come_in_the_coding_of_fit(kind, coding):
    y = CODINGS[coding]
    check_agreement(kind().fit(X[:60], y[:60]))


@pytest.mark.parametrize(
    "rule",
    [
        LabelThresholds(), GlobalThreshold(), RowThreshold(), RowThreshold(ties_relevant=True), ZeroThreshold(),
        NonEmpty(), TopK(0), TopK(2), TopK(5), Chain([LabelThresholds(), NonEmpty()]),
    ],
    ids=repr,
)  # fmt: skip
def test_tuned_thresholds(rule):
    check_agreement(TunedThresholdClassifier(BRLClassifier(), rule, cv=2).fit(X[:60], Y[:60]))


def test_the_first_of_equal_scores_are_the_best():
    model = TunedThresholdClassifier(BRLClassifier(), TopK(2), cv=2).fit(X[:60], Y[:60])
    model.estimator_.coef_, model.estimator_.intercept_ = np.zeros((5, 10)), np.array([1.0, 3.0, 3.0, 3.0, 2.0])
    assert run(model, NEW[:1])["labels"].tolist() == [[0, 1, 1, 0, 0]]
    check_agreement(model)


STEPS = [
    StandardScaler(), StandardScaler(with_mean=False), StandardScaler(with_std=False), MinMaxScaler((-1, 1), clip=True),
    MinMaxScaler(), MaxAbsScaler(), RobustScaler(), RobustScaler(with_centering=False), Normalizer("l1"), Normalizer("l2"),
    Normalizer("max"), PCA(4), PCA(4, whiten=True), IncrementalPCA(4), TruncatedSVD(4), TfidfTransformer(),
    TfidfTransformer(sublinear_tf=True, norm="l1"), TfidfTransformer(use_idf=False, norm=None), VarianceThreshold(),
    Nystroem(gamma=0.01, n_components=20, random_state=0), Nystroem("poly", gamma=0.01, n_components=20, random_state=0),
    RBFSampler(gamma=0.01, random_state=0), "passthrough",
]  # fmt: skip


@pytest.mark.parametrize("step", STEPS, ids=repr)
def test_steps_of_a_pipeline(step):
    rows = np.vstack([NEW, 2 * NEW.max(axis=0), np.zeros(10)])  # beyond the training rows, and without a length
    tolerance = LANDMARKS if isinstance(step, Nystroem) else DOUBLE
    check_agreement(make_pipeline(step, RBRLClassifier()).fit(X[:60], Y[:60]), rows, tolerance=tolerance)


def test_pipelines_within_and_around():
    inner = make_pipeline(StandardScaler(), SelectKBest(k=6), RBRLClassifier(kernel="rbf"))
    check_agreement(
        TunedThresholdClassifier(make_pipeline(StandardScaler(), BRLClassifier()), cv=2).fit(X[:60], Y[:60])
    )
    check_agreement(make_pipeline(MaxAbsScaler(), inner).fit(X[:60], Y[:60, 0]))


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_columns_far_from_zero(shift):
    """Of squares of 1e6 a plain sum of products would keep four digits of a distance."""
    check_agreement(RBRLClassifier(kernel="rbf", gamma=0.01).fit(X[:60] + shift, Y[:60]), NEW + shift, tolerance=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_single_precision(kernel):
    model = RBRLClassifier(kernel=kernel, ridge=10.0).fit(X[:60], Y[:60])
    assert run(model, NEW, "float32")["scores"].dtype == np.float32
    check_agreement(model, NEW, "float32", SINGLE)


def test_rows_without_a_coefficient_are_left_out():
    model = RankSVM(kernel="rbf", gamma=0.1).fit(X[:60], Y[:60], sample_weight=np.arange(60) < 30)
    stored = max(np.prod(constant.dims) for constant in to_onnx(model).graph.initializer)
    assert stored <= 30 * 10
    check_agreement(model)


def test_the_graph_tells_where_it_comes_from():
    frame = pytest.importorskip("pandas").DataFrame
    model = BRLClassifier().fit(
        frame(X, columns=[f"tone {i}" for i in range(10)]), frame(Y, columns=["a", "b", "c", "d", "e"])
    )
    about = {prop.key: json.loads(prop.value) for prop in to_onnx(model).metadata_props}
    assert about["model"] == "BRLClassifier"
    assert about["label_names"] == ["a", "b", "c", "d", "e"]
    assert about["feature_names"][:2] == ["tone 0", "tone 1"]


class Above(DecisionRule):
    def shift(self, scores):
        return np.asarray(scores) - 0.5


def polynomial(X, Z):
    return (1.0 + X @ Z.T) ** 2


REFUSED = {
    "MLkNN": MLkNN(),
    "RAkEL": RAkEL(),
    "BinaryRelevance(estimator=LogisticRegression())": BinaryRelevance(LogisticRegression()),
    "the function 'polynomial'": RBRLClassifier(kernel=polynomial),
    "PolynomialFeatures": make_pipeline(PolynomialFeatures(2), BRLClassifier()),
    "LogisticRegression": make_pipeline(StandardScaler(), LogisticRegression()),
    "The rule Above": TunedThresholdClassifier(BRLClassifier(), Above(), cv=2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_part(name):
    y = Y[:, 0] if name == "LogisticRegression" else Y
    with pytest.raises(ExportError, match=name.replace("(", r"\(").replace(")", r"\)")):
        to_onnx(REFUSED[name].fit(X, y))


def test_more_refusals(monkeypatch):
    with pytest.raises(ExportError, match="kernel='precomputed'"):
        to_onnx(RankSVM(kernel="precomputed").fit(X @ X.T, Y))
    words = ["sea and sand", "sand", "sea", "the sea"] * 5
    with pytest.raises(ExportError, match="TfidfVectorizer cannot be written as an ONNX graph"):
        to_onnx(make_pipeline(TfidfVectorizer(), BRLClassifier()).fit(words, Y[:20]))
    with pytest.raises(NotFittedError):
        to_onnx(BRLClassifier())
    model = BRLClassifier().fit(X, Y)
    with pytest.raises(ValueError, match="dtype parameter of to_onnx must be one of 'float64', 'float32'"):
        to_onnx(model, dtype="half")
    monkeypatch.setattr(operators, "MAX_FILE_BYTES", 100)
    with pytest.raises(ExportError, match="at most 2 GB"):
        to_onnx(model)


@pytest.mark.parametrize("name", ["yeast", "emotions", "enron"])
def test_real_data(name, data_home):
    train, test = datasets.load(name, data_home=data_home).split(seed=0)
    rows = test.X[:200]
    rows = rows.toarray() if sparse.issparse(rows) else rows
    for kernel in ("linear", "rbf"):
        model = RBRLClassifier(kernel=kernel).fit(train.X[:400], train.Y[:400])
        check_agreement(model, rows)


@pytest.mark.parametrize("form", ["sparse", "factors"])
def test_a_graph_of_a_compressed_model_has_its_scores(form, monkeypatch):
    model = compress(RBRLClassifier(ridge=10, nuclear=30).fit(X, Y), X, Y, tol=0.2, form=form)
    check_agreement(model)
    assert ("coef_" in vars(model)) == (form == "sparse")
    monkeypatch.setattr(onnx, "LARGEST_GRAPH", 100)
    if form == "sparse":
        with pytest.raises(ExportError, match=r"dense in an ONNX graph.*Got 4e-07 GB.*form='factors'"):
            to_onnx(model)
    else:
        to_onnx(model)
