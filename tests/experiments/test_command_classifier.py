"""Methods that are commands: what they are sent, what they answer, and what becomes of one that does not."""

import json
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from rbrl.experiments import CommandClassifier, CommandError, Plan, Store, execute

# Answers with the frequencies of the labels, moved by a parameter, and notes what it was sent.
PRIORS = """
import json, sys
from pathlib import Path
import numpy as np

n_asked = 0
for line in sys.stdin:
    folder, n_asked = Path(line.strip()), n_asked + 1
    parameters = json.loads((folder / "parameters.json").read_text())
    Y = np.load(folder / "Y_train.npy")
    with np.load(folder / "X_test.npz") as file:
        n_rows = int(file["shape"][0]) if "shape" in file else len(file["dense"])
    np.save(folder / "scores.npy", np.tile(Y.mean(axis=0) + parameters.get("shift", 0.0), (n_rows, 1)))
    if parameters.get("own_labels"):
        np.save(folder / "labels.npy", np.ones((n_rows, Y.shape[1]), dtype=int))
    said = {"fit_seconds": 2.0, "predict_seconds": 0.5, "n_asked": n_asked, "parameters": parameters}
    print(json.dumps(said), flush=True)
"""
X, Y = np.arange(12.0).reshape(6, 2), np.array([[1, 0], [1, 0], [1, 1], [0, 1], [1, 0], [1, 0]])


@pytest.fixture
def command(tmp_path):
    (tmp_path / "priors.py").write_text(PRIORS)
    return [sys.executable, str(tmp_path / "priors.py")]


def program(text):
    return [sys.executable, "-c", f"import sys\nfor line in sys.stdin:\n    folder = line.strip()\n    {text}"]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_scores_of_a_command(command, form):
    model = CommandClassifier(command, shift=-0.5).fit(form(X), Y)
    np.testing.assert_allclose(model.decision_function(form(X[:2])), np.tile([1 / 3, -1 / 6], (2, 1)))
    assert model.predict(form(X[:2])).tolist() == [[1, 0], [1, 0]]
    assert not hasattr(model, "predict_proba")


def test_probabilities_are_cut_at_one_half_and_own_labels_go_before(command):
    model = CommandClassifier(command, probabilities=True).fit(X, Y)
    assert model.predict(X[:1]).tolist() == [[1, 0]]
    assert not hasattr(model, "decision_function")
    assert model.set_params(own_labels=True).fit(X, Y).predict(X[:1]).tolist() == [[1, 1]]


def test_a_process_serves_all_questions_and_each_is_asked_once(command):
    model = CommandClassifier(command, random_state=3, depth=2).fit(X, Y)
    model.predict(X)
    first = model.answer_
    model.decision_function(X)
    assert model.answer_ is first
    assert first["parameters"] == {"random_state": 3, "depth": 2}
    model.predict(X[:3])
    assert model.answer_["n_asked"] == first["n_asked"] + 1


def test_parameters_of_the_command_are_parameters(command):
    model = clone(CommandClassifier(command, depth=2)).set_params(depth=5, probabilities=True)
    assert model.get_params() == {
        "command": command, "probabilities": True, "folder": None, "random_state": None, "depth": 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no-such-program"], "cannot be started"),
        ([sys.executable, "-c", "import sys; sys.exit('out of luck')"], "ended with code 1.*out of luck"),
        (program("print('hello', flush=True)"), "a JSON object in one line.*'hello'"),
        (program("print('[1]', flush=True)"), r"a JSON object in one line.*'\[1\]'"),
        (program("""print('{"error": "no labels"}', flush=True)"""), "no labels"),
        (program("print('{}', flush=True)"), "wrote no scores.npy"),
        (program("import numpy; numpy.save(folder + '/scores.npy', numpy.ones(3)); print('{}', flush=True)"), r"\(6, 2\)"),
        (
            program("import numpy as n; n.save(folder + '/scores.npy', n.full((6, 2), n.nan)); print('{}', flush=True)"),
            "NaN or infinite",
        ),
    ],
)  # fmt: skip
def test_a_command_that_fails_says_why(words, message):
    model = CommandClassifier(words).fit(X, Y)
    with pytest.raises(CommandError, match=f"(?s){message}"):
        model.predict(X)


def test_a_command_that_ended_after_an_answer_is_started_again():
    text = "import numpy as n; n.save(folder + '/scores.npy', n.ones((6, 2))); print('{}', flush=True); sys.exit()"
    once = program(text)
    model = CommandClassifier(once).fit(X, Y)
    assert model.predict(X).all()
    assert model.fit(X + 1, Y).predict(X).all()


def test_labels_must_be_0_and_1():
    with pytest.raises(ValueError, match="takes 0/1 labels"):
        CommandClassifier("true").fit(X, 2 * Y - 1)
    with pytest.raises(ValueError, match="a program and its arguments"):
        CommandClassifier("").fit(X, Y).predict(X)


def test_a_plan_with_a_command(tmp_path):
    (tmp_path / "priors.py").write_text(PRIORS)
    rows = np.column_stack([np.tile(X, (4, 1)), np.tile(Y, (4, 1))])
    np.savetxt(tmp_path / "data.csv", rows, delimiter=",", header="a,b,c,d", comments="")
    table = {
        "datasets": [{"file": "data.csv", "labels": -2}],
        "splits": {"number": 1},
        "tuning": {"folds": 2, "criterion": "hamming_loss"},
        "methods": {
            "priors": {
                "use": "rbrl.experiments:CommandClassifier",
                "params": {"command": f"'{sys.executable}' priors.py"},
                "grid": {"shift": [-0.5, -5.0]},
            }
        },
    }
    plan = Plan.from_dict(table, folder=tmp_path)
    store = Store(tmp_path / "store")
    assert execute(plan, store).n_failed == 0
    first = store.rows().iloc[0]
    assert json.loads(first.params)["shift"] == -0.5
    assert (first.train_seconds, first.test_seconds) == (2.0, 0.5)
    assert first.processor_seconds >= 5 * 2.5  # two points on two folds, and the last fit, as the command says
    assert execute(plan, store).n_reused == 1
    (tmp_path / "priors.py").write_text(PRIORS + "\n# edited\n")
    assert execute(plan, store).n_done == 1
