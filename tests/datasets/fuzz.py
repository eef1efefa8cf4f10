"""A fuzzer for the readers: every input gives the data set that other programs read, or an error with the file's name.

    PYTHONPATH=tests python -m datasets.fuzz --count 1000000 text
    PYTHONPATH=tests python -m datasets.fuzz --count 50000 npz npz-pair mat parquet

An input depends on its number and the seed only. Another process watches each process that reads, so that a crash and a
hang are findings, too. Files and tracebacks of all findings are saved in --folder.
"""

import argparse
import multiprocessing
import random
import resource
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest

from rbrl.datasets import load_file, load_parts, read_blocks
from rbrl.datasets.columns import read_label_names
from rbrl.datasets.formats.plain_tables import _guess_separator
from rbrl.datasets.formats.repository import label_file
from rbrl.exceptions import DataFormatError

from . import oracles
from .examples import dense
from .mutations import KINDS, TEXT
from .test_dialects import MULAN

MAX_BYTES, MAX_SECONDS, MAX_MEMORY = 1 << 24, 60, 6 << 30
MAX_CELLS = 1_000_000  # of a sparse matrix that is compared as a dense one
TABLES = {"csv", "arff", "parquet"}
STREAMED = {"csv", "arff", "svmlight", "repository", "parquet"}
CHECKS = {"parts": 0.15, "others": 0.4}  # dearer than reading: done with a share of the files that read
COUNTS = ("inputs", "read", "compared", "findings")


def make_input(kind, seed, i):
    """Return (format, its bytes, options of the reader) of input i."""
    rng = random.Random(f"{kind} {seed} {i}")
    name = rng.choice(TEXT) if kind == "text" else kind
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numbers that overflow, and of archives with a name twice: both are wanted
        content = KINDS[name][1](rng)
    options = {"labels": -2} if name in TABLES else {}
    if rng.random() < 0.2:
        options = {"nominal": "onehot", **options}
    if name in TABLES and rng.random() < 0.1:
        options["labels"] = rng.choice([None, 2, ["l1"], -1])
    checks = {check for check, share in CHECKS.items() if rng.random() < share}
    return name, content, options, checks


def examine(path, name, content, options, checks):
    """Read one file; return (whether it can be read, whether another program read the same)."""
    path.write_bytes(content)
    if name == "xml":
        return _examine_xml(path, content)
    if name == "npz-pair":
        label_file(path).write_bytes(content)
    data = _read(path, options)
    if data is None:
        return False, False
    if data.n_samples * data.n_features > MAX_CELLS:
        return True, False
    if data.columns.categories:
        # Words become columns only if the whole file is read: a part cannot know whether they are few.
        if name in STREAMED and "parts" in checks:
            with pytest.raises(DataFormatError, match="features must be numbers"):
                list(load_parts(path, rows=2, **options))
        return True, False
    if name in STREAMED and "parts" in checks:
        _check_parts(path, data, options)
    plain = "others" in checks and options.get("labels", -2) == -2 and "nominal" not in options
    return True, plain and _matches_other_program(name, content, data)


def _read(path, options):
    try:
        return load_file(path, max_bytes=MAX_BYTES, **options)
    except DataFormatError as error:
        if path.stem not in str(error):
            raise AssertionError(f"the message does not name the file {path}: {error}") from error
        return None


def _examine_xml(path, content):
    path.with_suffix(".arff").write_text(MULAN)
    _read(path.with_suffix(".arff"), {})
    try:
        names = read_label_names(path)
    except DataFormatError:
        return False, False
    finally:
        path.unlink()
    expected = _read_with(oracles.xml_names, content)
    assert expected is None or names == expected, f"{names} where ElementTree reads {expected}"
    return True, expected is not None


def _check_parts(path, data, options):
    """Check that parts and blocks have the rows of the whole file."""
    parts = list(load_parts(path, rows=2, **options))
    np.testing.assert_array_equal(np.vstack([dense(part.X) for part in parts]), dense(data.X))
    np.testing.assert_array_equal(np.vstack([dense(part.Y) for part in parts]), dense(data.Y))
    assert all(part.feature_names == data.feature_names for part in parts)
    if "nominal" in options:
        return
    try:
        blocks = [dense(X) for X in read_blocks(path, data.n_features, options.get("labels"), block_size=2)]
    except DataFormatError as error:
        raise AssertionError(f"read at once, and not in blocks: {error}") from error
    np.testing.assert_array_equal(np.vstack(blocks), dense(data.X))


