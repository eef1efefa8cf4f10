"""The catalogue agrees with the files, and `load` finds them."""

import numpy as np
import pytest
from scipy import sparse

from rbrl import datasets
from rbrl.datasets import CARDS
from rbrl.datasets.formats.arrays import Npz
from rbrl.exceptions import DataFormatError, DatasetNotFoundError

TABLE_1 = {  # the paper's printed figures
    "emotions": (593, 72, 6, 1.869, 0.311, "music", "kernel"),
    "image": (2000, 294, 5, 1.240, 0.248, "image", "kernel"),
    "scene": (2407, 294, 6, 1.074, 0.179, "image", "kernel"),
    "yeast": (2417, 103, 14, 4.237, 0.303, "biology", "kernel"),
    "enron": (1702, 1001, 53, 3.378, 0.064, "text", "linear"),
    "arts": (5000, 462, 26, 1.636, 0.063, "text", "linear"),
    "education": (5000, 550, 33, 1.461, 0.044, "text", "linear"),
    "recreation": (5000, 606, 22, 1.423, 0.065, "text", "linear"),
    "science": (5000, 743, 40, 1.451, 0.036, "text", "linear"),
    "business": (5000, 438, 30, 1.588, 0.053, "text", "linear"),
}


@pytest.mark.parametrize("name", CARDS)
def test_every_card_matches_its_file(name, data_home):
    card, data = CARDS[name], datasets.load(name, data_home)
    summary = data.summary()
    assert data.card is card
    assert summary["cardinality"] == pytest.approx(card.cardinality, abs=5.1e-5)
    assert summary["density"] == pytest.approx(card.density, abs=5.1e-5)
    assert sparse.issparse(data.X) == card.sparse
    assert data.X.dtype == np.float64
    assert data.Y.dtype == np.int8


def test_table_equals_the_papers_except_two_cardinalities():
    ours = datasets.table()
    assert list(ours.index) == list(TABLE_1)
    for name, printed in TABLE_1.items():
        row = ours.loc[name]
        assert tuple(row.iloc[[0, 1, 2, 5, 6]]) == (*printed[:3], *printed[5:])
        same = np.allclose(row[["cardinality", "density"]].astype(float), printed[3:5], atol=5.1e-4, rtol=0)
        assert same == (name != "image")
        assert bool(row["note"]) == (name in {"emotions", "image"})


def test_published_figures_are_the_papers():
    for card in (card for card in CARDS.values() if card.model):
        for key, value in card.published:
            assert value == TABLE_1[card.name][{"cardinality": 3, "density": 4}[key]]


def test_yeast_comes_without_download(monkeypatch):
    monkeypatch.delenv("RBRL_DATA", raising=False)
    data = datasets.load("yeast")
    assert (data.n_samples, data.n_features, data.n_labels) == (2417, 103, 14)
    np.testing.assert_allclose(np.linalg.norm(data.X, axis=1), 1, atol=1e-5)


def test_both_copies_of_yeast_give_the_same_splits(data_home):
    river, folder = datasets.load("yeast"), datasets.load("yeast", data_home)
    assert river.train_index is None
    assert len(folder.train_index) == 1500
    for seed in range(3):
        for ours, theirs in zip(river.split(seed), folder.split(seed)):
            np.testing.assert_array_equal(ours.X, theirs.X)
            np.testing.assert_array_equal(ours.Y, theirs.Y)


def test_provided_splits_keep_their_rows(data_home):
    raw, data = datasets.load_file(data_home / "emotions.npz"), datasets.load("emotions", data_home)
    for name in ("source", "rbrl"):
        for before, after in zip(raw.split(name), data.split(name)):
            np.testing.assert_array_equal(before.X, after.X)
            np.testing.assert_array_equal(before.Y, after.Y)


def test_duplicates_in_enron(data_home):
    summary = datasets.load("enron", data_home).summary()
    assert (summary["duplicate_rows"], summary["conflicting_duplicates"], summary["rows_without_features"]) == (
        141,
        93,
        8,
    )


def test_unknown_name_suggests_a_known_one():
    with pytest.raises(DatasetNotFoundError, match=r"'yeats'. Did you mean 'yeast'"):
        datasets.load("yeats")


def test_a_changed_value_is_refused(tmp_path):
    data = datasets.load("yeast")
    data.X[7, 3] += 1e-6
    Npz().write(data, tmp_path / "yeast.npz")
    with pytest.raises(DataFormatError, match=r"yeast.npz: the sizes are those of yeast but the content is not"):
        datasets.load("yeast", tmp_path)


def test_a_wrong_size_is_refused(tmp_path):
    data = datasets.load("yeast")
    Npz().write(datasets.Dataset(data.X[1:], data.Y[1:]), tmp_path / "yeast.npz")
    with pytest.raises(DataFormatError, match=r"this file has \(2416, 103, 14\)"):
        datasets.load("yeast", tmp_path)
