"""Words in files: labels whose meaning is declared, features that are refused or ignored, and the row index of pandas."""

import warnings

import numpy as np
import pandas as pd
import pytest

from rbrl import RBRLClassifier, load, save
from rbrl.datasets import load_file, load_parts, open_shards, read_blocks, save_file
from rbrl.exceptions import DataFormatError, GuessWarning

FRAME = pd.DataFrame(
    {
        "id": ["r1", "r2", "r3", "r4"],
        "date": ["2024-01-01", "2024-01-02", "2024-02-01", "2024-03-01"],
        "x": [1.5, 2.0, 0.25, 4.0],
        "member": ["yes", "no", "no", "yes"],
        "on": ["active", "inactive", "inactive", "active"],
        "da": ["nein", "ja", "nein", "ja"],
    }
)
LABELS, IDS, WORDS = ["on", "da"], ["id", "date"], ["active", "ja"]
Y = [[1, 0], [0, 1], [0, 0], [1, 1]]
X = [[1.5, 1], [2, 0], [0.25, 0], [4, 1]]


def write(folder, ending, frame=FRAME, name="data"):
    path = folder / f"{name}.{ending}"
    if ending == "csv":
        frame.to_csv(path, index=False)
    elif ending == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    else:
        kinds = {"id": "string", "date": 'date "yyyy-MM-dd"', "x": "numeric"}
        words = {name: "{" + ",".join(sorted(set(frame[name]))) + "}" for name in frame if name not in kinds}
        header = [f"@attribute {name} {(kinds | words)[name]}" for name in frame]
        rows = frame.to_csv(index=False, header=False).splitlines()
        path.write_text("\n".join(["@relation r", *header, "@data", *rows]) + "\n")
    return path


@pytest.fixture(params=["csv", "parquet", "arff"])
def path(tmp_path, request):
    return write(tmp_path, request.param)


def test_words_of_labels_need_a_declaration(path):
    """Alphabetical codes would make `inactive` and `nein` relevant."""
    with pytest.raises(DataFormatError) as caught:
        load_file(path, LABELS, ignore=IDS)
    assert str(path) in str(caught.value)
    assert "the label 'on' has the words 'active' and 'inactive', which may mean 1 or 0" in str(caught.value)
    assert "with positive='active' or positive='inactive', or write 0 and 1" in str(caught.value)


def test_declared_words_are_relevant_labels(path):
    data = load_file(path, LABELS, ignore=IDS, positive=WORDS)
    np.testing.assert_array_equal(data.Y, Y)
    np.testing.assert_array_equal(data.X, X)
    assert data.feature_names == ("x", "member")
    np.testing.assert_array_equal(load_file(path, LABELS, ignore=IDS, positive=["inactive", "nein"]).Y, 1 - np.array(Y))
    parts = list(load_parts(path, LABELS, rows=1, ignore=IDS, positive=WORDS))
    np.testing.assert_array_equal(np.vstack([part.Y for part in parts]), Y)


def test_sparse_words_of_labels(tmp_path):
    """A sparse row leaves out the first word declared, which may be the positive one."""
    text = "@relation r\n@attribute x numeric\n@attribute on {active,inactive}\n@data\n{0 1}\n{1 inactive}\n{1 ?}\n"
    (tmp_path / "a.arff").write_text(text)
    for word, expected in (("active", [1, 0]), ("inactive", [0, 1])):
        data = load_file(tmp_path / "a.arff", -1, positive=word)
        np.testing.assert_array_equal(data.Y[:, 0], [*expected, np.nan])


@pytest.mark.parametrize(
    ("cells", "positive", "expected"),
    [
        ("yes no yes", (), [1, 0, 1]),
        ("TRUE False true", (), [1, 0, 1]),
        ("y n N", (), [1, 0, 0]),
        ("f T t", (), [0, 1, 1]),
        ("ja nein NA", "ja", [1, 0, np.nan]),
        ("Ja ja nein", ["Ja", "ja"], [1, 1, 0]),
        ("ja ja ja", "ja", [1, 1, 1]),
        ("no yes no", "no", [1, 0, 1]),
    ],
)
def test_words_with_a_known_meaning(tmp_path, cells, positive, expected):
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"1,{cell}\n" for cell in cells.split()))
    np.testing.assert_array_equal(load_file(tmp_path / "a.csv", -1, positive=positive).Y[:, 0], expected)


