"""Columns of CSV and Parquet files: numbers with missing values, or words; numbers never become codes."""

import numpy as np
import pytest

from rbrl.datasets import load_file, load_parts, read_blocks
from rbrl.exceptions import DataFormatError

from .examples import assert_same
from .test_shards import join

N_ROWS = 2000
VALUES = np.random.default_rng(0).normal(10, 3, N_ROWS).tolist()
MISSING = ["N/A", "n/a", "null", "NULL", "None", "-", "#N/A", "", "NA", "nan", "NaN", "?", "<NA>", " NA ", "-nan", "."]


def table(folder, cells, name="a.csv", mark=","):
    """Write a column x of these cells, and a label."""
    path = folder / name
    path.write_text("\n".join([f"x{mark}y", *(f"{cell}{mark}{i % 2}" for i, cell in enumerate(cells))]) + "\n")
    return path


@pytest.mark.parametrize("word", MISSING)
def test_the_usual_spellings_are_missing_values(tmp_path, word):
    path = table(tmp_path, [*VALUES[:500], word, *VALUES[501:]])
    expected = np.array(VALUES)
    expected[500] = np.nan
    np.testing.assert_array_equal(load_file(path, -1).X[:, 0], expected)
    np.testing.assert_array_equal(join(load_parts(path, -1, rows=300)).X[:, 0], expected)
    np.testing.assert_array_equal(np.vstack(list(read_blocks(path, 1, -1, block_size=300)))[:, 0], expected)


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("inf", "an infinite value"),
        ("-Infinity", "an infinite value"),
        ("1e999", "an infinite value"),
        ("1,5", "a decimal comma: write a point"),
        ("broken", "which is not a plain number, but 1999 of 2000 cells look like numbers"),
        ("12.5%", "which is not a plain number"),
        ("1 234.5", "which is not a plain number"),
        ("1_000", "which is not a plain number"),
        ("$5", "which is not a plain number"),
        ("٣", "which is not a plain number"),
    ],
)
def test_a_stray_word_is_named_with_its_line_and_column(tmp_path, word, reason):
    path = table(tmp_path, [*VALUES[:500], f'"{word}"', *VALUES[501:]])
    for read in (load_file, lambda *arguments: next(load_parts(*arguments))):
        with pytest.raises(DataFormatError) as caught:
            read(path, -1)
        assert f"{path}, line 502: column 'x' has '{word}', {reason}" in str(caught.value)


@pytest.mark.parametrize("word", ["12%", "$5", "1 000"])
def test_formatted_numbers_are_not_words(tmp_path, word):
    with pytest.raises(DataFormatError, match=r"line 2: column 'x' has .*, which is not a plain number, but 3 of 3"):
        load_file(table(tmp_path, [word, word, word]), -1)


def test_mostly_different_numbers_are_not_words(tmp_path):
    """Not by cells, but by different values there are more numbers than words."""
    cells = [f"{i}.5" if i % 3 == 0 else "unknown" for i in range(300)]
    with pytest.raises(
        DataFormatError, match="line 3: column 'x' has 'unknown', which is not a plain number, but 100 of 300"
    ):
        load_file(table(tmp_path, cells), -1)


def test_the_code_of_a_word_does_not_depend_on_blocks_of_rows(tmp_path):
    """A number among words is the word that stands there, in a block with other words and in one without."""
    cells = ["1.0"] * 4096 + ["red", "1.0", "blue"] * 4096
    path = table(tmp_path, cells)
    data = load_file(path, -1, nominal="codes")
    codes = {"1.0": 0, "blue": 1, "red": 2}
    np.testing.assert_array_equal(data.X[:, 0], [codes[cell] for cell in cells])
    assert_same(join(load_parts(path, -1, rows=1000, nominal="codes")), data)


def test_words_are_the_same_in_parts_and_as_columns(tmp_path):
    path = table(tmp_path, ["red", "green", "NA", "blue", "red"])
    for nominal in ("codes", "onehot"):
        whole, parts = load_file(path, -1, nominal=nominal), list(load_parts(path, -1, rows=1, nominal=nominal))
        assert_same(join(parts), whole)
        assert {tuple(part.categorical_index) for part in parts} == {tuple(whole.categorical_index)}


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_separator_is_found_outside_quotes(tmp_path, mark):
    """More commas than separators in the names, which are quoted or not."""
    path = tmp_path / "a.csv"
    path.write_text(f'"a,b,c;d;e|f|g\th\ti"{mark}x{mark}y\n1.5{mark}2{mark}0\n3{mark}4{mark}1\n')
    for data in (load_file(path, -1), join(load_parts(path, -1, rows=1))):
        assert data.feature_names == ("a,b,c;d;e|f|g\th\ti", "x")
        np.testing.assert_array_equal(data.X, [[1.5, 2], [3, 4]])


def test_the_separator_is_found_in_the_rows(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("length, cm, wet;width, cm, dry;y\n1.5;2;0\n")
    assert load_file(path, -1).feature_names == ("length, cm, wet", "width, cm, dry")


def test_a_file_without_features_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x~y\n1~0\n0~1\n")
    with pytest.raises(DataFormatError, match=r"no feature is left|has '1~0'"):
        load_file(path, -1)
    path.write_text("y\n1\n0\n")
    with pytest.raises(DataFormatError, match=r"so no feature is left. Columns: .*comma, semicolon, tab"):
        load_file(path, -1)


def test_parts_are_read_in_the_encoding_of_the_whole(tmp_path):
    """The first letter that is no UTF-8 may stand in the last row."""
    path = tmp_path / "a.csv"
    path.write_bytes("x,y\nrot,1\ngrün,0\n".encode("latin-1"))
    assert_same(join(load_parts(path, -1, rows=1, nominal="onehot")), load_file(path, -1, nominal="onehot"))


@pytest.mark.parametrize("word", ["N/A", "inf", "broken"])
def test_words_in_parquet_follow_the_same_rules(tmp_path, word):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": ["1.5", word, "2"], "y": [0, 1, 0]}), path)
    if word == "N/A":
        np.testing.assert_array_equal(load_file(path, -1).X[:, 0], [1.5, np.nan, 2])
    else:
        with pytest.raises(
            DataFormatError, match=f"column 'x' has '{word}', (an infinite|which is not a plain number)"
        ):
            load_file(path, -1)
    pq.write_table(pa.table({"x": ["red", "blue", "red"], "y": [0, 1, 0]}), path)
    assert_same(join(load_parts(path, -1, rows=1, nominal="codes")), load_file(path, -1, nominal="codes"))
