"""Data sets in several files: they are written and read with the same content; files that do not fit are refused."""

import json
import pickle
import shutil
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from rbrl.datasets import Dataset, Shards, load_file, load_parts, open_shards, save_file, write_shards
from rbrl.exceptions import DataFormatError

from .examples import assert_same, dense, small

STREAMED = ("csv", "tsv", "arff", "svm", "parquet")


def join(parts):
    """Data sets of the same columns as one."""
    parts = list(parts)
    X, Y = (np.vstack([dense(side) for side in sides]) for sides in zip(*((part.X, part.Y) for part in parts)))
    X = sparse.csr_array(X) if sparse.issparse(parts[0].X) else X
    return Dataset(X, Y, parts[0].feature_names, parts[0].label_names)


@pytest.mark.parametrize("ending", [*STREAMED, "npz", "mat"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_blocks_of_a_file_are_the_file(ending, is_sparse, tmp_path):
    path = tmp_path / f"data.{ending}"
    save_file(small(is_sparse, n_samples=23), path)
    whole, blocks = load_file(path), list(load_parts(path, rows=5))
    assert [len(block) for block in blocks] == [5, 5, 5, 5, 3]
    assert_same(join(blocks), whole)


@pytest.mark.parametrize("rows", [1, 5, 23, 100])
def test_written_shards_hold_the_rows_in_order(rows, tmp_path):
    data = small(is_sparse=True, n_samples=23)
    shards = write_shards(data, tmp_path / "new" / "folder", rows_per_shard=rows)
    assert len(shards) == -(-23 // rows)
    assert_same(join(shards.read(i) for i in range(len(shards))), data)
    assert open_shards(tmp_path / "new" / "folder").paths == shards.paths


def test_shards_from_arrays_files_and_iterables(tmp_path):
    data = small(n_samples=23)
    save_file(data, tmp_path / "data.svm")
    uneven = ((data.X[a:b], data.Y[a:b]) for a, b in ((0, 4), (4, 4), (4, 20), (20, 23)))
    sources = {"arrays": (data.X, data.Y), "file": tmp_path / "data.svm", "iterable": uneven}
    for name, source in sources.items():
        shards = write_shards(source, tmp_path / name, rows_per_shard=10)
        assert [len(Y) for _, Y in shards] == [10, 10, 3]
        np.testing.assert_allclose(np.vstack([dense(X) for X, _ in shards]), data.X)
        np.testing.assert_array_equal(np.vstack([Y for _, Y in shards]), data.Y)


def test_a_folder_a_pattern_or_a_list(tmp_path):
    shards = write_shards(small(), tmp_path, rows_per_shard=5)
    (tmp_path / "README").write_text("not data")
    for where in (tmp_path, str(tmp_path), str(tmp_path / "*.npz"), shards.paths):
        assert open_shards(where).paths == shards.paths
    assert repr(shards) == "Shards(3 files, 'part-00000.npz' to 'part-00002.npz')"
    assert repr(shards[1:]) == "Shards(2 files, 'part-00001.npz' to 'part-00002.npz')"
    assert isinstance(shards[:0], Shards)
    X, Y = shards[-1]
    assert len(X) == len(Y) == 2


@pytest.mark.parametrize("ending", STREAMED)
def test_shards_of_other_formats(ending, tmp_path):
    data = small(n_samples=12)
    for i in range(3):
        part = Dataset(*data.take(np.arange(4 * i, 4 * i + 4)), data.feature_names, data.label_names)
        save_file(part, tmp_path / f"{i}.{ending}")
    shards = open_shards(str(tmp_path / f"*.{ending}"))
    np.testing.assert_allclose(np.vstack([dense(X) for X, _ in shards]), data.X)
    np.testing.assert_array_equal(np.vstack([Y for _, Y in shards]), data.Y)


def test_svmlight_parts_have_the_same_base(tmp_path):
    """The first part has no feature 3 and no label 0: alone, it would be read otherwise."""
    (tmp_path / "a.svm").write_text("1 1:1\n2 2:1\n")
    (tmp_path / "b.svm").write_text("0 3:5\n")
    with pytest.raises(DataFormatError, match=r"a\.svm: its first line does not give.*n_features="):
        open_shards(tmp_path)[0]
    shards = open_shards(tmp_path, n_features=3, n_labels=3, first_feature=1, first_label=0)
    np.testing.assert_array_equal(shards[0].X.toarray(), [[1, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(shards[0].Y, [[0, 1, 0], [0, 0, 1]])
    np.testing.assert_array_equal(shards[1].Y, [[1, 0, 0]])
    text = "2 0:1\n1 2:1\n2,1 1:1\n"
    (tmp_path / "c.txt").write_text(text)
    blocks = list(load_parts(tmp_path / "c.txt", rows=1))
    assert_same(join(blocks), load_file(tmp_path / "c.txt"))


def test_words_are_coded_for_the_whole_or_refused(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\nred,1\nblue,0\n")
    with pytest.raises(DataFormatError, match=r"a\.csv, line 2: the feature 'x' has 'red', and features must be"):
        open_shards([tmp_path / "a.csv"], -1, nominal="codes")[0]
    assert [block.X[0, 0] for block in load_parts(tmp_path / "a.csv", -1, rows=1, nominal="codes")] == [1, 0]
    (tmp_path / "b.arff").write_text(
        "@relation 'r: -C 1'\n@attribute y {0,1}\n@attribute x {red,blue}\n@data\n1,blue\n% no\n0,red\n"
    )
    assert [block.X[0, 0] for block in load_parts(tmp_path / "b.arff", rows=1)] == [1, 0]


def test_quoted_line_ends_stay_in_their_cell(tmp_path):
    (tmp_path / "a.csv").write_text('"the\nx","y ""q"""\n1,0\n2,1\n')
    blocks = list(load_parts(tmp_path / "a.csv", -1, rows=1))
    assert blocks[1].feature_names == ("the\nx",)
    assert blocks[1].label_names == ('y "q"',)
    assert blocks[1].X[0, 0] == 2


def test_bad_shards_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no data files: .*nothing"):
        open_shards(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match=r"no such file: .*gone\.npz, one of 1 shards"):
        open_shards([tmp_path / "gone.npz"])
    with pytest.raises(FileNotFoundError, match="no such file"):
        list(load_parts(tmp_path / "gone.csv"))
    shards = write_shards(small(), tmp_path / "s", rows_per_shard=6)
    with pytest.raises(FileExistsError, match=r"holds shards already, such as part-00000\.npz"):
        write_shards(small(), tmp_path / "s")
    content = shards.paths[1].read_bytes()
    shards.paths[1].write_bytes(content[: len(content) // 2])
    with pytest.raises(DataFormatError, match=r"part-00001\.npz: not a readable NPZ file"):
        shards[1]
    shards.paths[1].unlink()
    with pytest.raises(FileNotFoundError, match=r"part-00001\.npz"):
        shards[1]
    save_file(small(), tmp_path / "s" / "other.svm")
    with pytest.raises(DataFormatError, match=r"one format. Got the endings \.npz, \.svm"):
        open_shards(tmp_path / "s")
    with pytest.raises(ValueError, match=r"rows_per_shard.*Got 0"):
        write_shards(small(), tmp_path / "t", rows_per_shard=0)
    with pytest.raises(ValueError, match="no rows to write"):
        write_shards(iter(()), tmp_path / "u")


def test_a_path_is_not_a_sequence(tmp_path):
    shards = write_shards(small(), tmp_path, rows_per_shard=5)
    for where in (tmp_path, str(tmp_path), str(tmp_path / "*.npz")):
        assert Shards(where).paths == shards.paths
    assert Shards(str(shards.paths[1])).paths == open_shards(shards.paths[1]).paths == shards.paths[1:2]
    with pytest.raises(FileNotFoundError, match="no data files: nothing"):
        Shards("nothing")


def pieces(folder, ending, orders):
    """Write `small` in three files of four rows; file i has its features and labels in the order `orders[i]` says."""
    data = small(n_samples=12)
    for i, order in enumerate(orders):
        X, Y = data.take(np.arange(4 * i, 4 * i + 4))
        names = [np.array(side)[::order].tolist() for side in (data.feature_names, data.label_names)]
        part = Dataset(X[:, ::order], Y[:, ::order], *names)
        save_file(part, folder / f"{i}.{ending}", **({"labels_first": order < 0} if ending in STREAMED[:3] else {}))
    return data


@pytest.mark.parametrize("ending", ["csv", "tsv", "arff", "parquet", "npz", "mat", "svm"])
def test_columns_are_matched_by_name(ending, tmp_path):
    data = pieces(tmp_path, ending, [1, -1, 1])
    shards = open_shards(str(tmp_path / f"*.{ending}"))
    again = pickle.loads(pickle.dumps(shards))
    later = [shards[1:][0], shards[-1]]  # the first file is not among them, and its order counts
    for some in (shards, again, later):
        for _ in range(3):  # the third time from copies
            X, Y = (np.vstack([dense(side) for side in sides]) for sides in zip(*some))
            np.testing.assert_array_equal(X, data.X[-len(X) :])
            np.testing.assert_array_equal(Y, data.Y[-len(Y) :])
    assert shards.read(1).feature_names == data.feature_names
    assert shards.read(1).label_names == data.label_names


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_labels_by_number_are_those_of_the_first_file(ending, tmp_path):
    """The last columns of the second file are no labels, and might pass for such."""
    tables = ["x,y,a,b\n5,1,0,1\n6,0,1,0\n", "a,b,x,y\n0,1,1,0\n1,1,0,1\n"]
    for i, text in enumerate(tables):
        (tmp_path / f"{i}.csv").write_text(text)
        if ending == "parquet":
            pd = pytest.importorskip("pandas")
            pd.read_csv(tmp_path / f"{i}.csv").to_parquet(tmp_path / f"{i}.parquet")
    shards = open_shards(str(tmp_path / f"*.{ending}"), labels=-2)
    np.testing.assert_array_equal(shards[1].X, [[1, 0], [0, 1]])
    np.testing.assert_array_equal(shards[1].Y, [[0, 1], [1, 1]])


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_other_columns_are_refused(ending, tmp_path):
    tables = {
        "a": (["x", "y"], ["l", "m"]),
        "b": (["x", "z"], ["l", "m"]),
        "c": (["x", "y"], ["l", "n"]),
        "d": (["x", "y", "z"], ["l", "m"]),
        "e": (["x", "y"], ["l", "m", "n"]),
    }
    for name, (features, labels) in tables.items():
        numbers = np.zeros((2, len(features))), np.eye(2, len(labels))
        save_file(Dataset(*numbers, features, labels), tmp_path / f"{name}.{ending}")
    shards = open_shards(str(tmp_path / f"*.{ending}"))
    for i, message in enumerate(["'y'", "'m'", "'z'", "'n'|3 labels"], 1):
        with pytest.raises(DataFormatError, match=rf"{'abcde'[i]}\.{ending}: .*({message})"):
            shards[i]


def test_a_file_without_names_has_the_columns_in_order(tmp_path):
    data = small()
    save_file(data, tmp_path / "0.npz")
    np.savez(tmp_path / "1.npz", X=data.X, Y=data.Y)
    np.testing.assert_array_equal(open_shards(tmp_path)[1].X, data.X)


@pytest.mark.parametrize("ending", ["csv", "arff", "svm", "parquet", "mat"])
def test_files_are_copied_when_parsed_twice(ending, tmp_path, monkeypatch):
    data = pieces(tmp_path, ending, [1, 1])
    files, parsed = "rbrl.datasets.shards.load_file", []
    monkeypatch.setattr(files, lambda path, **options: parsed.append(path.name) or load_file(path, **options))
    shards = open_shards(str(tmp_path / f"*.{ending}"))
    for _ in range(5):
        assert len(list(shards)) == 2
    assert sorted(parsed) == [f"0.{ending}"] * 2 + [f"1.{ending}"] * 2
    np.testing.assert_array_equal(dense(shards[1].X), data.X[4:8])
    folder = shards._copies.folder.name
    part = Dataset(data.X[:2], data.Y[:2], data.feature_names, data.label_names)
    save_file(part, tmp_path / f"1.{ending}")  # what has changed is parsed again
    assert len(dense(shards[1].X)) == 2
    del shards
    assert not shutil.os.path.exists(folder)


def test_one_warning_if_there_is_no_room_for_copies(tmp_path, monkeypatch):
    pieces(tmp_path, "csv", [1, 1])
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=100))
    shards = open_shards(tmp_path / "*.csv")
    list(shards)
    with pytest.warns(UserWarning, match=r"no room in .*0\.csv.*parsed in every pass.*write_shards") as said:
        passes = [list(shards) for _ in range(3)]
    assert [len(parts) for parts in passes] == [2, 2, 2]
    assert len(said) == 1
    assert open_shards(tmp_path / "*.csv", cache=False)._copies.cache is False


def test_shards_are_rewritten_with_their_names(tmp_path):
    data = pieces(tmp_path, "csv", [1, -1, 1])
    shards = write_shards(open_shards(tmp_path / "*.csv"), tmp_path / "new")
    assert_same(shards.read(0), data)


def test_writing_needs_little_memory(tmp_path):
    def parts():
        for _ in range(40):
            yield np.ones((1000, 50)), np.zeros((1000, 2), dtype=np.int8)

    write_shards((part for _, part in zip(range(1), parts())), tmp_path / "warm")
    tracemalloc.start()
    write_shards(parts(), tmp_path / "large", rows_per_shard=1500)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8e6, "all parts together are 16 MB"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_fit_of_reordered_shards_equals_a_fit_of_the_rows(ending, tmp_path):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    from rbrl import BRLClassifier

    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 4))
    Y = (X @ rng.standard_normal((4, 3)) > 0).astype(np.int8)
    names = np.array(list("abcd")), np.array(["l", "m", "n"])
    for i, (features, labels) in enumerate(
        [([0, 1, 2, 3], [0, 1, 2]), ([3, 1, 0, 2], [2, 0, 1]), ([2, 3, 0, 1], [1, 0, 2])]
    ):
        rows = slice(30 * i, 30 * i + 30)
        part = Dataset(X[rows][:, features], Y[rows][:, labels], names[0][features], names[1][labels])
        save_file(part, tmp_path / f"{i}.{ending}")
    model = BRLClassifier(tol=1e-6).fit(open_shards(str(tmp_path / f"*.{ending}")))
    expected = BRLClassifier(tol=1e-6).fit([(X, Y)])
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-2)
    assert (model.predict(X) == Y).mean() > 0.95


@pytest.mark.parametrize("where", ["{}", "{}/*.npz", "{}/part-*.npz", "{}/../s/*"])
def test_a_missing_or_cut_shard_is_found_when_the_folder_is_opened(where, tmp_path):
    folder = tmp_path / "s"
    shards = write_shards(small(), folder, rows_per_shard=6)
    where = where.format(folder)
    manifest = json.loads((folder / "shards.json").read_text())
    assert (manifest["finished"], manifest["n_shards"]) == (True, len(shards))
    assert [one["rows"] for one in manifest["files"].values()] == [len(X) for X, _ in shards]
    assert len(open_shards(where)) == len(shards)
    content = shards.paths[-1].read_bytes()
    shards.paths[-1].unlink()
    name = shards.paths[-1].name
    with pytest.raises(FileNotFoundError, match=rf"no such file: .*{name}, one of the {len(shards)} shards"):
        open_shards(where)
    shards.paths[-1].write_bytes(content[:-1])
    with pytest.raises(
        DataFormatError, match=rf"{name}: it has {len(content) - 1} bytes, and {len(content)} according"
    ):
        open_shards(where)
    shards.paths[-1].write_bytes(content)
    assert len(open_shards(where)) == len(shards)


def test_some_shards_or_shards_without_a_manifest_can_be_opened(tmp_path):
    shards = write_shards(small(), tmp_path, rows_per_shard=4)
    shards.paths[-1].unlink()
    assert len(open_shards(tmp_path / "part-0000[01].npz")) == 2
    assert len(open_shards(shards.paths[:2])) == 2
    (tmp_path / "shards.json").unlink()
    assert len(open_shards(tmp_path)) == len(shards) - 1, "folders of earlier versions have no manifest"
    (tmp_path / "shards.json").write_text("{}")
    with pytest.raises(DataFormatError, match="not a manifest of shards"):
        open_shards(tmp_path)


def test_an_interrupted_write_is_found(tmp_path):
    def parts():
        yield np.eye(3), np.eye(3)
        yield np.eye(3), np.eye(3)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_shards(parts(), tmp_path, rows_per_shard=3)
    assert (tmp_path / "part-00000.npz").is_file()
    with pytest.raises(DataFormatError, match="write_shards was stopped before the last shard"):
        open_shards(tmp_path)


def test_a_file_that_changes_during_a_fit_is_named(tmp_path):
    from rbrl import BRLClassifier

    shards = write_shards(small(n_samples=12), tmp_path, rows_per_shard=4)
    changed = shards.paths[1]

    class Changing(Shards):
        n_read = 0

        def read(self, i):
            dataset = super().read(i)
            self.n_read += self.paths[i] == changed
            if self.n_read == 2:
                np.savez(changed, X=dataset.X[:3], Y=dataset.Y[:3])
            return dataset

    with pytest.raises(DataFormatError, match=rf"{changed.name} changed during the fit: it had \d+ bytes"):
        BRLClassifier().fit(Changing(shards.paths))
    model = BRLClassifier().fit(Shards(shards.paths))
    assert model.n_samples_seen_ == 11, "another fit reads the new file"


@pytest.mark.parametrize("sparse_parts", [(0,), (1,), (0, 2)])
@pytest.mark.parametrize("in_files", [True, False])
def test_dense_and_sparse_parts_can_be_mixed(tmp_path, sparse_parts, in_files):
    from rbrl import RBRLClassifier

    data = small(n_samples=30)
    X, Y = dense(data.X), dense(data.Y)
    slices = [slice(10 * i, 10 * i + 10) for i in range(3)]
    parts = [(X[rows], Y[rows]) for rows in slices]
    mixed = [
        (sparse.csr_array(A), sparse.csr_array(B)) if i in sparse_parts else (A, B) for i, (A, B) in enumerate(parts)
    ]
    expected = RBRLClassifier(tol=1e-6).fit(parts)
    model = RBRLClassifier(tol=1e-6).fit(write_shards(iter(mixed), tmp_path, rows_per_shard=8) if in_files else mixed)
    # Two solutions of relative gap tol differ in scores by the bound of strong convexity.
    bound = 2 * np.sqrt(2 * 1e-6 * expected.objective_ / expected.ridge_)
    assert np.abs(model.coef_ - expected.coef_).max() <= bound
    np.testing.assert_array_equal(dense(model.predict(mixed)), dense(model.predict(X)))
