"""Missing labels, weights of entries, and class weights: equal problems have equal fits."""

import re
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import rbrl
from rbrl import CPNL, BRLClassifier, RBRLClassifier
from rbrl.exceptions import InvalidLabelsError, MissingLabelsWarning
from rbrl.losses import ClassWeighted, PairwiseSquaredHinge, SquaredHinge
from rbrl.out_of_core import batches
from rbrl.solvers import APG

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 5))
Y = (X @ RNG.standard_normal((5, 4)) + 0.5 * RNG.standard_normal((60, 4)) > 0.3).astype(int)
KNOWN = RNG.random(Y.shape) < 0.7
KNOWN[7] = False
MISSING = np.where(KNOWN, Y, np.nan)
WEIGHTS = np.where(KNOWN, 0.2 + 2 * RNG.random(Y.shape), 0.0)
TIGHT = {"tol": 1e-12, "max_iter": 5000}
MODELS = {
    "RBRL": RBRLClassifier(ridge=2.0, ranking=0.5, nuclear=0.3),
    "BRL": BRLClassifier(ridge=2.0, nuclear=0.3),
    "CPNL": CPNL(ridge=2.0),
    "no penalty of rank": RBRLClassifier(ridge=2.0, ranking=0.5, nuclear=0.0),
    "apg": RBRLClassifier(ridge=2.0, ranking=0.5, nuclear=0.3, solver="apg"),
    "low-rank": RBRLClassifier(ridge=2.0, ranking=0.5, nuclear=0.3, solver="low-rank"),
    "max_rank": RBRLClassifier(ridge=2.0, ranking=0.5, max_rank=2),
    "rbf": RBRLClassifier(ridge=0.5, nuclear=0.1, kernel="rbf"),
    "rbf function": RBRLClassifier(ridge=0.5, nuclear=0.1, kernel="rbf", low_rank="function"),
    "CPNL rbf": CPNL(kernel="rbf"),
    "nystroem": BRLClassifier(kernel="rbf", approximation="nystroem", n_components=30, random_state=0),
}
every_model = pytest.mark.parametrize("name", MODELS)
# A local optimum has no certificate: its gap is that to the problem without the constraint.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def fitted(name, *data, **more):
    return clone(MODELS[name]).fit(*data, **more)


def same_fit(one, other, rtol=1e-12):
    """The same objective; and the same scores, as far as the objective tells them."""
    assert one.objective_ == pytest.approx(other.objective_, rel=rtol)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=10 * np.sqrt(rtol))


@every_model
def test_nan_a_mask_and_a_weight_of_zero_are_the_same(name):
    known = KNOWN.astype(float)
    one = fitted(name, X, MISSING)
    same_fit(one, fitted(name, X, Y, label_mask=KNOWN))
    same_fit(one, fitted(name, X, Y, known))
    same_fit(one, fitted(name, X, sparse.csr_array(Y), label_mask=sparse.csr_array(KNOWN)))
    same_fit(one, fitted(name, X, 2 * Y - 1, label_mask=known))
    if name != "max_rank":
        assert one.gap_ <= 1e-4


@every_model
def test_what_is_said_of_missing_labels_does_not_matter(name):
    same_fit(fitted(name, X, Y, label_mask=KNOWN), fitted(name, X, np.where(KNOWN, Y, 1 - Y), label_mask=KNOWN))


@every_model
def test_a_row_without_labels_is_absent(name):
    if name == "nystroem":
        pytest.skip("centres are those of the rows that are present")
    present = KNOWN.any(axis=1)
    same_fit(fitted(name, X, MISSING), fitted(name, X[present], MISSING[present]))


@every_model
def test_entries_of_equal_weight_are_a_row_of_that_weight(name):
    of_rows = np.linspace(0, 3, len(X))
    of_entries = np.repeat(of_rows[:, None], Y.shape[1], axis=1)
    for labels in (Y, MISSING):
        same_fit(fitted(name, X, labels, of_rows), fitted(name, X, labels, of_entries))


@pytest.mark.parametrize("name", ["RBRL", "BRL", "CPNL", "rbf function", "CPNL rbf"])
def test_rows_of_whole_weights_are_repeated_rows(name):
    times = RNG.integers(0, 4, len(X))
    model = clone(MODELS[name]).set_params(**TIGHT)
    weighted = clone(model).fit(X, MISSING, times)
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(MISSING, times, axis=0))
    same_fit(weighted, repeated, rtol=1e-9)


