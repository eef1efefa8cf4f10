"""The tracer on a package of two files, whose way is known."""

import importlib.util
import sys

import pytest

from way_of_a_fit import MOST_FILES, MOST_FUNCTIONS, Way, as_markdown, trace

UPPER = """
from lower import twice, through_sorted

def plain(x):
    return x + 1

def other(x):
    return x + 2

def enter():
    values = [twice(x, plain) for x in range(3)]
    return max(through_sorted(values, lambda x: -x)) + sum(twice(x, plain) for x in values)

def again():
    return enter() + twice(1, other)

def alone():
    class Inner:
        value = plain(1)
    return Inner.value
"""
LOWER = """
def twice(x, call):
    return call(call(x))

def through_sorted(values, key):
    return sorted(values, key=key)
"""


@pytest.fixture
def upper(tmp_path, monkeypatch):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "lower.py").write_text(LOWER)
    (tmp_path / "toy" / "upper.py").write_text(UPPER)
    monkeypatch.syspath_prepend(tmp_path / "toy")
    spec = importlib.util.spec_from_file_location("upper", tmp_path / "toy" / "upper.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("lower")


def test_functions_in_the_order_of_first_call(upper, tmp_path):
    way = trace(upper.enter, tmp_path / "toy")
    assert way.functions == {
        "upper.py": ["enter", "plain", "enter.<lambda>:12"],
        "lower.py": ["twice", "through_sorted"],
    }
    assert way.n_functions == 5


def test_a_jump_back_counts_once_for_each_pair_of_functions(upper, tmp_path):
    way = trace(upper.enter, tmp_path / "toy")
    pair = ("lower.py", "upper.py")
    assert way.jumps_back == {pair: {("twice", "plain"), ("through_sorted", "enter.<lambda>:12")}}
    assert trace(upper.again, tmp_path / "toy").jumps_back[pair] - way.jumps_back[pair] == {("twice", "other")}


def test_a_call_into_a_file_that_is_not_below_is_no_jump_back(upper, tmp_path):
    sys_lower = sys.modules["lower"]
    assert not trace(lambda: sys_lower.twice(1, upper.plain), tmp_path / "toy").jumps_back


def test_bodies_of_classes_are_no_functions(upper, tmp_path):
    assert trace(upper.alone, tmp_path / "toy").functions == {"upper.py": ["alone", "plain"]}


def test_files_elsewhere_are_not_passed(upper, tmp_path):
    assert trace(upper.enter, tmp_path / "elsewhere").functions == {}


def test_the_profile_function_of_before_is_back(upper, tmp_path):
    before = sys.getprofile()
    with pytest.raises(ZeroDivisionError):
        trace(lambda: 1 / 0, tmp_path)
    assert sys.getprofile() is before


def test_complaints_name_each_bar():
    way = Way({f"{i}.py": ["f"] for i in range(MOST_FILES)})
    assert way.complaints() == []
    way.functions["one more.py"] = [f"f{i}" for i in range(MOST_FUNCTIONS)]
    way.jumps_back["b.py", "a.py"] = {("f", "g"), ("f", "h")}
    way.jumps_back["c.py", "a.py"] = {("f", "g")}
    files, functions, jumps = way.complaints()
    assert "26 files" in files
    assert f"{MOST_FUNCTIONS + 25} functions" in functions
    assert "b.py jumps back into a.py by 2 calls" in jumps


def test_the_table_has_a_row_for_each_file_and_each_pair(upper, tmp_path):
    table = as_markdown(trace(upper.enter, tmp_path / "toy"))
    assert "2 files (at most 25), 5 functions (at most 150), 2 jumps back in 1 pairs of files, 1 of them" in table
    assert "| lower.py | 2 | `twice`, `through_sorted` |" in table
    assert "| lower.py | upper.py | 2 | " in table
