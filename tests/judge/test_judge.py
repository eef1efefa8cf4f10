"""What every fit claims, judged in extended precision; and the judge itself, judged by what is known."""

import warnings

import numpy as np
import pytest
from scipy.linalg import hilbert

from rbrl import BRLClassifier, CalibratedRankSVM, RankSVM, RankSVMz, RBRLClassifier
from rbrl.estimators import CPNL

from .posed import EPSILON, EXTENDED, IS_EXTENDED, cholesky, pose, singular_values
from .problems import KINDS, Problem, random_problem
from .ranking import RANKING_KINDS, RankingProblem, pose_ranking, random_ranking_problem
from .verdict import judge
from .witness import Search, lowest_value

pytestmark = pytest.mark.skipif(
    not IS_EXTENDED, reason=f"a long double has a precision of {EPSILON} here: no better than what is judged"
)
# Problems of each kind in a run without --soak; a soak goes on where it ends.
OF_EACH_KIND = 10
SOAK, SOAK_PART = 10_000, 500


def check(problems):
    wrong = [verdict for verdict in map(judge, problems) if verdict.wrong]
    assert not wrong, f"{len(wrong)} fits claim what is not so:\n" + "\n".join(map(str, wrong))


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=KINDS)
def test_every_claim_is_true(kind):
    check(random_problem(seed) for seed in range(kind, OF_EACH_KIND * len(KINDS), len(KINDS)))


@pytest.mark.soak
@pytest.mark.parametrize("start", range(OF_EACH_KIND * len(KINDS), SOAK, SOAK_PART))
def test_every_claim_of_thousands_is_true(start):
    check(random_problem(seed) for seed in range(start, start + SOAK_PART))


@pytest.mark.parametrize("kind", range(len(RANKING_KINDS)), ids=RANKING_KINDS)
def test_every_claim_of_a_ranking_svm_is_true(kind):
    seeds = range(kind, OF_EACH_KIND * len(RANKING_KINDS), len(RANKING_KINDS))
    check(random_ranking_problem(seed) for seed in seeds)


@pytest.mark.soak
@pytest.mark.parametrize("start", range(OF_EACH_KIND * len(RANKING_KINDS), SOAK, SOAK_PART))
def test_every_claim_of_thousands_of_ranking_svms_is_true(start):
    check(random_ranking_problem(seed) for seed in range(start, start + SOAK_PART))


@pytest.mark.parametrize("estimator", [RankSVM, RankSVMz, CalibratedRankSVM])
@pytest.mark.parametrize("bias", ["free", "absorbed", "none"])
def test_a_ranking_svm_in_single_precision(estimator, bias):
    """The certificate is that of the coefficients after they were rounded to single precision."""
    rng = np.random.default_rng(0)
    X = (300 * rng.standard_normal((20, 30))).astype(np.float32)
    Y = (rng.random((20, 4)) < 0.5).astype(int)
    verdict = judge(RankingProblem(0, "float32", estimator(C=1000, bias=bias, tol=1e-6), X, Y))
    assert not verdict.wrong, str(verdict)


@pytest.mark.parametrize("bias", ["free", "absorbed", "none"])
@pytest.mark.parametrize("offset", [1e5, 1e6, 1e7, 1e8])
def test_a_ranking_svm_of_one_row_far_from_the_origin(bias, offset):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, Y = offset + rng.standard_normal((1, 3)), np.array([[1, 0, 1, 0]])
        verdict = judge(RankingProblem(0, "tiny", RankSVM(C=1.0, bias=bias), X, Y))
        assert not verdict.wrong, str(verdict)


def test_the_search_reaches_the_optimum_of_ranking_svms():
    """The witness is as good as the fit, so that a false certificate would be seen."""
    verdicts = [judge(random_ranking_problem(seed)) for seed in range(100)]
    assert sum(verdict.good_witness for verdict in verdicts) >= 98


