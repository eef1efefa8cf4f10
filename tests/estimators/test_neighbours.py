"""Neighbours, ties included: by definition, and the same whatever computes them."""

import contextlib
import io
import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import rbrl
from rbrl.estimators import MLkNN, neighbours
from rbrl.estimators.neighbours import NeighbourSearch


def defined_numbers(x, X):
    """Squared distances, one feature after the other."""
    total = np.zeros(len(X))
    for j in range(X.shape[1]):
        difference = np.float64(x[j]) - X[:, j].astype(np.float64)
        total = total + difference * difference
    return total


def defined_nearest(rows, X, k, own=None):
    nearest = []
    for i, x in enumerate(rows):
        order = np.lexsort((np.arange(len(X)), defined_numbers(x, X)))
        nearest.append(np.sort(order[order != (None if own is None else own[i])][:k]))
    return np.array(nearest)


def normal(random, shape):
    return random.standard_normal(shape)


def binary(random, shape):
    return (random.random(shape) < 0.3).astype(float)


def thirds(random, shape):
    return random.integers(0, 4, shape) / 3


def repeated(random, shape):
    return random.standard_normal((7, shape[1]))[random.integers(0, 7, shape[0])]


def with_time(random, shape):
    X = random.standard_normal(shape)
    X[:, 0] = 1.7e9 + random.integers(0, 5, shape[0])
    return X


def all_scales(random, shape):
    return random.integers(-2, 3, shape) * 10.0 ** random.integers(-8, 13, shape[1])


def overflowing(random, shape):
    return random.integers(-2, 3, shape) * 1e160


def underflowing(random, shape):
    return random.integers(-2, 3, shape) * 1e-161


def nearly_integers(random, shape):
    """Integers in the training rows; in the others numbers that a shift would round to integers."""
    X = random.choice([0.0, 1.0, 12.0], shape)
    X[60:] = random.choice([0.0, 1e-16, 1.0], X[60:].shape)
    return X


def largest(random, shape):
    return random.choice([-1.7e308, 0.0, 1.7e308], shape)


KINDS = [normal, binary, thirds, repeated, with_time, all_scales, overflowing, underflowing, nearly_integers, largest]


@pytest.mark.parametrize("n_features", [3, 8, 20])
@pytest.mark.parametrize("k", [1, 10, 59])
@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_follow_the_definition(kind, k, n_features):
    random = np.random.default_rng(0)
    X, rows = np.split(kind(random, (75, n_features)), [60])
    with np.errstate(over="ignore"):
        expected = defined_nearest(X, X, k, own=np.arange(60)), defined_nearest(rows, X, k)
    for of_X, of_rows in product((np.asarray, sparse.csr_array), repeat=2):
        search = NeighbourSearch(of_X(X), k)
        np.testing.assert_array_equal(search.find_among_rows(), expected[0])
        np.testing.assert_array_equal(search.find(of_rows(rows)), expected[1])


@pytest.mark.parametrize("kind", [normal, binary, thirds, repeated, with_time])
def test_single_precision_rows_have_the_neighbours_of_their_doubles(kind):
    random = np.random.default_rng(1)
    X, rows = np.split(kind(random, (75, 20)).astype(np.float32), [60])
    expected = NeighbourSearch(X.astype(np.float64), 5).find(rows.astype(np.float64))
    for container in (np.asarray, sparse.csr_array):
        np.testing.assert_array_equal(NeighbourSearch(container(X), 5).find(container(rows)), expected)


@pytest.mark.parametrize("kind", [binary, thirds, repeated])
def test_blocks_and_threads_change_nothing(kind, monkeypatch):
    X = kind(np.random.default_rng(2), (90, 20))
    expected = NeighbourSearch(X, 6).find_among_rows()
    for name, value in {"BLOCK_DISTANCES": 1, "MIN_ROWS": 7, "NUMBER_ENTRIES": 50}.items():
        monkeypatch.setattr(neighbours, name, value)
    for container, n_jobs in product((np.asarray, sparse.csr_array), (None, 2)):
        search = NeighbourSearch(container(X), 6, n_jobs)
        assert search.filter.block_size == 7
        np.testing.assert_array_equal(search.find_among_rows(), expected)


def test_bounds_hold_and_are_narrow():
    random = np.random.default_rng(3)
    X = random.standard_normal((200, 50)) * 10.0 ** random.integers(-3, 4, (200, 1))
    rows = random.standard_normal((40, 50))
    found = neighbours.ProductFilter(X, 5).find_candidates(rows, np.full(40, -1))
    numbers = neighbours.compute_squared_distances(rows, found.row, X, found.column)
    assert (found.low <= numbers).all()
    assert (numbers <= found.high).all()
    assert len(found.row) < 40 * 20
    # What decides is computed for ties only.
    search = NeighbourSearch(X, 5)
    computed = []
    original = neighbours.compute_squared_distances
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            neighbours, "compute_squared_distances", lambda A, i, B, j: computed.append(len(i)) or original(A, i, B, j)
        )
        search.find(rows)
    assert sum(computed) == 0


