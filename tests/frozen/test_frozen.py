"""The package still answers, reads and prints what it did: see README.md."""

import json
import os
import re
import shutil
import warnings
import zipfile
from importlib.metadata import version
from pathlib import Path

import frozen_cases
import frozen_commands
import numpy as np
import pandas as pd
import pytest

import rbrl
from rbrl.experiments import Plan, Store, execute

HERE = Path(__file__).parent
EXACT = os.environ.get("RBRL_FROZEN_EXACT") == "1"
MADE = dict(line.split() for line in (HERE / "MADE.txt").read_text(encoding="utf-8").splitlines())

# Relative to the largest entry of an array. Models are fitted to gaps of 1e-9 or less, and OpenBLAS's kernels for Nehalem,
# Haswell and SkylakeX differ by 1e-8 at most (LIBLINEAR's coefficients; the others by 1e-11).
TOLERANCE = 1e-12 if EXACT else 1e-6
TOLERANCES = {} if EXACT else {"rbrl-float32": 1e-4}
# A solver that stops one iteration earlier or later is still within sqrt(2 gap objective / ridge) of the optimum: for gaps
# of 1e-10 and objectives of some hundreds, 3e-4.
TOLERANCE_OF_OTHER_STOPS = 1e-3
# Small numbers that rounding decides.
ONLY_EXACT = () if EXACT else ("gap_", "n_iter_")


def frozen(file):
    """Arrays of a file, by case."""
    cases = {}
    with np.load(HERE / file) as arrays:
        for name in arrays.files:
            case, _, key = name.partition("/")
            cases.setdefault(case, {})[key] = arrays[name]
    return cases


ANSWERS, MODELS = frozen("answers.npz"), frozen("models.npz")
X_NEW = MODELS.pop("X")[""]
COMMANDS = json.loads((HERE / "commands.json").read_text(encoding="utf-8"))


def check(found, expected, tolerance):
    """Numbers within a tolerance; labels equal where no score is that near to the threshold."""
    assert sorted(found) == sorted(expected)
    if not EXACT and found.get("n_iter_", 0) != expected.get("n_iter_", 0):
        tolerance = TOLERANCE_OF_OTHER_STOPS
    for name in set(expected) - set(ONLY_EXACT):
        a, b = np.asarray(found[name]), expected[name]
        assert a.shape == b.shape, name
        if b.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(np.abs(b).max(), 1e-3), err_msg=name)
        elif name == "labels" and not EXACT:
            rows = decided(expected["scores"], tolerance)
            assert rows.mean() > 0.6, "too few rows are clear"
            np.testing.assert_array_equal(a[rows], b[rows], err_msg=name)
        else:
            np.testing.assert_array_equal(a, b, err_msg=name)


def decided(scores, tolerance):
    """Rows whose labels no change within the tolerance can change, also where an empty row gets its best label."""
    near = tolerance * np.abs(scores).max()
    best = np.sort(scores, axis=1)[:, -2:]
    return (np.abs(scores) > near).all(axis=1) & ((best[:, 1] > 0) | (best[:, 1] - best[:, 0] > near))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", frozen_cases.CASES)
def test_estimators_answer_as_before(case):
    check(frozen_cases.CASES[case](), ANSWERS[case], TOLERANCES.get(case, TOLERANCE))


def test_every_method_has_a_frozen_answer_and_a_model_file():
    assert set(ANSWERS) == set(frozen_cases.CASES)
    asked = {name for name in rbrl.__all__ if isinstance(getattr(rbrl, name), type)}
    saved = {type(model).__name__ for model in frozen_cases.models().values()}
    assert asked <= saved


@pytest.fixture(scope="module")
def model_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    with zipfile.ZipFile(HERE / "models.zip") as pack:
        pack.extractall(folder)
    return folder


@pytest.mark.parametrize("name", MODELS)
def test_model_files_are_read_as_before(name, model_files):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of versions, which may be others
        model = rbrl.load(model_files / name)
    found = {"scores": rbrl.metrics.scores_of(model, X_NEW), "labels": model.predict(X_NEW)}
    check(found, MODELS[name], 1e-12 if EXACT else 1e-9)