def test_weights_of_single_labels_are_repeated_rows_of_those_labels():
    """Without pairs, an entry of weight 3 is one that is there three times."""
    times = RNG.integers(0, 4, Y.shape)
    model = BRLClassifier(ridge=2.0, nuclear=0.3, **TIGHT)
    copies = [(X, np.where(times > k, Y, np.nan)) for k in range(3)]
    repeated = clone(model).fit(*map(np.concatenate, zip(*copies)))
    same_fit(clone(model).fit(X, Y, times), repeated, rtol=1e-9)


@every_model
def test_the_gap_holds_with_weights_of_entries(name):
    if name == "max_rank":
        pytest.skip("a local optimum")
    model = fitted(name, X, MISSING, WEIGHTS)
    best = clone(MODELS[name]).set_params(**TIGHT).fit(X, MISSING, WEIGHTS)
    assert best.objective_ <= model.objective_ * (1 + 1e-12)
    assert model.objective_ <= best.objective_ * (1 + model.gap_) * (1 + 1e-12)
    assert model.gap_ <= 1e-4


def test_the_objective_is_the_loss_of_what_is_known():
    model = fitted("RBRL", X, MISSING, WEIGHTS)
    F, signs = model.decision_function(X), np.where(KNOWN, 2 * Y - 1, 0).astype(np.int8)
    value = SquaredHinge().value(signs, F, WEIGHTS) + 0.5 * PairwiseSquaredHinge().value(signs, F, WEIGHTS)
    # The column of the intercept holds the root of ridge 2 over intercept_ridge 1.
    W = np.column_stack([model.coef_, model.intercept_ / np.sqrt(2.0)])
    value += (W**2).sum() + 0.3 * np.linalg.svd(W, compute_uv=False).sum()
    assert model.objective_ == pytest.approx(value, rel=1e-12)


@every_model
def test_a_missing_label_scores_zero(name):
    labels = MISSING.copy()
    labels[:, 2] = np.nan
    with pytest.warns(MissingLabelsWarning, match="1 of 4 labels are missing in all rows: 2. Their scores are 0"):
        model = fitted(name, X, labels)
    assert not model.decision_function(X)[:, 2].any()
    assert not model.predict(X)[:, 2].any()
    assert model.decision_function(X)[:, [0, 1, 3]].all()
    without = fitted(name, X, np.delete(labels, 2, axis=1))
    assert model.objective_ == pytest.approx(without.objective_, rel=2e-4)


@pytest.mark.parametrize("estimator", [RBRLClassifier, BRLClassifier, CPNL])
@pytest.mark.parametrize(
    "fit",
    [
        lambda model: model.fit(X, np.full(Y.shape, np.nan)),
        lambda model: model.fit(X, Y, label_mask=np.zeros(Y.shape, bool)),
        lambda model: model.fit(X, np.where(KNOWN, np.nan, Y), label_mask=KNOWN),
        lambda model: model.fit([(X[:30], np.full((30, 4), np.nan)), (X[30:], np.full((30, 4), np.nan))]),
    ],
)
def test_nothing_known_at_all(estimator, fit):
    with pytest.raises(InvalidLabelsError, match="No label of any"):
        fit(estimator())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("low", [0, -1])
def test_answers_come_in_the_coding_and_type_of_the_labels(dtype, low):
    labels = np.where(KNOWN, np.where(Y > 0, 1, low), np.nan).astype(dtype)
    answer = RBRLClassifier().fit(X, labels).predict(X)
    assert answer.dtype == dtype
    assert set(np.unique(answer)) == {low, 1}


def test_lists_and_frames_say_what_is_missing_in_their_own_way():
    expected = fitted("RBRL", X, MISSING)
    objects = [[int(v) if known else None for v, known in zip(*row)] for row in zip(Y, KNOWN)]
    frame = pd.DataFrame(objects, columns=list("abcd"), dtype="Int64")
    forms = ((objects, int), (MISSING.tolist(), float), (frame, int), (frame.astype("Float64"), float))
    for labels, dtype in (*forms, (frame.astype("boolean"), bool)):
        model = fitted("RBRL", X, labels)
        same_fit(expected, model)
        assert model.predict(X).dtype == dtype
    assert fitted("RBRL", X, frame).label_names_.tolist() == list("abcd")


