"""Any bytes give a data set or a DataFormatError, but no other exception, hang or unlimited memory."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rbrl.datasets.formats.arff import Attributes, Header
from rbrl.datasets.formats.arff import _parse_dense_row as dense_row
from rbrl.datasets.formats.arff import _parse_plain_dense_rows as dense_fast
from rbrl.datasets.formats.arff import _parse_plain_sparse_rows as sparse_fast
from rbrl.datasets.formats.arff import _parse_sparse_row as sparse_row
from rbrl.exceptions import DataFormatError

from . import fuzz
from .mutations import KINDS

FORMATS = {ending: name for name, (ending, _) in KINDS.items()}
RELAXED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
WORDS = ["0", "1", "2", "-1", "?", "nan", "1.0", "1e3", ".5", "inf", "1_0", "a", "TRUE", "FALSE", "", " 1", "0x1", "+1"]
WORDS += ["٣", "-nan"]
ANY = st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
COLUMNS = Attributes(Header(names=list("abcd"), values=[None, ("0", "1"), ("FALSE", "TRUE"), ("2", "1", "0", "10")]))


@pytest.mark.parametrize(
    ("kind", "n_inputs"), [("text", 1500), ("npz", 300), ("npz-pair", 300), ("mat", 300), ("parquet", 300)]
)
def test_odd_files_are_read_correctly_or_refused(tmp_path, kind, n_inputs):
    """No other exception, crash, hang, or number that is not the file's; `fuzz.py` says how to run it for longer."""
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    found = fuzz.run(kind, n_inputs, 0, tmp_path)
    assert found["findings"] == 0, "\n".join(path.read_text() for path in tmp_path.glob("*.txt"))
    assert found["read"] > n_inputs / 10
    assert found["compared"] > n_inputs / 60


@pytest.mark.soak
@pytest.mark.parametrize(
    ("kind", "n_inputs"), [("text", 50_000), ("npz", 5_000), ("npz-pair", 5_000), ("mat", 5_000), ("parquet", 5_000)]
)
def test_many_odd_files(tmp_path, kind, n_inputs):
    test_odd_files_are_read_correctly_or_refused(tmp_path, kind, n_inputs)


@pytest.mark.parametrize("ending", [".arff", ".csv", ".svm", ".xmc", ".npz", ".X.npz", ".mat", ".parquet"])
@RELAXED
@given(content=ANY)
def test_any_bytes(tmp_path, ending, content):
    path = tmp_path / f"any{ending}"
    fuzz.examine(path, FORMATS[ending], content, {}, set())


def reference(function, *arguments):
    try:
        return function(COLUMNS, *arguments, 1)
    except DataFormatError:
        return None


@RELAXED
@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=4, max_size=4), min_size=1, max_size=3))
def test_fast_parser_of_dense_rows_agrees_with_the_slow_one(rows):
    lines = [",".join(row) + "\n" for row in rows]
    slow, fast = [reference(dense_row, line) for line in lines], dense_fast(COLUMNS, lines)
    if fast is not None:
        assert None not in slow
        np.testing.assert_array_equal(fast, slow)


@RELAXED
@given(st.lists(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(WORDS)), max_size=4), min_size=1, max_size=3))
def test_fast_parser_of_sparse_rows_agrees_with_the_slow_one(rows):
    lines = ["{" + ", ".join(f"{j} {word}" for j, word in row) + "}" for row in rows]
    slow, fast = [reference(sparse_row, line) for line in lines], sparse_fast(COLUMNS, lines)
    if fast is not None:
        assert None not in slow
        assert fast.indices.tolist() == [j for row in slow for j in row]
        np.testing.assert_array_equal(fast.data, [value for row in slow for value in row.values()])
        assert np.diff(fast.indptr).tolist() == [len(row) for row in slow]
