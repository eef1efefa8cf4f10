"""A fit says what memory it needs before it takes it, and none that works is refused."""

import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import sparse

from rbrl import CPNL, BRLClassifier, RBRLClassifier
from rbrl.estimators.convex_problem import ConvexProblem
from rbrl.exceptions import MemoryWarning
from rbrl.problem import linear as choose
from rbrl.problem import memory

RNG = np.random.default_rng(0)
LABELS = (RNG.random((1500, 60)) < 0.1).astype(np.int8)
TALL, WIDE = RNG.standard_normal((1500, 200)), RNG.standard_normal((150, 1500))
SPARSE = sparse.random_array((300, 1500), density=0.02, format="csr", rng=RNG)


@pytest.mark.parametrize(
    ("model", "X", "largest"),
    [
        (RBRLClassifier(), TALL, 8000),
        (RBRLClassifier(), sparse.csr_array(TALL), 8000),
        (RBRLClassifier(), WIDE, 8000),
        (RBRLClassifier(), SPARSE, 8000),
        (RBRLClassifier(), SPARSE, 100),
        (BRLClassifier(max_iter=1), SPARSE, 100),
        (RBRLClassifier(nuclear=1e9), SPARSE, 100),
        (BRLClassifier(max_rank=3), SPARSE, 100),
        (CPNL(), TALL, 8000),
        (RBRLClassifier(kernel="rbf"), TALL, 8000),
        (RBRLClassifier(kernel="rbf", low_rank="function"), TALL[:400], 100),
        (RBRLClassifier(kernel="rbf", approximation="nystroem", n_components=100), TALL, 8000),
    ],
)
def test_no_fit_needs_less_than_the_least_that_it_is_refused_below(monkeypatch, model, X, largest):
    monkeypatch.setattr(memory, "LARGEST_DECOMPOSITION", largest)
    monkeypatch.setattr(choose, "LARGEST_DECOMPOSITION", largest)
    Y = LABELS[: X.shape[0]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:40], Y[:40])  # what is compiled and imported is not the fit's
        tracemalloc.start()
        model.fit(X, Y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert model.problem(X, Y).estimate_memory().least <= peak


@pytest.mark.parametrize(
    ("model", "X", "way_out"),
    [
        (RBRLClassifier(), SPARSE, "max_rank=50"),
        (RBRLClassifier(max_rank=5), SPARSE, "fewer features or labels"),
        (RBRLClassifier(), TALL, "write_shards"),
        (RBRLClassifier(kernel="rbf"), TALL, "approximation='nystroem'"),
    ],
)
def test_what_cannot_be_is_refused_at_once(monkeypatch, model, X, way_out):
    monkeypatch.setattr(memory, "ALWAYS_AVAILABLE", 0)
    monkeypatch.setattr(memory, "available_bytes", lambda: 10_000)
    monkeypatch.setattr(ConvexProblem, "solve", lambda *_: pytest.fail("the fit has begun"))
    with pytest.raises(
        MemoryError, match=rf"usually needs about .* GB for {X.shape[0]} rows, .* 1e-05 GB are available"
    ) as caught:
        model.fit(X, LABELS[: X.shape[0]])
    assert way_out in str(caught.value)


def test_what_will_hardly_be_is_warned_of_and_tried(monkeypatch):
    needs = RBRLClassifier().problem(SPARSE, LABELS[:300]).estimate_memory()
    monkeypatch.setattr(memory, "ALWAYS_AVAILABLE", 0)
    monkeypatch.setattr(memory, "available_bytes", lambda: (needs.least + needs.usual) // 2)
    with pytest.warns(MemoryWarning, match="To use less memory: set max_rank"):
        model = RBRLClassifier().fit(SPARSE, LABELS[:300])
    assert model.gap_ <= 1e-4


def test_a_memory_error_all_the_same_is_explained(monkeypatch):
    def fail(*_):
        raise MemoryError("Unable to allocate 14.9 GiB")

    monkeypatch.setattr(ConvexProblem, "solve", fail)
    with pytest.raises(MemoryError, match=r"To use less memory: set max_rank.*\(Unable to allocate 14\.9 GiB\)"):
        RBRLClassifier().fit(SPARSE, LABELS[:300])


def test_twenty_thousand_rows_of_text_with_a_thousand_labels():
    """The weights have 1.6 GB, twice where they are stored: of the columns of X and of all features."""
    columns = np.arange(200_000)
    X = sparse.csr_array((np.ones(200_000), (columns % 20_000, columns)))
    Y = np.zeros((20_000, 1000), dtype=np.int8)
    for model, expected in ((RBRLClassifier(), 3.36e9), (RBRLClassifier(max_rank=50), 2.16e9)):
        assert model.problem(X, Y).estimate_memory().usual == pytest.approx(expected, rel=0.01)
