"""The compiled loops compute what the plain ones define, refuse what they could not write to, and can be done without."""

import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification

import rbrl
from problems import random_labels
from rbrl import RBRLClassifier
from rbrl._loops import COMPILED, reference, rows
from rbrl.ranking_svm.pairs import calibrated_pairs

LOOPS = {name: f for name, f in vars(reference).items() if inspect.isfunction(f) and name[0] != "_"}
# What each loop changes.
OUTPUTS = {
    "squared_hinge": {"R"}, "squared_hinge_diagonal": {"H"}, "squared_hinge_labels": {"M"},
    "squared_hinge_line": {"d1", "d2"},
    "pairwise_hinge": {"R"}, "pairwise_hinge_product": {"P"}, "pairwise_hinge_labels": {"M"},
    "pairwise_hinge_line": {"d1", "d2"}, "column_dots": set(), "memory_backward": {"q"}, "memory_forward": {"z"},
    "clipped_dual_maximum": set(), "sparse_product": {"out"}, "sparse_adjoint": {"out"},
    "best_sparse_scores": {"columns", "best"},
    "ascend_gram": {"alpha", "scores", "biases"}, "ascend_rows": {"alpha", "W", "biases"}, "pair_hinge": set(),
    "pair_sums": {"R"}, "project_pairs": {"new", "r", "H"}, "pair_slacks": {"out"}, "pair_products": {"R"},
    "gram_blocks": {"G"}, "dual_ascent_dense": {"W", "Z"}, "dual_ascent_sparse": {"W", "Z"},
    "dual_ascent_kernel": {"W", "Z"},
}  # fmt: skip
OF_SCORES = [name for name in LOOPS if "hinge" in name and name != "pair_hinge"]
# Rows shorter and longer than the pieces that a loop takes at a time, and none at all.
SHAPES = ((9, 6), (1, 1), (60, 1), (70, 14), (5, 300), (0, 4))
WEIGHTS = ("one", "rows", "entries")
compiled = pytest.mark.skipif(not COMPILED, reason="nothing was compiled here")


def scores(rng, shape, ties=False):
    """Scores; with ties, halves: differences of two of them then lie on the margins, and are exact."""
    values = rng.standard_normal(shape)
    return np.round(2 * values) / 2 if ties else values


def of_losses(rng, n, l, dtype=np.float64, weights="one", missing=False, ties=False):
    """An array for each argument of the losses' loops; the first rows have no label, and all of them."""
    Y = np.where(rng.random((n, l)) < 0.4, np.int8(1), np.int8(-1))
    Y[:1], Y[1:2] = -1, 1
    if missing:
        Y[rng.random((n, l)) < 0.3] = 0
        Y[4:5] = 0
    return {
        "Y": Y,
        "weights": {
            "one": np.full(n, 0.5), "rows": rng.random(n), "entries": np.where(Y != 0, 0.1 + rng.random((n, l)), 0.0)
        }[weights],
        **{name: scores(rng, (n, l), ties).astype(dtype) for name in "FDRHP"},
        **{name: rng.standard_normal(l) for name in ("t", "d1", "d2")},
        "M": rng.standard_normal((l, l)),
        "costs": 1 + rng.random(l),
        **{"scale": 0.7, "margin": 1.5, "coupling": 0.6},
    }  # fmt: skip


def of_algebra(rng, n, l, joint=False, data_type=np.float64, index_type=np.int32, n_columns=7):
    """An array for each argument of the solvers' loops."""
    X = sparse.random_array((n, n_columns), density=0.4, rng=rng, format="csr", dtype=data_type)
    return {
        **{name: rng.standard_normal((n, l)) for name in ("D", "out", "q", "z")},
        **{name: rng.standard_normal((3, n, l)) for name in ("steps", "changes")},
        **{name: rng.standard_normal((3, l)) for name in ("rho", "coefficients")},
        "order": np.array([1, 2, 0]),
        "joint": joint,
        "W": rng.standard_normal((n_columns + 1, l)),
        "data": X.data,
        "indices": X.indices.astype(index_type),
        "indptr": X.indptr.astype(index_type),
        "sigma": np.sort(rng.random(l)),
        **{"linear": 3.0, "quadratic": 0.5, "reach": 0.4 if joint else np.inf, "ridge": 0.2, "limit": 0.5},
    }


