"""Fixtures of the small comparison, and of rows that were made up."""

import copy

import pytest
from fake_rows import make_rows
from sklearn.datasets import make_multilabel_classification
from small_comparison import METHODS, PLAN

from rbrl.datasets import Dataset, save_file
from rbrl.experiments import Plan, Store, execute


@pytest.fixture
def rows():
    return make_rows()


@pytest.fixture
def table():
    """The plan, to be changed at will."""
    return copy.deepcopy(PLAN)


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """A folder with the data and the methods of the plan."""
    folder = tmp_path_factory.mktemp("plan")
    X, Y = make_multilabel_classification(90, 6, n_classes=4, random_state=0)
    save_file(Dataset(X, Y), folder / "mine.csv")
    (folder / "own.py").write_text(METHODS)
    (folder / "leaving.py").write_text("import sys\n\nsys.exit('bye')\n")
    return folder


@pytest.fixture
def plan(table, place):
    """The plan, checked."""
    return Plan.from_dict(table, folder=place)


@pytest.fixture(scope="session")
def expected(place, tmp_path_factory):
    """Rows of the plan, done in one go, in one process."""
    store = Store(tmp_path_factory.mktemp("expected"))
    summary = execute(Plan.from_dict(copy.deepcopy(PLAN), folder=place), store)
    assert (summary.n_done, summary.n_failed) == (9, 3)
    return store
