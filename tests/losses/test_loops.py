"""The compiled row kernels compute what the NumPy ones define, and the package works without them."""

import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification

import rbrl
from problems import random_labels
from rbrl import RBRLClassifier
from rbrl._loops import reference

compiled = pytest.importorskip("rbrl._loops.compiled")
# Kernels of the pairs of labels are tested with the ranking SVMs.
OF_PAIRS = re.compile("pair_|ascend_|project_pairs|gram_blocks")
OUTPUTS = ("R", "H", "P", "M", "d1", "d2", "q", "z", "out")


def functions(module):
    """The kernels that a module has for losses and solvers, helpers aside."""
    own = {name: f for name, f in vars(module).items() if getattr(f, "__module__", "").startswith("rbrl._loops.")}
    return {name: f for name, f in own.items() if name[0] != "_" and name != "compiled" and not OF_PAIRS.match(name)}


def positive_definite(rng, size):
    root = rng.standard_normal((size, size))
    return root @ root.T + np.eye(size)


def arguments(function, dtype, seed=0, n=9, l=6):
    """One array for each argument's name; a kernel with a new one adds it here.

    Beside seed 0, entries are missing; with seed 2, the others have weights of their own.
    """
    rng = np.random.default_rng(seed)
    values = {
        "Y": random_labels(rng, n, l),
        "F": rng.standard_normal((n, l)).astype(dtype),
        "D": rng.standard_normal((n, l)).astype(dtype),
        "t": rng.standard_normal(l),
        "weights": rng.random(n),
        "scale": 0.7,
        "costs": 1 + rng.random(l),
        "margin": 1.5,
        "coupling": 0.6,
        **{name: rng.standard_normal((n, l)).astype(dtype) for name in "RHP"},
        **{name: rng.standard_normal(l) for name in ("d1", "d2")},
        "M": rng.standard_normal((l, l)),
        **{name: positive_definite(rng, l) for name in "ABC"},
        **{name: rng.random(n) for name in ("first", "second")},
        **{name: rng.standard_normal((n, l)) for name in ("G", "out", "q", "z")},
        **{name: rng.standard_normal((3, n, l)) for name in ("steps", "changes")},
        **{name: rng.standard_normal((3, l)) for name in ("rho", "coefficients")},
        "order": np.array([1, 2, 0]),
        "joint": seed == 1,
        "W": rng.standard_normal((n + 1, l)),
        "data": rng.standard_normal(12).astype(dtype),
        "indices": rng.integers(0, n, 12),
        "indptr": np.array([0, 3, 3, 5, 6, 7, 8, 9, 11, 12]),
        "sigma": np.sort(rng.random(l)),
        **{"linear": 3.0, "quadratic": 0.5, "reach": 0.4 if seed else np.inf, "ridge": 0.2, "limit": 0.5},
    }
    if seed:
        values["Y"][rng.random((n, l)) < 0.3] = 0
        values["Y"][4] = 0
    if seed == 2:
        values["weights"] = np.where(values["Y"] != 0, 0.1 + rng.random((n, l)), 0.0)
    return {name: values[name] for name in inspect.signature(function).parameters}


def test_both_modules_hold_the_same_functions():
    signatures = [
        {name: tuple(inspect.signature(f).parameters) for name, f in functions(module).items()}
        for module in (reference, compiled)
    ]
    assert signatures[0] == signatures[1]
    assert len(signatures[0]) >= 13


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-12), (np.float32, 2e-5)])
@pytest.mark.parametrize("name", functions(reference))
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_compiled_equals_reference(name, dtype, rtol, seed):
    defined, fast = getattr(reference, name), getattr(compiled, name)
    expected, got, untouched = (arguments(defined, dtype, seed) for _ in range(3))
    results = [f(*a.values()) for f, a in ((defined, expected), (fast, got))]
    if results[0] is not None:
        np.testing.assert_allclose(results[1], results[0], rtol=rtol)
    for key, value in got.items():
        np.testing.assert_allclose(value, expected[key], rtol=rtol, atol=rtol)
        changed = key in OUTPUTS
        assert np.array_equal(value, untouched[key]) != changed, key


@pytest.mark.parametrize("seed", [0, 1])
def test_the_clipped_dual_is_maximal_along_its_ray(seed):
    sigma, linear, quadratic, reach, ridge, limit = call = arguments(
        reference.clipped_dual_maximum, float, seed
    ).values()
    theta = np.linspace(0, min(reach, 10.0), 100_001)[:, None]
    over = np.maximum(theta * sigma - limit, 0.0)
    values = linear * theta[:, 0] - quadratic * theta[:, 0] ** 2 - (over**2).sum(axis=1) / (2 * ridge)
    best, at = compiled.clipped_dual_maximum(*call)
    assert best == pytest.approx(values.max(), rel=1e-8)
    assert at == pytest.approx(theta[values.argmax(), 0], abs=1e-4)


@pytest.mark.parametrize("name", ["squared_hinge", "pairwise_hinge"])
def test_nan_scores_are_not_hidden(name):
    call = arguments(getattr(reference, name), np.float64)
    call["F"][3] = np.nan
    assert np.isnan(getattr(compiled, name)(*call.values())[0])


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
from rbrl import RBRLClassifier
from rbrl._loops import COMPILED
from sklearn.datasets import make_multilabel_classification
X, Y = make_multilabel_classification(40, 6, n_classes=4, random_state=0)
print(COMPILED, *RBRLClassifier(ridge=10).fit(X, Y).decision_function(X[:2]).ravel().tolist())
"""


def test_the_package_works_without_numba():
    environment = os.environ | {"PYTHONPATH": str(Path(rbrl.__file__).parents[1])}
    run = subprocess.run([sys.executable, "-c", WITHOUT_NUMBA], capture_output=True, text=True, env=environment)
    assert not run.stderr
    flag, *scores = run.stdout.split()
    X, Y = make_multilabel_classification(40, 6, n_classes=4, random_state=0)
    expected = RBRLClassifier(ridge=10).fit(X, Y).decision_function(X[:2]).ravel()
    assert flag == "False"
    np.testing.assert_allclose(np.array(scores, float), expected, rtol=1e-9)


NOTHING_WRITABLE = """
import rbrl.estimators
from rbrl._loops import COMPILED
from sklearn.datasets import make_multilabel_classification
X, Y = make_multilabel_classification(40, 6, n_classes=4, random_state=0)
print(rbrl.__file__, COMPILED, rbrl.estimators.BRLClassifier(ridge=10).fit(X, Y).score(X, Y))
"""


def test_the_package_works_where_no_folder_can_be_written_to(tmp_path):
    """Files in the place of the cache folders keep even the superuser from making them."""
    copy = shutil.copytree(Path(rbrl.__file__).parent, tmp_path / "rbrl", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (copy, copy / "_loops"):
        (folder / "__pycache__").write_text("not a folder")
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME"), os.devnull)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")} | nowhere
    run = subprocess.run(
        [sys.executable, "-B", "-c", NOTHING_WRITABLE],
        capture_output=True,
        text=True,
        env=environment | {"PYTHONPATH": str(tmp_path)},
    )
    assert run.returncode == 0, run.stderr
    where, flag, _ = run.stdout.split()
    assert (Path(where).parent, flag) == (copy, "True")