def test_ranking_objectives_by_hand():
    """One row, one feature of 2, a relevant and an irrelevant label, weights .5 and 1: scores 1 and 2."""
    X, Y, W = np.array([[2.0]]), np.array([[1, 0]]), np.array([[0.5, 1.0]], EXTENDED)
    plain = pose_ranking(RankSVM(C=3.0, bias="none"), X, Y).value(W)[0]
    assert float(plain) == (0.5**2 + 1.0**2) / 2 + 3 * (1 + 1)
    # The zero label has a weight of .25, and a score of .5.
    W = np.array([[0.5, 1.0, 0.25]], EXTENDED)
    penalty = (0.5**2 + 1.0**2 + 0.25**2) / 2
    zero = pose_ranking(RankSVMz(C=3.0, bias="none"), X, Y).value(W)[0]
    assert float(zero) == penalty + 3 * (0.5 + 2.5)
    calibrated = pose_ranking(CalibratedRankSVM(C=3.0, bias="none"), X, Y).value(W)[0]
    assert float(calibrated) == penalty + 3 * (3 + 0.5 + 2.5)


# Columns that were certified falsely, refused, or ended in another exception.


def labelled(X, n_labels=1, seed=0):
    rng = np.random.default_rng(seed)
    return (X @ rng.standard_normal((X.shape[1], n_labels)) > 0).astype(int)


def with_column(column, n=400, m=5, n_labels=1, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, m))
    return np.column_stack([X, np.broadcast_to(column, n)]), labelled(X, n_labels)


def time_stamps(n=400):
    return 1.7e9 + 1e5 * np.random.default_rng(7).random(n)


MODELS = {
    "BRL": BRLClassifier(ridge=1, nuclear=0),
    "RBRL": RBRLClassifier(ridge=1, ranking=0.1, nuclear=0),
    "RBRL low rank": RBRLClassifier(ridge=1, ranking=0.1, nuclear=0.1),
    "CPNL": CPNL(ridge=1),
    "apg": BRLClassifier(ridge=1, nuclear=0, solver="apg"),
    "low-rank": BRLClassifier(ridge=1, nuclear=0.1, solver="low-rank"),
}


@pytest.mark.parametrize("n_parts", [0, 3], ids=["array", "blocks"])
@pytest.mark.parametrize("name", MODELS)
def test_a_time_stamp_among_the_features(name, n_parts):
    if n_parts and name in ("apg", "low-rank"):
        pytest.skip("rows in blocks have one solver")
    X, Y = with_column(time_stamps())
    problem = Problem(0, "dense", MODELS[name], X, Y, n_parts=n_parts)
    verdict = judge(problem)
    assert not verdict.wrong, str(verdict)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        accuracy = np.mean(problem.fit().predict(X) == Y)
    assert accuracy > 0.98 or verdict.warned, f"training accuracy {accuracy}, gap {verdict.gap:.1e}, no warning"


def test_weights_that_leave_the_time_stamp_alone_are_a_witness():
    """The posed problem has weights with a tenth of the objective of those that rely on that column."""
    X, Y = with_column(time_stamps())
    posed = pose(MODELS["BRL"], X, Y)
    without = pose(MODELS["BRL"], X[:, :5], Y)
    zero = np.zeros(posed.shape, EXTENDED)
    best, _ = lowest_value(posed, zero)
    assert best <= lowest_value(without, np.zeros(without.shape, EXTENDED))[0] * (1 + 1e-12)
    assert best < 0.4 * posed.value(zero)[0]


@pytest.mark.parametrize("constant", [1e6, 1e9])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("nuclear", [0.0, 0.1])
def test_a_large_constant_column(kernel, constant, nuclear):
    X, Y = with_column(constant, n=40, n_labels=3)
    verdict = judge(Problem(0, "dense", RBRLClassifier(ridge=1, nuclear=nuclear, kernel=kernel, gamma="paper"), X, Y))
    assert not verdict.wrong, str(verdict)
    if kernel == "rbf":
        # Differences of rows are what they are without that column.
        assert not verdict.warned, str(verdict)


# The judge.


class Liar(Problem):
    """A fit whose claims are changed afterwards."""

    def fit(self):
        model = super().fit()
        self.lie(model)
        return model


def lied(lie):
    X, Y = with_column(1.0, n=50, m=4, n_labels=3)
    problem = Liar(0, "dense", RBRLClassifier(ridge=0.5, nuclear=0.2, tol=1e-6), X, Y)
    problem.lie = lie
    return judge(problem)