@pytest.mark.parametrize(
    ("cells", "positive", "message"),
    [
        ("nein nein nein", (), "has the word 'nein', which may mean 1 or 0: .* with positive='nein', or write 0 and 1"),
        ("yes true no", (), "has the words 'no', 'true', 'yes', which may mean 1 or 0: a label has two values"),
        ("yes 1 1", (), "has the words '1' and 'yes'|'yes', which is not a plain number"),
        ("active inactive pending", "active", "has the words 'active', 'inactive', 'pending', .* all words but one"),
        (
            "active inactive active",
            "activ",
            "none of its labels has the word 'activ' .*; their words are 'active', 'ina",
        ),
        ("0 1 0", "ja", "none of its labels has the word 'ja' of positive='ja'; they are numbers"),
    ],
)
def test_words_without_a_meaning_are_refused(tmp_path, cells, positive, message):
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"1,{cell}\n" for cell in cells.split()))
    with pytest.raises(DataFormatError, match=message):
        load_file(tmp_path / "a.csv", -1, positive=positive)


def test_the_other_word_of_one_label_is_known_in_all(tmp_path):
    """A rare label may be `nein` in every row; one that is `inactive` in every row tells nothing."""
    (tmp_path / "a.csv").write_text("x,a,b\n1,ja,nein\n2,nein,nein\n")
    np.testing.assert_array_equal(load_file(tmp_path / "a.csv", ["a", "b"], positive="ja").Y, [[1, 0], [0, 0]])
    (tmp_path / "a.csv").write_text("x,a,b\n1,ja,inactive\n2,nein,inactive\n")
    with pytest.raises(DataFormatError, match="the label 'b' has the word 'inactive'"):
        load_file(tmp_path / "a.csv", ["a", "b"], positive="ja")
    (tmp_path / "a.csv").write_text("x,a,b\n1,ja,ja\n2,nein,pending\n3,ja,nein\n")
    with pytest.raises(DataFormatError, match="the label 'b' has the words 'ja', 'nein', 'pending'"):
        load_file(tmp_path / "a.csv", ["a", "b"], positive="ja")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("name", IDS)
def test_ids_and_dates_are_no_features(tmp_path, ending, name):
    path = write(tmp_path, ending, FRAME[[name, "x", *LABELS]])
    with pytest.raises(DataFormatError) as caught:
        load_file(path, LABELS, positive=WORDS)
    first = FRAME[name][0]
    assert f"the feature '{name}' has '{first}', and features must be numbers" in str(caught.value)
    assert f"leave the column out with ignore='{name}'" in str(caught.value)
    assert load_file(path, LABELS, positive=WORDS, nominal="codes").n_features == 2


def test_declared_categories_are_features(tmp_path):
    text = "@relation r\n@attribute colour {red,green,blue}\n@attribute y {0,1}\n@data\nblue,1\nred,0\n"
    (tmp_path / "a.arff").write_text(text)
    np.testing.assert_array_equal(load_file(tmp_path / "a.arff", -1).X, [[2], [0]])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_of_many_words_and_of_other_types_are_ignored(tmp_path, ending):
    many = pd.DataFrame({"id": [f"r{i}" for i in range(10_500)], "x": 1.0, "y": [0, 1] * 5250})
    path = write(tmp_path, ending, many)
    with pytest.raises(DataFormatError, match=r"one of more than 10000 different words; .* left out with ignore='id'"):
        load_file(path, -1)
    assert load_file(path, -1, ignore="id").X.shape == (10_500, 1)
    if ending == "parquet":
        path = write(tmp_path, ending, many.assign(id=pd.Timestamp("2024-01-01")))
        with pytest.raises(DataFormatError, match=r"column 'id' has type timestamp.*leave it out with ignore='id'"):
            load_file(path, -1)
        assert load_file(path, -1, ignore="id").X.shape == (10_500, 1)


def test_columns_that_cannot_be_ignored(tmp_path):
    path = write(tmp_path, "csv")
    with pytest.raises(
        DataFormatError, match="it has no column 'ids', which ignore='ids' names; it has 'id', 'date', 'x'"
    ):
        load_file(path, LABELS, ignore="ids")
    with pytest.raises(DataFormatError, match="column 'da' cannot be a label and an ignored column"):
        load_file(path, LABELS, ignore="da")
    with pytest.raises(DataFormatError, match="column 'da' cannot be a label and an ignored column"):
        load_file(path, -2, ignore="da")
    save_file(load_file(path, LABELS, ignore=IDS, positive=WORDS), tmp_path / "a.npz")
    for option in ("ignore", "positive"):
        with pytest.raises(
            DataFormatError, match=f"{option}= goes with ARFF, CSV and Parquet files; this is a npz file"
        ):
            load_file(tmp_path / "a.npz", **{option: "x"})


