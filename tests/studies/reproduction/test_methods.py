"""The registry is what the page, the paper's plan and Table 2 say."""

import re
from pathlib import Path

import pytest

import rbrl
from rbrl.experiments import Plan
from rbrl.registry import METHODS
from studies.reproduction.methods import methods_page, paper_table, parameters_beside

ROOT = Path(__file__).resolve().parents[3]
IN_THE_PAPER = [method for method in METHODS if method.grids]


def test_the_page_is_what_the_registry_gives():
    page = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    assert page == methods_page(), "run: python -m studies.reproduction.methods > docs/methods.md"


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_can_be_imported_and_has_its_page(method):
    assert getattr(rbrl, method.estimator.__name__) is method.estimator
    assert not method.page or (ROOT / "docs" / "methods" / f"{method.page}.md").is_file()
    for grid in method.grids:
        assert set(grid) <= set(method.estimator().get_params())


def test_the_papers_plan_searches_the_grids_of_the_registry():
    plan = {
        method.name: method
        for method in Plan.from_toml(ROOT / "studies" / "reproduction" / "plans" / "paper.toml").methods
    }
    assert set(plan) == {method.name for method in IN_THE_PAPER}
    for method in IN_THE_PAPER:
        assert len(plan[method.name].grid) == len(method.grids)
        for written, grid in zip(plan[method.name].grid, method.grids):
            assert set(written) == set(grid)
            for name, values in grid.items():
                assert written[name] == pytest.approx(list(values)), (method.name, name)


def test_table_2_is_the_printed_one():
    frame = parameters_beside().frame.set_index("method")
    assert len(frame) == 9
    for method in frame.index:
        ours, printed = ([float(x) for x in re.findall(r"(?<![a-zλβ])\d[\d.e+-]*", text)] for text in frame.loc[method])
        assert ours[-1] == printed[-1], method
    assert len(paper_table().rows) == 10
