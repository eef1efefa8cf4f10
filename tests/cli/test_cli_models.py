"""`rbrl fit`, `rbrl predict` and `rbrl evaluate`, with files of every format."""

import csv
import io
import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification

from rbrl import load
from rbrl.datasets import Dataset, save_file


@pytest.fixture(scope="module")
def dataset():
    X, Y = make_multilabel_classification(n_samples=90, n_features=7, n_classes=3, random_state=1)
    X[5] = 0
    return Dataset(
        X, Y, label_names=["sea", "sand", "sun, moon"], feature_names=[f"f{i}" for i in range(7)], name="shore"
    )


@pytest.fixture(scope="module")
def model(dataset, tmp_path_factory):
    from rbrl.cli import main

    folder = tmp_path_factory.mktemp("model")
    save_file(dataset, folder / "shore.npz")
    with pytest.raises(SystemExit) as end:
        main(["fit", str(folder / "shore.npz"), "-o", str(folder / "m.rbrl"), "--set", "ridge=5", "--quiet"])
    assert not end.value.code
    return folder / "m.rbrl"


def table(text):
    return list(csv.reader(io.StringIO(text)))


def expected(model, dataset):
    fitted = load(model)
    return fitted.predict(dataset.X), fitted.decision_function(dataset.X)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "arff", "svm", "npz", "mat", "parquet"])
@pytest.mark.parametrize("block", [7, 4096, 0])
def test_predictions_do_not_depend_on_format_or_block(rbrl, model, dataset, tmp_path, ending, block):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"shore.{ending}"
    save_file(dataset, path)
    answer = rbrl("predict", model, path, "--block-size", block)
    assert answer.code == 0, answer.err
    head, *rows = table(answer.out)
    assert head == ["sea", "sand", "sun, moon"]
    np.testing.assert_array_equal(np.array(rows, dtype=int), expected(model, dataset)[0])


def test_scores_and_names(rbrl, model, dataset, tmp_path):
    save_file(dataset, tmp_path / "shore.npz")
    labels, scores = expected(model, dataset)
    answer = rbrl("predict", model, tmp_path / "shore.npz", "--write", "scores", "-o", tmp_path / "scores.csv")
    assert answer.out == ""
    rows = table((tmp_path / "scores.csv").read_text(encoding="utf-8"))
    np.testing.assert_allclose(np.array(rows[1:], dtype=float), scores, rtol=1e-7)
    names = table(rbrl("predict", model, tmp_path / "shore.npz", "--write", "names").out)
    row = next(i for i, line in enumerate(labels) if line.tolist() == [1, 1, 0])
    assert names[row + 1] == ["sea;sand"]


def test_rows_without_labels(rbrl, model, dataset, tmp_path):
    lines = [",".join(dataset.feature_names), *(",".join(map(str, row)) for row in dataset.X.tolist())]
    (tmp_path / "new.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    rows = table(rbrl("predict", model, tmp_path / "new.csv", "--block-size", 10).out)
    np.testing.assert_array_equal(np.array(rows[1:], dtype=int), expected(model, dataset)[0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f0,f1\n1,2\n", "it has no feature 'f2' and 4 more, which the model was fitted on; it has 'f0', 'f1'\n"),
        ("f0,f1,f2,f3,f4,f5,f6\n1,2,3,4,5,6\n", "a row has 6 cells, the header 7 columns"),
        ("f0,f1,f2,f3,f4,f5,f6\n1,2,3,4,5,6,red\n", "column 'f6' has 'red'"),
        ("f0,f1,f2,f3,f4,f5,f6,f6\n1,2,3,4,5,6,7,8\n", "2 columns have the name of the feature 'f6': rename them"),
        ("id,f0,f1,f2,f3,f4,f5,f6\n1,2,3,4,5,6,7,8\n", "its column 'id' is neither a feature nor a label"),
    ],
)
def test_wrong_files_are_explained(rbrl, model, tmp_path, text, message):
    (tmp_path / "wrong.csv").write_text(text, encoding="utf-8")
    answer = rbrl("predict", model, tmp_path / "wrong.csv")
    assert answer.code == 2
    assert message in answer.err
    assert answer.err.count("\n") == 1


def test_a_failed_prediction_leaves_no_file(rbrl, model, tmp_path):
    (tmp_path / "wrong.csv").write_text("f0,f1,f2,f3,f4,f5,f6\n1,2,3,4,5,6,7\n1,2,3,4,5,6,red\n", encoding="utf-8")
    assert rbrl("predict", model, tmp_path / "wrong.csv", "-o", tmp_path / "out.csv", "--block-size", 1).code == 2
    assert not (tmp_path / "out.csv").exists()


def test_evaluate(rbrl, model, dataset, tmp_path):
    from rbrl.metrics import evaluate

    save_file(dataset, tmp_path / "shore.arff")
    labels, scores = expected(model, dataset)
    values = json.loads(rbrl("evaluate", model, tmp_path / "shore.arff", "--json").out)
    assert values == pytest.approx(evaluate(dataset.Y, labels, scores))
    assert "Macro" not in rbrl("evaluate", model, tmp_path / "shore.arff", "--metric", "f1_macro").out
    assert "F1-macro ↑" in rbrl("evaluate", model, tmp_path / "shore.arff", "--metric", "f1_macro").out


def test_evaluate_refuses_other_features(rbrl, model, dataset, tmp_path):
    save_file(Dataset(dataset.X[:, :4], dataset.Y), tmp_path / "less.npz")
    answer = rbrl("evaluate", model, tmp_path / "less.npz")
    assert answer.code == 2
    assert "was fitted on 7 features" in answer.err


def test_fit_prints_the_certified_gap(rbrl, dataset, tmp_path):
    save_file(Dataset(sparse.csr_array(dataset.X), dataset.Y), tmp_path / "sparse.npz")
    answer = rbrl("fit", tmp_path / "sparse.npz", "-o", tmp_path / "m", "--standardise", "--set", "ridge=5")
    assert "of the optimum" in answer.err
    facts = json.loads(rbrl("fit", tmp_path / "sparse.npz", "-o", tmp_path / "m", "--json").out)
    assert facts["n_samples"] == 90
    assert facts["gap"] <= 1e-4


def test_a_damaged_model_is_one_line(rbrl, model, tmp_path):
    (tmp_path / "broken").write_bytes(model.read_bytes()[:-9])
    answer = rbrl("predict", tmp_path / "broken", "yeast")
    assert answer.code == 2
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("non_empty=True", True),
        ("non_empty=false", False),
        ("threshold=f1_micro", "f1_micro"),
        ("threshold='f1_micro'", "f1_micro"),
        ("intercept_ridge=None", None),
        ("class_weight={0: 5.0}", {0: 5.0}),
    ],
)
def test_parameters_are_written_as_in_python_or_json(rbrl, dataset, tmp_path, setting, value):
    save_file(dataset, tmp_path / "shore.npz")
    assert rbrl("fit", tmp_path / "shore.npz", "-o", tmp_path / "set.rbrl", "--set", setting).code == 0
    assert load(tmp_path / "set.rbrl").get_params()[setting.partition("=")[0]] == value