def test_one_column_of_labels():
    one = RBRLClassifier(**TIGHT).fit(X, MISSING[:, :1])
    rows = KNOWN[:, 0]
    same_fit(one, RBRLClassifier(**TIGHT).fit(X[rows], Y[rows, :1]), rtol=1e-9)


def parts_of(labels, cuts=(0, 13, 40, 60)):
    return [(X[a:b], labels[a:b]) for a, b in pairwise(cuts)]


@pytest.mark.parametrize("name", ["RBRL", "BRL", "CPNL"])
def test_rows_in_blocks(name):
    model = clone(MODELS[name]).set_params(tol=1e-7)
    one, other = clone(model).fit(X, MISSING), clone(model).fit(parts_of(MISSING))
    assert other.gap_ <= 1e-7
    assert other.objective_ == pytest.approx(one.objective_, rel=2e-7)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-2)
    stored = sparse.csr_array((np.where(KNOWN, Y, np.nan)[Y + ~KNOWN > 0], np.nonzero(Y + ~KNOWN)), shape=Y.shape)
    assert clone(model).fit(parts_of(stored)).objective_ == other.objective_


def test_a_label_that_is_unknown_in_all_blocks():
    labels = MISSING.copy()
    labels[:, 2] = np.nan
    for name in ("RBRL", "CPNL"):
        with pytest.warns(MissingLabelsWarning, match="1 of 4 labels are missing in all rows: 2"):
            model = fitted(name, parts_of(labels))
        assert not model.decision_function(X)[:, 2].any()
        assert model.gap_ <= 1e-4


@pytest.mark.parametrize("largest_gram", [5000, 2])
def test_batches(largest_gram, monkeypatch):
    """With sums, the cuts do not matter; with steps, missing and weighted labels are learned from, too."""
    monkeypatch.setattr(batches, "LARGEST_GRAM", largest_gram)
    model = RBRLClassifier(ridge=1.0, nuclear=0.1)
    streams = [clone(model).partial_fit(X, MISSING, sample_weight=WEIGHTS)]
    for mask in (None, KNOWN):
        labels, batched = (MISSING if mask is None else Y), clone(model)
        for rows in (slice(0, 20), slice(20, 60)):
            some = None if mask is None else mask[rows]
            batched.partial_fit(X[rows], labels[rows], sample_weight=WEIGHTS[rows], label_mask=some)
        streams.append(batched)
    if largest_gram == 5000:
        np.testing.assert_allclose(streams[0].coef_, streams[1].coef_, rtol=1e-8)
    np.testing.assert_allclose(streams[1].coef_, streams[2].coef_, rtol=1e-12)
    for stream in streams:
        assert np.mean((stream.predict(X) == Y)[KNOWN]) > 0.85


@pytest.mark.parametrize("largest_gram", [5000, 2])
def test_a_batch_of_which_nothing_is_known_changes_nothing(largest_gram, monkeypatch):
    monkeypatch.setattr(batches, "LARGEST_GRAM", largest_gram)
    model, nothing = RBRLClassifier(ridge=1.0), np.zeros(Y.shape, dtype=bool)
    model.partial_fit(X, Y, label_mask=nothing).partial_fit(X, MISSING).partial_fit(X, Y, label_mask=nothing)
    np.testing.assert_allclose(model.coef_, RBRLClassifier(ridge=1.0).partial_fit(X, MISSING).coef_, rtol=1e-12)


@pytest.mark.parametrize("largest_gram", [5000, 2])
def test_batches_without_a_label(largest_gram, monkeypatch):
    monkeypatch.setattr(batches, "LARGEST_GRAM", largest_gram)
    labels = MISSING.copy()
    labels[:, 2] = np.nan
    model = RBRLClassifier(ridge=1.0).partial_fit(X[:30], labels[:30]).partial_fit(X[30:], labels[30:])
    assert not model.decision_function(X)[:, 2].any()


def test_the_paper_s_constant_counts_what_is_known():
    """A missing label changes only its column in the objective."""
    known = np.column_stack([MISSING, np.full(len(X), np.nan)])
    solver = APG(lipschitz="paper", stop="paper")
    with pytest.warns(MissingLabelsWarning):
        model = RBRLClassifier(solver=solver).fit(X, known)
    assert model.objective_ == pytest.approx(RBRLClassifier(solver=solver).fit(X, MISSING).objective_, rel=1e-12)


# Class weights.