def of_pairs(rng, n, index_type=np.int32):
    """An array for each argument of the ranking SVMs' loops; the first row has no feature."""
    pairs = calibrated_pairs(random_labels(rng, n, 4), 1.0)
    X = sparse.csr_array(rng.standard_normal((n, 6)) * (rng.random((n, 6)) < 0.5) * (np.arange(n) > 0)[:, None])
    K, l = (X @ X.T).toarray(), pairs.n_labels
    alpha = rng.random(len(pairs.cap)) * pairs.cap
    return {
        **dict(zip(("start", "winner", "loser", "margin", "cap"), pairs.arrays, strict=True)),
        **{"alpha": alpha, "new": np.zeros_like(alpha), "out": np.zeros_like(alpha)},
        **{"curvatures": rng.random(len(alpha)), "values": rng.random(len(alpha)), "sign": -1.0},
        **{"data": X.data, "indices": X.indices.astype(index_type), "indptr": X.indptr.astype(index_type)},
        **{"norms": np.diag(K).copy(), "K": K, "lift": 0.25, "order": rng.permutation(n), "inner": 3},
        **{name: rng.standard_normal(l) for name in ("biases", "r")},
        **{"F": rng.standard_normal((n, l)), "R": rng.random((n, l)), "steps": 0.1 + rng.random(n)},
        **{"scores": rng.standard_normal((l, n)), "W": rng.standard_normal((6, l)), "G": rng.random((6, 6, l))},
        "H": rng.random((l, l)),
    }


def assert_equal_loops(name, values, precision=np.float64, **changed):
    """Call both versions of a loop with copies of the values, and compare what they return and leave in their arrays."""
    names = inspect.signature(LOOPS[name]).parameters
    calls = [{key: np.copy(v) if isinstance(v := changed.get(key, values[key]), np.ndarray) else v for key in names}
             for _ in range(3)]  # fmt: skip
    results = [loop(*call.values()) for loop, call in zip((LOOPS[name], getattr(rows, name)), calls, strict=False)]
    kinds = [[type(one) for one in (result if isinstance(result, tuple) else [result])] for result in results]
    assert kinds[0] == kinds[1], f"{name}: the twins return other types"
    rtol = 1e-12 if precision == np.float64 else 2e-5
    pairs = [] if results[0] is None else [("result", results[0], results[1])]
    pairs += [(key, calls[0][key], calls[1][key]) for key in names]
    for key, expected, got in pairs:
        largest = np.max(np.abs(expected), initial=1.0, where=np.isfinite(expected))
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol * largest, err_msg=f"{name}: {key}")
    unchanged = set(names) - OUTPUTS[name]
    for key in unchanged:
        np.testing.assert_array_equal(calls[1][key], calls[2][key], err_msg=f"{name} must leave {key} alone")


def test_every_loop_is_compiled_and_its_outputs_are_known():
    assert set(OUTPUTS) == set(LOOPS)
    if COMPILED:
        assert {name for name in dir(rows) if name[0] != "_"} == set(LOOPS)


@compiled
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", OF_SCORES)
def test_losses(name, shape):
    rng = np.random.default_rng(len(name))
    for dtype in (np.float64, np.float32):
        for weights in WEIGHTS:
            for missing in (False, True):
                for ties in (False, True):
                    assert_equal_loops(name, of_losses(rng, *shape, dtype, weights, missing, ties), dtype)


def of_rows(rng, n, l, weights, missing, index_type=np.int32, graph=False):
    """An array for each argument of the loops over rows: rows of zeros, of no label and of all labels are among them."""
    edges = np.triu(rng.random((l, l)) < 0.3, 1) * rng.random((l, l)) * graph
    L = sparse.csr_array(np.diag((edges + edges.T).sum(axis=1)) - edges - edges.T)
    X = sparse.random_array((n, 7), density=0.5, rng=rng, format="csr")
    losses = of_losses(rng, n, l, weights=weights, missing=missing)
    dense = X.toarray()
    return {
        **{name: losses[name] for name in ("Y", "weights", "costs", "margin")},
        "X": dense,
        "squares": np.sum(dense**2, axis=1),
        "data": X.data,
        "indices": X.indices.astype(index_type),
        "indptr": X.indptr.astype(index_type),
        "order": rng.permutation(n).astype(np.int32),
        "W": rng.standard_normal((7, l)),
        "Z": rng.standard_normal((n, l)),
        "K": dense @ dense.T,
        "scores": rng.standard_normal((n, l)),
        **{"graph_data": L.data, "graph_indices": L.indices, "graph_indptr": L.indptr},
        **{"hinge": 0.8, "pairs": 3.0, "ridge": 0.3},
    }


