"""Columns of files are matched with those of the model, by name or by the base of a svmlight file."""

import csv
import io
import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification

from rbrl import load
from rbrl.datasets import Dataset, load_file, save_file

FEATURES = [f"f{j}" for j in range(7)]
LABELS = ["sea", "sand", "sun"]


@pytest.fixture(scope="module")
def dataset():
    X, Y = make_multilabel_classification(n_samples=90, n_features=7, n_classes=3, random_state=1)
    return Dataset(X, Y, FEATURES, LABELS, name="shore")


@pytest.fixture(params=[[], ["--standardise"]], ids=["plain", "pipeline"])
def model(rbrl, dataset, tmp_path, request):
    (tmp_path / "fit").mkdir()
    save_file(dataset, tmp_path / "fit" / "shore.csv")
    answer = rbrl("fit", tmp_path / "fit" / "shore.csv", "-o", tmp_path / "m.rbrl", "--set", "ridge=5", *request.param)
    assert answer.code == 0, answer.err
    return tmp_path / "m.rbrl"


def predictions(answer):
    assert answer.code == 0, answer.err
    return np.array(list(csv.reader(io.StringIO(answer.out)))[1:], dtype=int)


def shuffled(dataset):
    """The same rows with other columns first, labels among them."""
    features, labels = [3, 0, 6, 1, 5, 4, 2], [2, 0, 1]
    return Dataset(
        dataset.X[:, features],
        dataset.Y[:, labels],
        [FEATURES[j] for j in features],
        [LABELS[j] for j in labels],
        name=dataset.name,
    )


def write(dataset, path, xml):
    """A file; without the XML file beside it nothing says which columns are labels."""
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
    save_file(dataset, path)
    if not xml:
        path.with_suffix(".xml").unlink(missing_ok=True)
    return path


@pytest.mark.parametrize("xml", [True, False], ids=["with XML", "without XML"])
@pytest.mark.parametrize("ending", ["csv", "tsv", "arff", "parquet", "svm", "npz", "mat"])
def test_columns_in_another_order_give_the_same_answers(rbrl, model, dataset, tmp_path, ending, xml):
    path = write(shuffled(dataset), tmp_path / f"new.{ending}", xml)
    fitted = load(model)
    with pytest.warns(UserWarning, match="valid feature names"):
        expected = fitted.predict(dataset.X)
    np.testing.assert_array_equal(predictions(rbrl("predict", model, path)), expected)
    np.testing.assert_array_equal(predictions(rbrl("predict", model, path, "--block-size", 0)), expected)
    whole = write(dataset, tmp_path / f"same.{ending}", xml=True)
    found, wanted = (json.loads(rbrl("evaluate", model, file, "--json").out) for file in (path, whole))
    assert found == pytest.approx(wanted)


@pytest.mark.parametrize("ending", ["csv", "arff", "parquet"])
def test_labels_that_the_model_knows_need_not_be_named(rbrl, model, dataset, tmp_path, ending):
    path = write(dataset, tmp_path / f"new.{ending}", xml=False)
    named = ["--labels", ",".join(LABELS)]
    assert rbrl("predict", model, path).out == rbrl("predict", model, path, *named).out
    assert rbrl("evaluate", model, path).out == rbrl("evaluate", model, path, *named).out


def test_some_of_the_labels_are_enough_to_be_left_out(rbrl, model, dataset, tmp_path):
    part = Dataset(dataset.X, dataset.Y[:, 1:2], FEATURES, LABELS[1:2])
    path = write(part, tmp_path / "new.csv", xml=False)
    with pytest.warns(UserWarning, match="valid feature names"):
        expected = load(model).predict(dataset.X)
    np.testing.assert_array_equal(predictions(rbrl("predict", model, path)), expected)
    answer = rbrl("evaluate", model, path)
    assert answer.code == 2
    assert "has no column 'sea'" in answer.err


def test_labels_that_the_model_does_not_know_are_left_out_where_the_file_names_them(rbrl, model, dataset, tmp_path):
    more = Dataset(dataset.X, np.hstack([dataset.Y, dataset.Y[:, :1]]), FEATURES, [*LABELS, "wind"])
    for ending in ("csv", "parquet"):
        path = write(more, tmp_path / f"more.{ending}", xml=True)
        assert len(predictions(rbrl("predict", model, path))) == 90
        assert "3 labels" in rbrl("evaluate", model, path).out


@pytest.mark.parametrize("ending", ["csv", "arff", "npz"])
def test_other_names_are_refused(rbrl, model, dataset, tmp_path, ending):
    other = Dataset(dataset.X, dataset.Y, [*FEATURES[:-1], "weight"], LABELS)
    path = write(other, tmp_path / f"other.{ending}", xml=True)
    for command in ("predict", "evaluate"):
        answer = rbrl(command, model, path)
        assert answer.code == 2
        assert "it has no feature 'f6', which the model was fitted on" in answer.err


def test_default_names_are_not_matched(rbrl, model, dataset, tmp_path):
    path = write(Dataset(dataset.X, dataset.Y), tmp_path / "numbered.npz", xml=True)
    with pytest.warns(UserWarning, match="valid feature names"):
        expected = load(model).predict(dataset.X)
    np.testing.assert_array_equal(predictions(rbrl("predict", model, path)), expected)
    assert rbrl("evaluate", model, path).code == 0


def test_messages_name_shell_options(rbrl, dataset, tmp_path):
    path = write(dataset, tmp_path / "new.csv", xml=False)
    answer = rbrl("fit", path, "-o", tmp_path / "m")
    assert "or pass --labels (names, n for the first n columns" in answer.err
    with pytest.raises(ValueError, match=r"or pass labels= \(names, n for the first n columns"):
        load_file(path)
    save_file(dataset, tmp_path / "new.svm")
    assert "got --labels 2" in rbrl("fit", tmp_path / "new.svm", "--labels", 2, "-o", tmp_path / "m").err