def balanced(labels, weights):
    """By the definition, entry by entry."""
    out = np.zeros(labels.shape)
    for j, column in enumerate(labels.T):
        sums = {value: weights[column == value, j].sum() for value in (0, 1)}
        for value, total in sums.items():
            out[column == value, j] = sum(sums.values()) / (2 * total)
    return out * weights


@pytest.mark.parametrize("estimator", [RBRLClassifier, BRLClassifier])
def test_balanced_weights_are_weights_of_entries(estimator):
    for labels, weights in ((Y, np.ones(Y.shape)), (MISSING, np.ones(Y.shape)), (MISSING, WEIGHTS)):
        weighted = estimator(ridge=1.0).fit(X, labels, balanced(labels, weights))
        same_fit(estimator(ridge=1.0, class_weight="balanced").fit(X, labels, weights), weighted)
    of_rows = np.linspace(0.1, 2, len(X))
    weights = np.repeat(of_rows[:, None], Y.shape[1], axis=1)
    one, other = (estimator(ridge=1.0, class_weight="balanced").fit(X, MISSING, w) for w in (of_rows, weights))
    same_fit(one, other)


def test_weights_by_label():
    model = RBRLClassifier(ridge=1.0, class_weight={0: 3.0, 2: (0.5, 2.0)})
    weights = np.ones(Y.shape)
    weights[Y[:, 0] == 1, 0] = 3.0
    weights[:, 2] = np.where(Y[:, 2] == 1, 2.0, 0.5)
    expected = RBRLClassifier(ridge=1.0).fit(X, MISSING, weights)
    same_fit(model.fit(X, MISSING), expected)
    frame = pd.DataFrame(MISSING, columns=["sea", "sand", "sun", "sky"])
    same_fit(clone(model).set_params(class_weight={"sea": 3.0, "sun": [0.5, 2.0]}).fit(X, frame), expected)


def test_class_weights_do_not_change_the_scales_of_the_data():
    plain = RBRLClassifier().fit(X, MISSING)
    assert RBRLClassifier(class_weight="balanced").fit(X, MISSING).ridge_ == plain.ridge_
    assert RBRLClassifier().fit(X, MISSING, 3.0 * np.ones(Y.shape)).ridge_ > plain.ridge_


def test_a_class_weight_of_zero_leaves_entries_out():
    model = RBRLClassifier(class_weight={1: (1.0, 0.0)}).fit(X, Y)
    labels = Y.astype(float)
    labels[Y[:, 1] == 1, 1] = np.nan
    same_fit(model, RBRLClassifier().fit(X, labels))


@pytest.mark.parametrize("class_weight", ["balanced", {0: 3.0, 2: (0.5, 2.0)}, {1: (1.0, 0.0)}])
@pytest.mark.parametrize("estimator", [RBRLClassifier, BRLClassifier])
def test_class_weights_of_rows_in_blocks(estimator, class_weight):
    model = estimator(ridge=1.0, class_weight=class_weight, tol=1e-7)
    one, other = clone(model).fit(X, MISSING), clone(model).fit(parts_of(MISSING))
    assert max(one.gap_, other.gap_) <= 1e-7
    assert other.objective_ == pytest.approx(one.objective_, rel=2e-7)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("class_weight", ["balanced", "dict"])
def test_classes_of_a_1d_target(n_classes, class_weight):
    y = np.array(["a", "b", "c"])[np.minimum(Y.sum(axis=1), n_classes - 1)]
    given = {"a": 0.5, "b": 3.0} if class_weight == "dict" else "balanced"
    counts = {one: np.mean(y == one) for one in np.unique(y)}
    table = {one: 1 / (n_classes * share) for one, share in counts.items()} if given == "balanced" else given
    weights = np.array([table.get(one, 1.0) for one in y])
    model = RBRLClassifier(ridge=1.0, class_weight=given).fit(X, y)
    same_fit(model, RBRLClassifier(ridge=1.0).fit(X, y, weights))
    times = np.arange(len(y)) % 3
    weighted = RBRLClassifier(ridge=1.0, class_weight=given, **TIGHT)
    same_fit(
        weighted.fit(X, y, times), clone(weighted).fit(np.repeat(X, times, axis=0), np.repeat(y, times)), rtol=1e-9
    )