def test_the_best_labels_with_their_scores(rbrl, model, dataset, tmp_path):
    save_file(dataset, tmp_path / "shore.npz")
    scores = expected(model, dataset)[1]
    head, *rows = table(rbrl("predict", model, tmp_path / "shore.npz", "--top", 2, "--block-size", 7).out)
    assert head == ["label1", "score1", "label2", "score2"]
    best = np.argsort(-scores, axis=1)[:, :2]
    assert [[row[0], row[2]] for row in rows] == [[dataset.label_names[j] for j in line] for line in best]
    np.testing.assert_allclose([float(row[3]) for row in rows], np.sort(scores, axis=1)[:, -2], rtol=1e-7)


@pytest.mark.parametrize("options", [[], ["--write", "probabilities"], ["--write", "scores"]], ids=str)
@pytest.mark.parametrize("fitted", [["--calibrate", "sigmoid"], ["--calibrate", "sigmoid", "--standardise"]], ids=str)
def test_the_best_labels_of_a_calibrated_model_have_probabilities(rbrl, dataset, tmp_path, fitted, options):
    save_file(dataset, tmp_path / "shore.npz")
    model = tmp_path / "m.rbrl"
    assert rbrl("fit", tmp_path / "shore.npz", "-o", model, *fitted).code == 0
    answer = rbrl("predict", model, tmp_path / "shore.npz", "--top", 2, "--block-size", 7, *options)
    assert answer.code == 0, answer.err
    head, *rows = table(answer.out)
    number = "score" if "scores" in options else "probability"
    assert head == ["label1", f"{number}1", "label2", f"{number}2"]
    found = load(model)
    values = found.decision_function(dataset.X) if "scores" in options else found.predict_proba(dataset.X)
    np.testing.assert_allclose([float(row[1]) for row in rows], values.max(axis=1), rtol=1e-7)
    assert [row[0] for row in rows] == [dataset.label_names[j] for j in values.argmax(axis=1)]