def test_sparse_rows_in_any_form():
    X = thirds(np.random.default_rng(4), (30, 9))
    tidy = sparse.csr_array(X)
    untidy = sparse.csr_array((tidy.data.copy(), tidy.indices.copy(), tidy.indptr.copy()), shape=X.shape)
    for start, end in zip(untidy.indptr, untidy.indptr[1:]):
        untidy.indices[start:end] = untidy.indices[start:end][::-1].copy()
        untidy.data[start:end] = untidy.data[start:end][::-1].copy()
    untidy.has_sorted_indices = untidy.has_canonical_format = False
    before = untidy.indices.copy()
    np.testing.assert_array_equal(NeighbourSearch(untidy, 4).find(untidy), NeighbourSearch(X, 4).find(X))
    np.testing.assert_array_equal(untidy.indices, before)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_of_equal_rows_the_first_are_neighbours(container):
    # Three copies of each row: their distances are equal, whatever place in a product they have.
    random = np.random.default_rng(5)
    X = np.vstack([random.standard_normal((50, 30))] * 3)
    np.testing.assert_array_equal(NeighbourSearch(container(X), 2).find(container(X[100:])), np.c_[:50, 50:100])


@pytest.mark.parametrize("scale", ["none", "minmax"])
@pytest.mark.parametrize("kind", [binary, thirds, repeated])
def test_ml_knn_of_dense_and_sparse_rows(kind, scale):
    random = np.random.default_rng(6)
    X, rows = np.split(kind(random, (300, 40)), [200])
    Y = (random.random((200, 5)) < 0.4).astype(int)
    dense = MLkNN(5, scale=scale).fit(X, Y).decision_function(rows)
    model = MLkNN(5, scale=scale).fit(sparse.csr_array(X), Y)
    np.testing.assert_array_equal(model.decision_function(sparse.csr_array(rows)), dense)
    np.testing.assert_array_equal(model.decision_function(rows), dense)
    one_by_one = np.vstack([model.decision_function(row[None]) for row in rows])
    np.testing.assert_array_equal(one_by_one, dense)


ON_THIS_PROCESSOR = """
import hashlib, json
import numpy as np
from scipy import sparse
from rbrl.estimators import MLkNN
random = np.random.default_rng(7)
Y = (random.random((400, 6)) < 0.4).astype(int)
binary = (random.random((600, 60)) < 0.2).astype(float)
copies = np.round(random.standard_normal((60, 60)), 1)[random.integers(0, 60, 600)]
answers = {}
for name, X in {"binary": binary, "copies": copies}.items():
    for container in (np.asarray, sparse.csr_array):
        for dtype in (np.float64, np.float32):
            for scale in ("none", "minmax"):
                train, rows = container(X[:400].astype(dtype)), container(X[400:].astype(dtype))
                scores = MLkNN(7, scale=scale).fit(train, Y).decision_function(rows)
                what = f"{name} {container.__name__} {dtype.__name__} {scale}"
                answers[what] = hashlib.sha256(scores.tobytes()).hexdigest()
print(json.dumps(answers))
"""
VECTOR_INSTRUCTIONS = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
PROCESSORS = [
    {"OPENBLAS_CORETYPE": "Nehalem"},
    {"OPENBLAS_CORETYPE": "Haswell"},
    {"OPENBLAS_CORETYPE": "Zen"},
    {"OPENBLAS_CORETYPE": "SkylakeX"},
    {"OPENBLAS_CORETYPE": "Nehalem", "NPY_DISABLE_CPU_FEATURES": " ".join(VECTOR_INSTRUCTIONS)},
]


# Each processor takes a process: the last one, which has the fewest instructions, stands for the others without --soak.
@pytest.mark.parametrize(
    "processor", [*(pytest.param(one, marks=pytest.mark.soak) for one in PROCESSORS[:-1]), PROCESSORS[-1]]
)
def test_ml_knn_is_the_same_on_every_processor(processor):
    if not _runs_here(processor):
        pytest.skip(f"this machine lacks instructions of {processor['OPENBLAS_CORETYPE']}")
    assert _answers_of(processor) == json.loads(_run_here(ON_THIS_PROCESSOR))


def _run_here(program):
    """Run a program in this process; return its output."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(program, {})
    return output.getvalue()


def _runs_here(processor):
    """Whether the machine has the instructions: the kernels of a newer one end in a crash, which says nothing of ours."""
    product = "import numpy as np; np.ones((99, 99)) @ np.ones((99, 99))"
    return subprocess.run([sys.executable, "-c", product], env=os.environ | processor).returncode == 0


def _answers_of(processor):
    """What a process sees that takes the machine for another one."""
    environment = os.environ | {"PYTHONPATH": str(Path(rbrl.__file__).parents[1])} | processor
    command = [sys.executable, "-W", "ignore", "-c", ON_THIS_PROCESSOR]
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)