@compiled
@pytest.mark.parametrize("shape", [(9, 6), (1, 1), (30, 1), (40, 14), (4, 30), (0, 4)])
@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("name", ["dual_ascent_dense", "dual_ascent_sparse", "dual_ascent_kernel"])
def test_rows(name, shape, graph):
    rng = np.random.default_rng(1)
    for weights in WEIGHTS:
        for missing in (False, True):
            for index_type in (np.int32, np.int64):
                values = of_rows(rng, *shape, weights, missing, index_type, graph)
                changes = {"W": np.zeros(values["scores"].shape)} if name == "dual_ascent_kernel" else {}
                assert_equal_loops(name, values, **changes)


@compiled
@pytest.mark.parametrize("name", ["squared_hinge", "pairwise_hinge"])
def test_gradients_in_double_precision_of_scores_in_single(name):
    rng = np.random.default_rng(0)
    values = of_losses(rng, 30, 5, np.float32, "entries")
    assert_equal_loops(name, values, np.float32, R=values["R"].astype(np.float64))


@compiled
@pytest.mark.parametrize("shape", [(9, 6), (30, 1), (11, 14), (5, 53)])
@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("name", ["column_dots", "memory_backward", "memory_forward", "clipped_dual_maximum"])
def test_algebra(name, shape, joint):
    values = of_algebra(np.random.default_rng(1), *shape, joint)
    if name == "column_dots":
        values |= {"A": values["q"], "B": values["z"]}
    assert_equal_loops(name, values)