@pytest.mark.parametrize("ending", ["csv", "parquet", "arff"])
def test_a_model_remembers_words_and_ignored_columns(tmp_path, ending):
    path = write(tmp_path, ending)
    model = RBRLClassifier().fit(load_file(path, LABELS, ignore=IDS, positive=WORDS))
    save(model, tmp_path / "m.rbrl")
    from rbrl.estimators.validation import get_columns

    columns = get_columns(load(tmp_path / "m.rbrl"))
    assert columns.ignored == tuple(IDS)
    assert columns.label_words == {"active": 1, "inactive": 0, "ja": 1, "nein": 0}
    again = load_file(path, columns=columns)
    np.testing.assert_array_equal(again.Y, Y)
    np.testing.assert_array_equal(np.vstack(list(read_blocks(path, columns, block_size=1))), X)
    rest = write(tmp_path, ending, FRAME[FRAME.da == "nein"].drop(columns=IDS), "rest")
    np.testing.assert_array_equal(load_file(rest, columns=columns).Y, [[1, 0], [0, 0]])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_shards_of_words(tmp_path, ending):
    """The second file has one word of the second label only."""
    write(tmp_path, ending, FRAME, "0")
    write(tmp_path, ending, FRAME[FRAME.da == "nein"], "1")
    shards = open_shards(str(tmp_path / f"*.{ending}"), LABELS, ignore=IDS, positive=WORDS)
    for _ in range(3):  # the third time from copies
        np.testing.assert_array_equal(np.vstack([labels for _, labels in shards]), [*Y, [1, 0], [0, 0]])
    assert shards.read(1).columns.ignored == tuple(IDS)


def test_truth_words_are_features_in_blocks(tmp_path):
    path = write(tmp_path, "csv", FRAME[["x", "member"]].assign(paid=[True, False, None, True]))
    expected = [[1.5, 1, 1], [2, 0, 0], [0.25, 0, np.nan], [4, 1, 1]]
    np.testing.assert_array_equal(np.vstack(list(read_blocks(path, 3, block_size=1))), expected)
    path.write_text("x,member\n1,yes\n2,true\n")
    with pytest.raises(DataFormatError, match="column 'member' has 'yes'"):
        list(read_blocks(path, 2))


@pytest.mark.parametrize("header", [",x,y", '"",x,y', "Unnamed: 0,x,y", "Unnamed: 0.1,x,y"])
def test_the_row_index_of_pandas_is_no_feature(tmp_path, header):
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n0,1,1\n1,0,0\n")
    with pytest.warns(GuessWarning, match="is taken for the row index of pandas and left out"):
        data = load_file(path, ["y"])
    assert data.feature_names == ("x",)
    np.testing.assert_array_equal(data.X, [[1], [0]])
    with pytest.warns(GuessWarning, match="row index"):
        np.testing.assert_array_equal(np.vstack(list(read_blocks(path, data.columns))), data.X)
    with pytest.warns(GuessWarning, match="row index"):
        assert next(load_parts(path, 1, rows=1)).label_names == ("x",)


def test_an_index_that_is_named_to_be_ignored_needs_no_warning(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("Unnamed: 0,x,y\n0,1.5,1\n1,2.5,0\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_file(path, ["y"], ignore="Unnamed: 0").feature_names == ("x",)


def test_the_index_of_a_frame_in_parquet_is_no_feature(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"x": [1.5, 2.5], "y": [1, 0]}, index=["r1", "r2"])
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.warns(GuessWarning, match="column '__index_level_0__' is taken for the row index"):
        data = load_file(tmp_path / "a.parquet", -1)
    assert (data.feature_names, data.label_names) == (("x",), ("y",))


def test_a_name_that_would_be_read_as_an_index_is_not_written(tmp_path):
    from rbrl.datasets import Dataset

    data = Dataset([[1.0, 2.0]], [[1]], ["Unnamed: 0", "x"], ["y"])
    with pytest.raises(DataFormatError, match="column 'Unnamed: 0' would be read as the row index of pandas"):
        save_file(data, tmp_path / "a.csv")
    save_file(data, tmp_path / "a.parquet")
    assert load_file(tmp_path / "a.parquet").feature_names == ("Unnamed: 0", "x")