def test_model_files_are_of_the_classes_that_wrote_them(model_files):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model in frozen_cases.models().items():
            assert type(rbrl.load(model_files / name)) is type(model)


@pytest.fixture
def store_folder(tmp_path):
    return shutil.copytree(HERE / "store", tmp_path / "store")


def test_a_store_is_reused_whole(store_folder):
    plan, store = Plan.from_toml(store_folder / "plan.toml"), Store(store_folder)
    before = store.rows()
    summary = execute(plan, store)
    assert (summary.n_runs, summary.n_done, summary.n_reused, summary.n_failed) == (24, 0, 24, 0)
    assert not [note for note in summary.notes if "repeated" in note]
    pd.testing.assert_frame_equal(store.rows(), before)
    store.close()


def test_a_store_is_not_reused_for_other_defaults(store_folder):
    """As the plan was when it had to state nothing: its runs have the parameters of today, so they are others."""
    text = (store_folder / "plan.toml").read_text(encoding="utf-8")
    for stated in (', intercept_ridge = "ridge", gamma = "paper"', ", non_empty = false"):
        assert stated in text
        text = text.replace(stated, "")
    plan = Plan.from_text(text, store_folder).part(datasets=["other"], splits=[0])
    store, of_then = Store(store_folder), Plan.from_toml(store_folder / "plan.toml")
    before = store.rows(of_then)
    summary = execute(plan, store)
    assert (summary.n_done, summary.n_reused, summary.n_failed) == (2, 2, 0)
    assert [note for note in summary.notes if "repeated" in note] == [
        "1 run of rbrl will be repeated; changed: the parameters.",
        "1 run of thresholds will be repeated; changed: the parameters.",
    ]
    pd.testing.assert_frame_equal(store.rows(of_then), before)
    store.close()


def test_a_store_has_the_rows_that_it_had(store_folder):
    expected = pd.read_csv(store_folder / "rows.csv")
    for plan in (None, Plan.from_toml(store_folder / "plan.toml")):
        found = Store(store_folder).rows(plan)[list(expected)].reset_index(drop=True)
        pd.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_a_changed_plan_reuses_the_rest(store_folder):
    text = (store_folder / "plan.toml").read_text(encoding="utf-8").replace("share = 0.4", "share = 0.5")
    summary = execute(Plan.from_text(text, store_folder).part(datasets=["other"]), store_folder)
    assert (summary.n_done, summary.n_reused) == (2, 6)
    assert [note for note in summary.notes if "own" in note] == [
        "2 runs of own will be repeated; changed: the parameters."
    ]


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    return frozen_commands.answers(tmp_path_factory.mktemp("commands"))


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_print_as_before(name, printed):
    (code, *texts), (expected_code, *expected_texts) = printed[name], COMMANDS[name]
    assert code == expected_code
    if name.startswith(("help", "wrong option")) and any(version(one) != MADE[one] for one in ("typer", "rich")):
        pytest.skip("another version of Typer or Rich lays help out in its own way")
    for text, expected in zip(texts, expected_texts):
        if EXACT:
            assert text == expected
        else:
            check_text(text, expected)


NUMBER = re.compile(r"(?<![\w.])[-+]?\d+\.\d+(?:e[-+]?\d+)?")


def check_text(text, expected):
    """The same words, however they are laid out, and the same numbers up to their last digit."""
    words, expected_words = (" ".join(re.sub(r"[─-╿]", " ", NUMBER.sub("#", one)).split()) for one in (text, expected))
    assert words == expected_words
    for a, b in zip(NUMBER.findall(text), NUMBER.findall(expected)):
        last_digit = 10.0 ** -len(b.partition("e")[0].partition(".")[2])
        assert float(a) == pytest.approx(float(b), rel=1e-6, abs=1.01 * last_digit)
