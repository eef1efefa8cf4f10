"""Columns of few words become columns of 0/1 in the model, in its file, and for every form of rows."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict

import rbrl
from rbrl import BinaryRelevance, CalibratedMultiLabelClassifier, MLkNN, RBRLClassifier, RBRLClassifierCV, explain
from rbrl.datasets import Dataset, load_file, load_parts, read_blocks
from rbrl.exceptions import DataFormatError, InvalidFeaturesError

RNG = np.random.default_rng(0)
COLOURS = RNG.choice(["red", "blue", "green"], 60)
SIZES = RNG.normal(size=60).round(3)
FRAME = pd.DataFrame({"size": SIZES, "colour": COLOURS, "shape": np.where(SIZES > 0.5, "round", "flat")})
Y = np.column_stack([COLOURS == "red", SIZES > 0]).astype(int)
NAMES = ["size", "colour=blue", "colour=green", "colour=red", "shape=flat", "shape=round"]
ENCODED = np.column_stack(
    [SIZES, *(word == COLOURS for word in ("blue", "green", "red")), SIZES <= 0.5, SIZES > 0.5]
).astype(float)
LIBRARIES = pytest.mark.parametrize(
    "frame", [pd.DataFrame, pl.DataFrame, pa.Table.from_pandas], ids=["pandas", "polars", "pyarrow"]
)
MODELS = [
    RBRLClassifier(),
    RBRLClassifier(kernel="rbf"),
    MLkNN(),
    BinaryRelevance(),
    RBRLClassifierCV([1.0], [0.1], [0.1, 1.0], cv=2),
]


@LIBRARIES
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_frame_of_words_gives_the_model_of_the_encoded_matrix(model, frame):
    words = clone(model).fit(frame(FRAME), Y)
    numbers = clone(model).fit(ENCODED, Y)
    np.testing.assert_array_equal(words.predict(frame(FRAME[:9])), numbers.predict(ENCODED[:9]))
    np.testing.assert_allclose(words.decision_function(frame(FRAME)), numbers.decision_function(ENCODED))


@LIBRARIES
def test_the_model_knows_its_words_and_names_its_features(frame):
    model = RBRLClassifier().fit(frame(FRAME), Y)
    assert model.categories_ == {"colour": ["blue", "green", "red"], "shape": ["flat", "round"]}
    assert model.feature_names_in_.tolist() == NAMES
    assert model.coef_.shape == (2, 6)
    # Rows that are encoded already are accepted, too.
    encoded = pd.DataFrame(ENCODED, columns=NAMES)
    np.testing.assert_array_equal(model.predict(encoded), model.predict(frame(FRAME)))
    # A fit without words forgets them.
    assert not hasattr(model.fit(FRAME[["size"]], Y), "categories_")


@LIBRARIES
def test_unknown_and_missing_words_are_named(frame):
    model = RBRLClassifier().fit(frame(FRAME), Y)
    row = int(np.flatnonzero(COLOURS == "red")[0])
    message = rf"Column 'colour' of X must have words of the fit: 'blue', 'green', 'red'. Got 'pink' in row {row}"
    with pytest.raises(InvalidFeaturesError, match=message):
        model.predict(frame(FRAME.replace("red", "pink")))
    with pytest.raises(
        InvalidFeaturesError, match=r"Column 'shape' of X must have a word in every row. Got .* in row 0"
    ):
        model.predict(frame(FRAME.assign(shape=[None] + ["flat"] * 59)))


def test_declared_words_are_known_in_every_fold():
    rare = FRAME.assign(colour=["gold", *COLOURS[1:]])
    with pytest.raises(InvalidFeaturesError, match=r"Got 'gold' in row 0.*pandas.CategoricalDtype"):
        cross_val_predict(RBRLClassifier(), rare, Y, cv=2)
    declared = rare.astype({"colour": pd.CategoricalDtype(["red", "gold", "blue", "green"])})
    assert cross_val_predict(RBRLClassifier(), declared, Y, cv=2).shape == Y.shape
    assert RBRLClassifier().fit(declared, Y).categories_["colour"] == ["red", "gold", "blue", "green"]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([f"id{i}" for i in range(60)], "60 different words in 60 rows; at most 40 words, each in 2 rows on average"),
        ([f"id{i % 31}" for i in range(60)], "31 different words in 60 rows"),
        (["a very good thing", "no"] * 30, "sentences, 2 different ones"),
        (["few", 3.5] * 30, "words and numbers, such as 3.5"),
        (["few", "12"] * 30, "words and numbers, such as 12"),
    ],
)
def test_other_words_are_refused_with_the_reason(values, reason):
    with pytest.raises(InvalidFeaturesError) as caught:
        RBRLClassifier().fit(FRAME[["size"]].assign(note=values), Y)
    assert f"Column 'note' has {reason}" in str(caught.value)
    assert "make_pipeline(ColumnTransformer(" in str(caught.value)


def test_the_limit_is_forty_words():
    size = pd.DataFrame({"word": [f"w{i % 40}" for i in range(80)]})
    labels = np.arange(160).reshape(80, 2) % 3 % 2
    assert RBRLClassifier().fit(size, labels).coef_.shape == (2, 40)
    with pytest.raises(InvalidFeaturesError, match="41 different words in 82 rows"):
        RBRLClassifier().fit(pd.DataFrame({"word": [f"w{i % 41}" for i in range(82)]}), np.ones((82, 2)))


def test_saved_models_know_their_words(tmp_path):
    model = CalibratedMultiLabelClassifier(RBRLClassifier(), cv=2).fit(FRAME, Y)
    rbrl.save(model, tmp_path / "model")
    again = rbrl.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(FRAME), model.predict_proba(FRAME))


def test_explanations_name_the_words():
    model = RBRLClassifier().fit(FRAME, Y)
    row = int(np.flatnonzero(COLOURS == "red")[0])
    found = explain(model, FRAME.iloc[row], 0)
    assert "colour=red" in found.terms
    assert "colour=blue" not in found.terms
    assert found.contributions.sum() + found.constants["intercept"] == pytest.approx(found.score)
    calibrated = CalibratedMultiLabelClassifier(RBRLClassifier(), cv=2).fit(FRAME, Y)
    assert "colour=red" in explain(calibrated, FRAME.iloc[[row]], 0).terms


def write(frame, path):
    (frame.to_csv if path.suffix == ".csv" else frame.to_parquet)(path, index=False)
    return path


LABELLED = FRAME.assign(is_red=Y[:, 0], is_big=Y[:, 1])
LABELS = ["is_red", "is_big"]
FILES = pytest.mark.parametrize("ending", ["csv", "parquet"])


@FILES
def test_files_of_few_words_are_encoded_alike(tmp_path, ending):
    data = load_file(write(LABELLED, tmp_path / f"a.{ending}"), LABELS)
    assert list(data.feature_names) == NAMES
    np.testing.assert_array_equal(data.X, ENCODED)
    model = RBRLClassifier().fit(data)
    assert model.categories_ == RBRLClassifier().fit(FRAME, Y).categories_
    np.testing.assert_array_equal(model.predict(FRAME), model.predict(data))
    other = load_file(write(LABELLED[:4], tmp_path / f"b.{ending}"), LABELS, columns=data.columns)
    np.testing.assert_array_equal(other.X, ENCODED[:4])
    blocks = list(read_blocks(write(FRAME[::-1], tmp_path / f"c.{ending}"), data.columns, block_size=7))
    np.testing.assert_array_equal(np.vstack(blocks), ENCODED[::-1])


@FILES
def test_unknown_words_of_files_are_named(tmp_path, ending):
    columns = load_file(write(LABELLED, tmp_path / f"a.{ending}"), LABELS).columns
    path = write(LABELLED.replace("red", "pink"), tmp_path / f"b.{ending}")
    message = "column 'colour' has 'pink'; the model knows 'blue', 'green', 'red'"
    for read in (lambda: load_file(path, LABELS, columns=columns), lambda: list(read_blocks(path, columns))):
        with pytest.raises(DataFormatError, match=message):
            read()


@FILES
def test_missing_words_of_files_are_missing_values(tmp_path, ending):
    frame = LABELLED.assign(colour=[None, *COLOURS[1:]])
    data = load_file(write(frame, tmp_path / f"a.{ending}"), LABELS)
    assert np.isnan(data.X[0, 1:4]).all()
    assert np.isnan(data.X).sum() == 3
    with pytest.raises(InvalidFeaturesError, match="in row 0 of column 1"):
        RBRLClassifier().fit(data)
    blocks = np.vstack(list(read_blocks(tmp_path / f"a.{ending}", data.columns)))
    np.testing.assert_array_equal(blocks, data.X)


@FILES
def test_many_words_and_parts_of_files_are_refused(tmp_path, ending):
    many = write(LABELLED.assign(colour=[f"id{i}" for i in range(60)]), tmp_path / f"many.{ending}")
    with pytest.raises(DataFormatError, match=r"the feature 'colour' has 'id.*60 different words in 60 rows"):
        load_file(many, LABELS)
    few = write(LABELLED, tmp_path / f"few.{ending}")
    # The first part cannot know whether words are few.
    with pytest.raises(DataFormatError, match="features must be numbers"):
        next(load_parts(few, LABELS, rows=10))
    with pytest.raises(DataFormatError, match="features must be numbers"):
        load_file(few, LABELS, part=True)


def test_the_command_line_predicts_rows_of_words(rbrl_command, tmp_path):
    write(LABELLED, tmp_path / "a.csv")
    write(FRAME[:5], tmp_path / "new.csv")
    for options in ([], ["--standardise"], ["--calibrate", "sigmoid"], ["--standardise", "--calibrate", "isotonic"]):
        model = tmp_path / "model"
        assert rbrl_command("fit", tmp_path / "a.csv", "--labels", "is_red,is_big", "-o", model, *options) == (0, "")
        answer = tmp_path / "answer.csv"
        assert rbrl_command("predict", model, tmp_path / "new.csv", "-o", answer) == (0, "")
        expected = rbrl.load(model).predict(ENCODED[:5])
        np.testing.assert_array_equal(pd.read_csv(answer).to_numpy(), expected)
        assert rbrl_command("evaluate", model, tmp_path / "a.csv", "--labels", "is_red,is_big")[0] == 0
    write(FRAME.replace("red", "pink"), tmp_path / "new.csv")
    code, errors = rbrl_command("predict", model, tmp_path / "new.csv")
    assert code == 2
    assert "column 'colour' has 'pink'; the model knows" in errors


@pytest.fixture
def rbrl_command(capsys):
    """Return a function that runs a command, and returns its code and its errors without notes on progress."""
    from rbrl.cli import main

    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            main([*map(str, arguments), *([] if arguments[0] == "evaluate" else ["--quiet"])])
        return end.value.code or 0, capsys.readouterr().err

    return run


def test_data_sets_keep_their_words_in_memory(tmp_path):
    data = load_file(write(LABELLED, tmp_path / "a.csv"), LABELS)
    assert data.columns.with_words().feature_names == ["size", "colour", "shape"]
    assert data.reorder(np.arange(60)[::-1]).categories == data.categories
    assert Dataset(ENCODED, Y).categories == {}