def test_batches_with_class_weights():
    by_dict = RBRLClassifier(ridge=1.0, class_weight={0: 3.0}).partial_fit(X, MISSING)
    weights = np.where((Y == 1) & (np.arange(4) == 0), 3.0, 1.0)
    np.testing.assert_allclose(
        by_dict.coef_, RBRLClassifier(ridge=1.0).partial_fit(X, MISSING, sample_weight=weights).coef_
    )
    with pytest.raises(ValueError, match="'balanced' needs the labels of all rows, and partial_fit has one batch"):
        RBRLClassifier(ridge=1.0, class_weight="balanced").partial_fit(X, Y)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ("even", "must be None, 'balanced', or a dict from labels to weights or pairs of weights"),
        (3.0, "Got 3.0 instead."),
        ({0: -1.0}, "finite and >= 0. Got -1.0 for 0"),
        ({0: (1.0, np.inf)}, "finite and >= 0. Got (1.0, inf) for 0"),
        ({0: (1.0, 2.0, 3.0)}, "Got (1.0, 2.0, 3.0) for 0"),
        ({0: "much"}, "Got 'much' for 0"),
        ({4: 1.0}, "must be labels: column indices from 0 to 3. Got 4."),
        ({"sea": 1.0}, "must be labels: column indices from 0 to 3. Got 'sea'."),
        (dict.fromkeys(range(4), (0.0, 0.0)), "give every known entry of y the weight 0"),
    ],
)
def test_class_weights_that_make_no_sense(class_weight, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        RBRLClassifier(class_weight=class_weight).fit(X, Y)


def test_names_and_classes_that_are_not_there():
    frame = pd.DataFrame(Y, columns=["sea", "sand", "sun", "sky"])
    with pytest.raises(ValueError, match="must be labels: sea, sand, sun, sky, or column indices from 0 to 3"):
        RBRLClassifier(class_weight={"see": 2.0}).fit(X, frame)
    with pytest.raises(ValueError, match=re.escape("must be classes of y, among [0 1]. Got 2.")):
        RBRLClassifier(class_weight={2: 2.0}).fit(X, Y[:, 0])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"label_mask": KNOWN[:5]}, "label_mask must have the shape of y, (60, 4). Got (5, 4)."),
        ({"label_mask": 2 * KNOWN}, "True for known labels, and False for missing labels. Got the values 0, 2."),
        (
            {"sample_weight": WEIGHTS[:, :3]},
            "(60,), one weight per row of X, or (60, 4), one per entry of y. Got (60, 3).",
        ),
        ({"sample_weight": -WEIGHTS}, "must be finite and >= 0"),
        ({"sample_weight": MISSING}, "must be finite and >= 0"),
        ({"sample_weight": 0 * WEIGHTS}, "at least one weight must be above zero"),
    ],
)
def test_masks_and_weights_that_make_no_sense(more, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        RBRLClassifier().fit(X, Y, **more)


def test_nothing_is_said_where_nothing_is_missing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RBRLClassifier().fit(X, MISSING)


def test_a_model_with_class_weights_is_saved_and_loaded(tmp_path):
    model = RBRLClassifier(ridge=1.0, class_weight={0: 3.0, 2: (0.5, 2.0)}).fit(X, MISSING)
    rbrl.save(model, tmp_path / "model.rbrl")
    loaded = rbrl.load(tmp_path / "model.rbrl")
    assert loaded.class_weight == {0: 3.0, 2: (0.5, 2.0)}
    same_fit(model, loaded)


def test_a_loss_with_class_weights_is_that_loss_with_weights_of_entries():
    rng = np.random.default_rng(1)
    signs, F, table = np.where(KNOWN, 2 * Y - 1, 0).astype(np.int8), rng.standard_normal(Y.shape), rng.random((2, 4))
    table[1, 3] = 0.0
    weights = np.where(signs > 0, table[1], table[0]) * (signs != 0)
    known = np.where(weights > 0, signs, 0).astype(np.int8)
    D, t = rng.standard_normal(F.shape), rng.random(4)
    loss, plain = ClassWeighted(PairwiseSquaredHinge(), table), PairwiseSquaredHinge()
    for method, more in {"value": (F,), "gradient": (F,), "hessian_diagonal": (F,), "hessian_product": (F, D),
                         "label_hessian": (F,), "curvature": ()}.items():  # fmt: skip
        np.testing.assert_array_equal(
            getattr(loss, method)(signs, *more), getattr(plain, method)(known, *more, weights)
        )
    for mine, its in zip(loss.line(signs, F, D, t), plain.line(known, F, D, t, weights), strict=True):
        np.testing.assert_array_equal(mine, its)