@compiled
@pytest.mark.parametrize("data_type", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("name", ["sparse_product", "sparse_adjoint"])
def test_sparse_products(name, data_type, index_type):
    values = of_algebra(np.random.default_rng(2), 30, 5, data_type=np.float64, index_type=index_type)
    data = (10 * values["data"]).astype(data_type)
    out = values["out"] if name == "sparse_product" else values["W"]
    assert_equal_loops(name, values, data_type if data_type == np.float32 else np.float64, data=data, out=out)


@compiled
@pytest.mark.parametrize("data_type", [np.float64, np.float32])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("k", [1, 4, 12])
def test_best_sparse_scores(data_type, index_type, k):
    rng = np.random.default_rng(7)
    X, W = (sparse.random_array(shape, density=0.3, rng=rng, format="csr") for shape in ((9, 20), (20, 12)))
    # Halves are exact, so that scores tie in both versions.
    arrays = {"data": X.data, "W_data": np.round(8 * W.data) / 2}
    arrays["data"] = np.round(4 * arrays["data"]) / 2
    indices = {"indices": X.indices, "indptr": X.indptr, "W_indices": W.indices, "W_indptr": W.indptr}
    arguments = {name: values.astype(data_type) for name, values in arrays.items()}
    arguments |= {name: values.astype(index_type) for name, values in indices.items()}
    arguments["intercepts"] = np.round(rng.standard_normal(12))
    found = []
    for module in (rows, reference):
        found.append({"columns": np.empty((9, k), dtype=np.int64), "best": np.empty((9, k))})
        module.best_sparse_scores(**arguments, **found[-1])
    for name in ("columns", "best"):
        np.testing.assert_array_equal(found[0][name], found[1][name])


@compiled
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("lift", [0.0, 0.25])
@pytest.mark.parametrize("name", [name for name in LOOPS if name.startswith(("pair_", "ascend_", "project_"))])
def test_pairs(name, index_type, lift):
    assert_equal_loops(name, of_pairs(np.random.default_rng(3), 9, index_type), lift=lift)


@compiled
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_gram_blocks(index_type):
    values = of_pairs(np.random.default_rng(4), 9, index_type)
    assert_equal_loops("gram_blocks", values, H=values["R"])


@pytest.mark.parametrize("joint", [False, True])
def test_the_clipped_dual_is_maximal_along_its_ray(joint):
    names = ("sigma", "linear", "quadratic", "reach", "ridge", "limit")
    values = of_algebra(np.random.default_rng(joint), 9, 6, joint)
    sigma, linear, quadratic, reach, ridge, limit = call = [values[name] for name in names]
    theta = np.linspace(0, min(reach, 10.0), 100_001)[:, None]
    over = np.maximum(theta * sigma - limit, 0.0)
    along = linear * theta[:, 0] - quadratic * theta[:, 0] ** 2 - (over**2).sum(axis=1) / (2 * ridge)
    best, at = rows.clipped_dual_maximum(*call)
    assert best == pytest.approx(along.max(), rel=1e-8)
    assert at == pytest.approx(theta[along.argmax(), 0], abs=1e-4)


@pytest.mark.parametrize("name", ["squared_hinge", "pairwise_hinge"])
def test_nan_scores_are_not_hidden(name):
    values = of_losses(np.random.default_rng(0), 9, 6)
    values["F"][3] = np.nan
    assert np.isnan(getattr(rows, name)(*(values[key] for key in inspect.signature(LOOPS[name]).parameters))[0])


@compiled
@pytest.mark.parametrize("name", OF_SCORES)
def test_inputs_of_any_layout_are_taken(name):
    values = of_losses(np.random.default_rng(5), 20, 6)
    other = {"Y": values["Y"].astype(np.int64), "F": np.asfortranarray(values["F"])}
    names = inspect.signature(LOOPS[name]).parameters
    calls = [{key: np.copy(values[key]) for key in names} for _ in range(2)]
    plain, strange = (
        getattr(rows, name)(*(call | extra).values()) for call, extra in zip(calls, ({}, other), strict=True)
    )
    assert plain == strange
    for key in OUTPUTS[name]:
        np.testing.assert_array_equal(calls[0][key], calls[1][key])


@compiled
@pytest.mark.parametrize(
    "refused", [np.zeros((20, 12))[:, ::2], np.zeros((20, 6), order="F"), np.zeros((20, 6), np.int64)]
)
def test_an_output_that_would_have_to_be_copied_is_refused(refused):
    values = of_losses(np.random.default_rng(6), 20, 6) | {"R": refused}
    with pytest.raises(TypeError):
        rows.squared_hinge(*(values[key] for key in inspect.signature(LOOPS["squared_hinge"]).parameters))
    assert not refused.any()


@compiled
def test_arrays_that_do_not_fit_each_other_are_refused():
    values = of_losses(np.random.default_rng(7), 20, 6)
    for key, wrong in {"Y": values["Y"][1:], "weights": np.ones(19), "costs": np.ones(5), "R": values["R"][1:]}.items():
        call = values | {key: wrong}
        with pytest.raises(ValueError, match=key):
            rows.squared_hinge(*(call[name] for name in inspect.signature(LOOPS["squared_hinge"]).parameters))


FIT = """
from sklearn.datasets import make_multilabel_classification
X, Y = make_multilabel_classification(40, 6, n_classes=4, random_state=0)
import rbrl
scores = rbrl.RBRLClassifier(ridge=10, solver="quasi-newton").fit(X, Y).decision_function(X[:2])
print(rbrl.__file__, rbrl._loops.COMPILED, *scores.ravel().tolist())
"""


def fit_elsewhere(folder, code="", **environment):
    """Fit in another process, with the package of a folder: where that is, whether it is compiled, scores, and errors."""
    run = subprocess.run(
        [sys.executable, "-B", "-c", f"{code}\nimport rbrl._loops\n{FIT}"],
        capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(folder), "PYTHONWARNINGS": ""} | environment,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    where, flag, *found = run.stdout.split()
    return Path(where).parent, flag == "True", np.array(found, float), run.stderr


def test_the_package_works_without_the_core_and_says_so_once():
    without = "import sys\nsys.modules['rbrl._loops._core'] = None"
    _, is_compiled, found, said = fit_elsewhere(Path(rbrl.__file__).parents[1], without)
    X, Y = make_multilabel_classification(40, 6, n_classes=4, random_state=0)
    assert not is_compiled
    assert said.count("SlowLoopsWarning") == 1
    assert "slower" in said
    assert "install" in said
    np.testing.assert_allclose(
        found, RBRLClassifier(ridge=10, solver="quasi-newton").fit(X, Y).decision_function(X[:2]).ravel(), rtol=1e-9
    )


def test_the_package_works_where_no_folder_can_be_written_to(tmp_path):
    """Files in the place of the cache folders keep even the superuser from making them."""
    copy = shutil.copytree(Path(rbrl.__file__).parent, tmp_path / "rbrl", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (copy, copy / "_loops"):
        (folder / "__pycache__").write_text("not a folder")
    before = sorted(tmp_path.rglob("*"))
    where, is_compiled, _, said = fit_elsewhere(tmp_path, HOME=os.devnull, XDG_CACHE_HOME=os.devnull)
    assert (where, is_compiled) == (copy, COMPILED)
    assert COMPILED is (not said)
    assert sorted(tmp_path.rglob("*")) == before