def test_the_best_labels_of_other_models_have_probabilities_on_request(rbrl, model, dataset, tmp_path):
    save_file(dataset, tmp_path / "shore.npz")
    knn = tmp_path / "knn.rbrl"
    assert rbrl("fit", tmp_path / "shore.npz", "-o", knn, "--method", "ml-knn").code == 0
    head, *rows = table(rbrl("predict", knn, tmp_path / "shore.npz", "--top", 1, "--write", "probabilities").out)
    assert head == ["label1", "probability1"]
    P = load(knn).predict_proba(dataset.X)
    np.testing.assert_allclose([float(row[1]) for row in rows], P.max(axis=1), rtol=1e-7)
    answer = rbrl("predict", model, tmp_path / "shore.npz", "--top", 1, "--write", "probabilities")
    assert answer.code == 2
    assert "rbrl fit --calibrate sigmoid" in answer.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--top", 4], "between 1 and the number of labels, 3. Got 4"),
        (["--top", 1, "--write", "names"], "--write names"),
    ],
)
def test_impossible_best_labels(rbrl, model, dataset, tmp_path, options, message):
    save_file(dataset, tmp_path / "shore.npz")
    answer = rbrl("predict", model, tmp_path / "shore.npz", *options)
    assert answer.code == 2
    assert message in answer.err


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_probabilities_of_a_calibrated_model(rbrl, dataset, tmp_path, method):
    save_file(dataset, tmp_path / "shore.npz")
    model = tmp_path / "m.rbrl"
    assert rbrl("fit", tmp_path / "shore.npz", "-o", model, "--calibrate", method, "--standardise").code == 0
    head, *rows = table(rbrl("predict", model, tmp_path / "shore.npz", "--write", "probabilities").out)
    assert head == ["sea", "sand", "sun, moon"]
    P = np.array(rows, dtype=float)
    assert ((P > 0) & (P < 1)).all()
    answer = rbrl("evaluate", model, tmp_path / "shore.npz", "--metric", "log_loss", "--metric", "Hal", "--json")
    truth = -np.mean(np.log(np.where(dataset.Y > 0, P, 1 - P)))
    assert json.loads(answer.out)["log_loss"] == pytest.approx(truth, rel=1e-6)


def test_a_model_without_probabilities(rbrl, model, dataset, tmp_path):
    save_file(dataset, tmp_path / "shore.npz")
    for answer in (
        rbrl("evaluate", model, tmp_path / "shore.npz", "--metric", "log_loss"),
        rbrl("predict", model, tmp_path / "shore.npz", "--write", "probabilities"),
    ):
        assert answer.code != 0
        assert "The model has no probabilities: fit it with `rbrl fit --calibrate sigmoid`" in answer.err


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_scores_that_are_not_finite_are_not_evaluated(rbrl, model, dataset, tmp_path, monkeypatch, bad):
    save_file(dataset, tmp_path / "new.npz")
    monkeypatch.setattr("rbrl.metrics.scores_of", lambda model, X: np.full((len(X), 3), bad))
    answer = rbrl("evaluate", model, tmp_path / "new.npz", "--metric", "ranking_loss")
    assert answer.code == 2
    assert "The scores must be finite. Got NaN or infinity in 270 of 270 entries." in answer.err


def test_evaluate_reports_the_best_labels_and_frequent_and_rare_labels(rbrl, tmp_path):
    from rbrl.datasets import load as load_data
    from rbrl.metrics import frequency_report, precision_at_k, propensities, psndcg_at_k, psp_at_k

    data = load_data("yeast")
    train, test = (Dataset(data.X[rows], data.Y[rows]) for rows in (slice(0, 300), slice(300, 500)))
    for name, part in (("train", train), ("test", test)):
        save_file(part, tmp_path / f"{name}.npz")
    model = tmp_path / "m.rbrl"
    assert rbrl("fit", tmp_path / "train.npz", "-o", model).code == 0
    metrics = [word for name in ("precision_at_3", "psp_at_3", "PSN@4", "ndcg@2") for word in ("--metric", name)]
    command = ["evaluate", model, tmp_path / "test.npz", *metrics, "--train", tmp_path / "train.npz"]
    found = json.loads(rbrl(*command, "--by-frequency", "--top", 3, "--json").out)
    scores = load(model).decision_function(test.X)
    p = propensities(train.Y)
    assert found["precision_at_3"] == pytest.approx(precision_at_k(test.Y, scores, k=3))
    assert found["psp_at_3"] == pytest.approx(psp_at_k(test.Y, scores, k=3, propensities=p))
    assert found["psndcg_at_4"] == pytest.approx(psndcg_at_k(test.Y, scores, k=4, propensities=p))
    report = frequency_report(test.Y, scores, train.Y, k=3)
    assert [row["part"] for row in found["by_frequency"]] == list(report.index)
    for row, expected in zip(found["by_frequency"], report.to_dict("records"), strict=True):
        assert row["precision_at_3"] == pytest.approx(expected["precision_at_k"])
        assert row["labels"] == expected["labels"]
    text = rbrl(*command, "--by-frequency", "--top", 3).out
    assert "Propensity-scored precision at 3" in text
    assert [line.split()[0] for line in text.splitlines()[-6:-1] if line] == ["head", "torso", "tail", "all"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "--metric psp_at_3",
            "psp_at_3 needs the propensities of the labels: name the training data with --train DATA.",
        ),
        (
            "--by-frequency",
            "--by-frequency needs the frequencies of the labels: name the training data with --train DATA.",
        ),
        ("--top 3", "--top goes with --by-frequency. Got --top 3; for P@3, use --metric precision_at_3."),
    ],
)
def test_evaluate_says_which_option_is_missing(rbrl, options, message):
    answer = rbrl("evaluate", "none.rbrl", "yeast", *options.split())
    assert (answer.code, answer.err) == (2, f"rbrl: {message}\n")