def _matches_other_program(name, content, data):
    """Return True if another program can read the file; check that it reads the same numbers."""
    X = dense(data.X)
    if name == "svmlight":
        found = None if _differs_from_sklearn(content) else _read_with(oracles.svmlight_matrix, content)
        if found is not None:
            np.testing.assert_array_equal(X, found)
    elif name == "repository":
        found = (
            None
            if _differs_from_sklearn(content.partition(b"\n")[2])
            else _read_with(oracles.repository_matrix, content)
        )
        if found is not None:
            np.testing.assert_array_equal(X, found)
    elif name == "npz-pair":
        found = _read_with(oracles.sparse_matrix, content)
        if found is not None:
            np.testing.assert_array_equal(X, found)
            np.testing.assert_array_equal(dense(data.Y), found)
    elif name in ("npz", "mat"):
        found = _read_with(oracles.npz_matrices if name == "npz" else oracles.mat_matrices, content)
        if found is not None:
            np.testing.assert_array_equal(X, found[0])
            assert any(np.array_equal(data.Y, Y > 0) for Y in (found[1], found[1].T))
    else:
        found = _columns(name, content)
        found = None if found is None or len(found) != data.n_features + data.n_labels else found
        for j, column in enumerate(found[:-2] if found else ()):
            if column is not None:
                np.testing.assert_array_equal(X[:, j], column, err_msg=f"column {j}")
    return found is not None


def _columns(name, content):
    if name == "csv":
        text = content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", "replace")
        return _read_with(oracles.csv_columns, content, _guess_separator(text.splitlines(keepends=True)[:20]))
    return _read_with(oracles.arff_columns if name == "arff" else oracles.parquet_columns, content)


def _differs_from_sklearn(content):
    """Return True if a svmlight file has a head, an encoding or line ends that scikit-learn does not read."""
    marks = (b"# rbrl: ", b"\xff", b"\xfe", b"\xef")
    return content.startswith(marks) or b"\r" in content or len(content.split(b"\n")[0].split()) == 3


def _read_with(read, *arguments):
    """Return the result of another program, or None if it raises any error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return read(*arguments)
    except Exception:  # noqa: BLE001
        return None


def _examine_inputs(kind, seed, start, stop, folder, counts):
    """Examine inputs `start` to `stop`; `counts` is shared with the process that watches."""
    warnings.simplefilter("error", RuntimeWarning)
    with tempfile.TemporaryDirectory(dir=_fast_folder()) as place:
        for i in range(start, stop):
            counts[0] = i
            name, content, options, checks = make_input(kind, seed, i)
            try:
                read, compared = examine(Path(place, f"fuzz{KINDS[name][0]}"), name, content, options, checks)
            except Exception:  # noqa: BLE001 - whatever it is, it is a finding
                _save_finding(folder, kind, seed, i, name, content, f"{options}\n{traceback.format_exc()}")
                counts[3] += 1
            else:
                counts[1], counts[2] = counts[1] + read, counts[2] + compared
    counts[0] = stop


def _fast_folder():
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _save_finding(folder, kind, seed, i, name, content, what):
    place = folder / f"{kind}-{seed}-{i}{KINDS[name][0]}"
    place.write_bytes(content)
    place.with_suffix(place.suffix + ".txt").write_text(what, encoding="utf-8", errors="backslashreplace")


def run(kind, n_inputs, seed, folder, say=None):
    """Examine inputs 0 to n_inputs of a kind and a seed; return a dict of `COUNTS`. Findings are in `folder`."""
    context = multiprocessing.get_context("spawn")
    counts = context.Array("q", 4, lock=False)
    done, folder = 0, Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    while done < n_inputs:
        worker = context.Process(target=_examine_with_memory_limit, args=(kind, seed, done, n_inputs, folder, counts))
        worker.start()
        hangs = _watch(worker, counts, n_inputs, say)
        done = counts[0]
        if done < n_inputs:
            name, content, options, _ = make_input(kind, seed, done)
            what = f"no answer after {MAX_SECONDS} s" if hangs else f"the process ended with {worker.exitcode}"
            _save_finding(folder, kind, seed, done, name, content, f"{options}\n{what}")
            counts[3] += 1
            done += 1
    return {"inputs": n_inputs, "read": counts[1], "compared": counts[2], "findings": counts[3]}


def _examine_with_memory_limit(*arguments):
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    _examine_inputs(*arguments)


def _watch(worker, counts, n_inputs, say):
    """Wait for the end of a process; end it, and return True, if it stays too long with one input."""
    seen, since = -1, time.monotonic()
    while worker.is_alive():
        worker.join(5)
        if counts[0] != seen:
            seen, since = counts[0], time.monotonic()
            if say:
                say(f"{seen} of {n_inputs}: {counts[1]} read, {counts[2]} compared, {counts[3]} findings")
        elif time.monotonic() - since > MAX_SECONDS:
            worker.kill()
            worker.join()
            return True
    return False


def main():
    """Run from a shell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="+", choices=["text", *KINDS])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=Path("fuzz-findings"))
    arguments = parser.parse_args()
    for kind in arguments.kinds:
        started = time.monotonic()
        found = run(kind, arguments.count, arguments.seed, arguments.folder / kind, lambda line: _say(line, "\r"))
        _say(f"{kind}, seed {arguments.seed}: {found}, {time.monotonic() - started:.0f} s", "\n")


def _say(line, end):
    sys.stdout.write(line + end)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