def test_an_honest_fit_is_right():
    verdict = lied(lambda model: None)
    assert not verdict.wrong
    assert 0 <= verdict.true_gap <= verdict.gap <= 1e-6


def far_off(model):
    model.coef_[0, 0] += 1.0


def a_little_off(model):
    model.objective_ *= 1 + 1e-8


def too_sure(model):
    model.gap_ = 0.5 * lied(lambda model: None).true_gap


def not_a_number(model):
    model.gap_ = np.nan


def silent(model):
    model.gap_ = 1e-3


@pytest.mark.parametrize(
    ("lie", "letters"), [(far_off, "ab"), (a_little_off, "a"), (too_sure, "b"), (not_a_number, "c"), (silent, "c")]
)
def test_the_judge_finds_a_lie(lie, letters):
    assert "".join(sorted(lied(lie).wrong)) == letters


def test_the_judge_hears_warnings_and_exceptions():
    def noisy(model):
        warnings.warn("overflow", RuntimeWarning, stacklevel=1)

    def broken(model):
        raise KeyError("gap_")

    assert lied(noisy).wrong == {"d": "RuntimeWarning: overflow"}
    assert lied(broken).wrong == {"d": "KeyError: 'gap_'"}


def test_the_objective_by_hand():
    """Two rows, two labels: every term written out."""
    X, Y = np.array([[2.0], [-1.0]]), np.array([[1, 0], [1, 1]])
    model = RBRLClassifier(ridge=3.0, ranking=5.0, nuclear=7.0)
    W = np.array([[0.25, 0.5], [0.0, 0.0]], EXTENDED)
    # Scores (.5, 1) and (-.25, -.5): the second row has no pair.
    hinge = 0.5**2 + 2**2 + 1.25**2 + 1.5**2
    expected = hinge / 2 + 5 * (2 - (0.5 - 1)) ** 2 / 2 + 3 * (0.25**2 + 0.5**2) / 2 + 7 * np.sqrt(0.25**2 + 0.5**2)
    assert float(pose(model, X, Y).value(W)[0]) == pytest.approx(expected, rel=1e-15)
    weighted = pose(model.set_params(ranking=0, ridge=0, nuclear=0), X, Y, np.array([0.0, 2.0])).value(W)[0]
    assert float(weighted) == 1.25**2 + 1.5**2


def test_singular_values_have_extended_precision():
    a, b = singular_values(np.array([[3, 0], [4, 5]], EXTENDED))
    assert abs(a**2 - 45) < 1e-17
    assert abs(b**2 - 5) < 1e-17
    graded = np.array([[1, 1], [0, EXTENDED(1e-15)], [0, 0]], EXTENDED)
    a, b = singular_values(graded)
    assert abs(a * b / EXTENDED(1e-15) - 1) < 1e-17
    H = hilbert(6)[:, :4]
    np.testing.assert_allclose(singular_values(H).astype(float), np.linalg.svd(H, compute_uv=False), rtol=1e-11)


def test_cholesky_of_a_matrix_that_is_all_but_singular():
    K = EXTENDED(1) / (np.arange(12)[:, None] + np.arange(12)[None] + 1)
    C, pivots = cholesky(K)
    assert np.abs(C @ C.T - K).max() < 1e-18
    assert 8 <= len(pivots) <= 12


@pytest.mark.parametrize("seed", range(8, 24))
def test_newton_has_the_right_derivatives(seed):
    problem = random_problem(seed)
    search = Search(pose(problem.model, problem.X, problem.Y, problem.weights))
    rng = np.random.default_rng(seed)
    V, D, h = rng.standard_normal(search.shape), rng.standard_normal(search.shape), 1e-6
    epsilon = 0.3 * search.largest
    before, here, after = (search.at(V + t * D, epsilon) for t in (-h, 0.0, h))
    # Tighter than any wrong term, and loose enough for a hinge that is crossed in between.
    slope = (after.value - before.value) / (2 * h)
    assert float((here.gradient * D).sum()) == pytest.approx(float(slope), rel=1e-5, abs=1e-5 * abs(here.value))
    curvature = ((after.gradient - before.gradient) / (2 * h)).ravel()
    product = here.hessian() @ D.ravel()
    assert np.linalg.norm(product - curvature) <= 1e-3 * np.linalg.norm(curvature) + 1e-7
