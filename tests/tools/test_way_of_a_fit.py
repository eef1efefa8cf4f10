"""The tracer on a package of two files, whose path is known."""

import importlib.util
import sys

import pytest

from way_of_a_fit import CallPath, as_markdown, trace

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
    path = trace(upper.enter, tmp_path / "toy")
    assert path.functions == {
        "upper.py": ["enter", "plain", "enter.<lambda>:12"],
        "lower.py": ["twice", "through_sorted"],
    }
    assert path.n_functions == 5


def test_a_call_counts_once_for_each_pair_of_functions(upper, tmp_path):
    path = trace(upper.enter, tmp_path / "toy")
    assert path.calls["lower.py", "upper.py"] == {("twice", "plain"), ("through_sorted", "enter.<lambda>:12")}
    assert path.mutual_pairs() == [("lower.py", "upper.py")]
    pair = ("upper.py", "lower.py")
    assert trace(upper.again, tmp_path / "toy").calls[pair] - path.calls[pair] == {("again", "twice")}


def test_files_that_call_in_one_direction_are_no_mutual_pair(upper, tmp_path):
    lower = sys.modules["lower"]
    assert trace(lambda: upper.plain(lower.twice(1, abs)), tmp_path / "toy").mutual_pairs() == []


def test_bodies_of_classes_are_no_functions(upper, tmp_path):
    assert trace(upper.alone, tmp_path / "toy").functions == {"upper.py": ["alone", "plain"]}


def test_files_elsewhere_are_not_passed(upper, tmp_path):
    assert trace(upper.enter, tmp_path / "elsewhere").functions == {}


def test_the_profile_function_of_before_is_back(upper, tmp_path):
    before = sys.getprofile()
    with pytest.raises(ZeroDivisionError):
        trace(lambda: 1 / 0, tmp_path)
    assert sys.getprofile() is before


def test_complaints_name_each_bound():
    path = CallPath({"a.py": [f"f{i}" for i in range(110)]})
    assert path.complaints(110) == []
    assert path.complaints(None) == []
    path.functions["b.py"] = ["g"]
    path.calls["a.py", "b.py"].add(("f0", "g"))
    path.calls["b.py", "a.py"].add(("g", "f1"))
    assert path.complaints(110) == ["111 functions, more than 110", "a.py and b.py call each other"]


def test_the_table_has_a_row_for_each_file_and_each_direction_of_a_pair(upper, tmp_path):
    table = as_markdown({"linear": trace(upper.enter, tmp_path / "toy")})
    assert "- linear: 5 functions (at most 110) in 2 files, 1 mutual pairs (none allowed)" in table
    assert "| lower.py | 2 | `twice`, `through_sorted` |" in table
    assert "| lower.py | upper.py | `through_sorted` → `enter.<lambda>:12`, `twice` → `plain` |" in table
