"""The rules in words and the rules in numbers are the same."""

import re
from pathlib import Path

import pytest

from rbrl.datasets import CARDS
from studies.comparison import rules
from studies.comparison.methods import METHODS

TEXT = (Path(rules.__file__).parent / "RULES.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "sentence",
    [
        f"All data sets of the catalogue, {len(CARDS)} of them",
        f"draws {rules.TRAIN_FRACTION * 100:.0f} % of the rows for training",
        f"There are {rules.SPLITS} splits",
        f"Of the training rows {rules.TRAIN_ROWS} are used, drawn at random, and of the test rows {rules.TEST_ROWS}",
        f"data sets with up to {rules.MANY_LABELS} labels",
        f"has {rules.BUDGET_SECONDS:.0f} seconds of processor time",
        f"each of {rules.FOLDS} folds",
        f"A cell that has used {rules.BUDGET_SECONDS * rules.HARD_LIMIT:.0f} seconds",
        "Every method has three points",
    ],
)
def test_numbers_of_the_rules(sentence):
    assert sentence in TEXT


def test_rules_name_no_method_and_no_package():
    """Who reads them cannot tell whose they are: scikit-learn alone is named, for its conventions."""
    words = {*re.findall(r"[A-Za-z-]+", TEXT.lower())}
    packages = {method.package for method in METHODS} - {"scikit-learn"}
    titles = {method.title.lower() for method in METHODS}
    assert not words & (packages | titles | {"rbrl", "our", "ours", "we", "us"})


def test_methods_have_three_points_and_start_with_the_default():
    assert {len(method.points) for method in METHODS} == {3}
    assert all(not method.points[0] for method in METHODS)


def test_every_data_set_of_the_catalogue_is_in_the_order():
    order = rules.cost_order()
    assert sorted(order) == sorted(CARDS)
    many = [CARDS[name].n_labels > rules.MANY_LABELS for name in order]
    assert many == sorted(many)