def test_a_model_from_shards_knows_names_and_bases(rbrl, dataset, tmp_path):
    (tmp_path / "shards").mkdir()
    for i, rows in enumerate((slice(0, 50), slice(50, 90))):
        save_file(Dataset(dataset.X[rows], dataset.Y[rows], FEATURES, LABELS), tmp_path / "shards" / f"{i}.csv")
    assert rbrl("fit", tmp_path / "shards", "-o", tmp_path / "m").code == 0
    assert list(load(tmp_path / "m").feature_names_in_) == FEATURES
    path = write(shuffled(dataset), tmp_path / "new.csv", xml=False)
    assert rbrl("predict", tmp_path / "m", path).out == rbrl("predict", tmp_path / "m", tmp_path / "shards").out


def svmlight(dataset, path, base):
    """Rows without a first line that says what they count from."""
    X, Y = dataset.X, dataset.Y
    lines = [
        ",".join(str(j + base) for j in np.flatnonzero(y)) + "".join(f" {j + base}:{x[j]!r}" for j in np.flatnonzero(x))
        for x, y in zip(X.tolist(), Y)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def rare():
    """Rows of which a test part has neither feature 0 nor label 0, nor the last of them."""
    rng = np.random.default_rng(3)
    X, Y = rng.standard_normal((80, 6)), rng.random((80, 4)) < 0.5
    X[40:, [0, -1]] = 0
    Y[40:, [0, -1]] = 0
    Y[40:, 1] = 1
    return Dataset(sparse.csr_array(X), Y)


@pytest.mark.parametrize("standardise", [[], ["--standardise"]], ids=["plain", "pipeline"])
@pytest.mark.parametrize("base", [0, 1])
def test_svmlight_files_have_the_base_of_the_model(rbrl, rare, tmp_path, base, standardise):
    X, Y = rare.X.toarray(), rare.Y
    train, test = Dataset(X[:40], Y[:40]), Dataset(X[40:], Y[40:])
    svmlight(train, tmp_path / "train.svm", base)
    svmlight(test, tmp_path / "test.svm", base)
    fitted = rbrl("fit", tmp_path / "train.svm", "-o", tmp_path / "m", *standardise)
    assert ("assumed to start at 1" in fitted.err) == (base == 1)
    model = load(tmp_path / "m")
    assert (model.first_feature_, model.first_label_) == (base, base)
    answer = rbrl("predict", tmp_path / "m", tmp_path / "test.svm", "--block-size", 7)
    np.testing.assert_array_equal(predictions(answer), model.predict(sparse.csr_array(test.X)))
    assert answer.err == ""
    values = json.loads(rbrl("evaluate", tmp_path / "m", tmp_path / "test.svm", "--json").out)
    from rbrl.metrics import evaluate

    rows = sparse.csr_array(test.X)
    assert values == pytest.approx(evaluate(test.Y, model.predict(rows), model.decision_function(rows)))


def test_a_guess_is_a_message_and_an_option_overrides_it(rbrl, model, dataset, tmp_path):
    """A model of a CSV file does not know what svmlight files count from."""
    X = dataset.X.copy()
    X[:, 0] = 0
    path = svmlight(Dataset(X, dataset.Y), tmp_path / "new.svm", base=0)
    said = rbrl("predict", model, path)
    assert said.err.count("\n") == 1
    assert (
        "its features are assumed to start at 1, because there is no column 0; if they start at 0, pass --index-base 0"
        in said.err
    )
    answer = rbrl("predict", model, path, "--index-base", 0)
    assert answer.err == ""
    with pytest.warns(UserWarning, match="valid feature names"):
        np.testing.assert_array_equal(predictions(answer), load(model).predict(X))
    assert rbrl("evaluate", model, path, "--index-base", 0, "--label-base", 0).err == ""
    assert rbrl("predict", model, path, "--index-base", 2).code == 2


def test_an_option_must_not_contradict_the_file(rbrl, model, dataset, tmp_path):
    save_file(dataset, tmp_path / "said.svm")
    answer = rbrl("predict", model, tmp_path / "said.svm", "--index-base", 0)
    assert answer.code == 2
    assert "by its first line, features count from 1; got --index-base 0" in answer.err


def test_a_feature_below_the_base_is_named(rbrl, rare, tmp_path):
    svmlight(Dataset(rare.X.toarray(), rare.Y), tmp_path / "from0.svm", 0)
    svmlight(Dataset(rare.X.toarray(), rare.Y), tmp_path / "from1.svm", 1)
    assert rbrl("fit", tmp_path / "from1.svm", "-o", tmp_path / "m").code == 0
    answer = rbrl("predict", tmp_path / "m", tmp_path / "from0.svm")
    assert answer.code == 2
    assert "line 1: feature 0 is not among the 6 features that the model needs, which count from 1" in answer.err


def test_labels_that_are_named_one_by_one_are_all_labels(rbrl, dataset, tmp_path):
    """The last one alone would leave the others among the features."""
    path = write(dataset, tmp_path / "new.csv", xml=False)
    named = [word for name in LABELS for word in ("--labels", name)]
    assert rbrl("fit", path, *named, "-o", tmp_path / "m").code == 0
    assert list(load(tmp_path / "m").feature_names_in_) == FEATURES
    assert list(load(tmp_path / "m").label_names_) == LABELS
    answer = rbrl("fit", path, "--labels", "-1", "--labels", "sea", "-o", tmp_path / "m")
    assert answer.code == 2
    assert "it has no column '-1', which was named as a label" in answer.err
