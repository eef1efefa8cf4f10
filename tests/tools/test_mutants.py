"""Order of the tests, the file of results, the summary, and a mutant judged from beginning to end."""

import shutil
from pathlib import Path
from queue import SimpleQueue

import pytest

pytest.importorskip("coverage")

from covering_tests import TimedTest, files_of_tests, in_order, limited, map_tests
from mutants import Judge, Outcome, Results, equivalents, outdated, summary, to_judge
from mutation_sites import mutants_of
from repository_copy import Copy, digest, failed_test

SOURCE = """\
LIMIT = 3


def small(x):
    return x < LIMIT


def unused(x):
    return x + 1
"""
TESTS = """\
import pytest
from toy import small


@pytest.fixture(scope="module")
def found():
    return [small(x) for x in range(5)]


STATE = []


def test_number():
    STATE.append(1)
    assert sum([True]) == 1


def test_after_another():
    assert STATE
    assert not small(9)


@pytest.mark.parametrize("x", [0, 1])
def test_small(x):
    assert small(x)


def test_all(found):
    assert sum(found) == 3
"""
FILES = {
    "pyproject.toml": b"[tool.pytest.ini_options]\npythonpath = ['src']\n",
    "src/toy.py": SOURCE.encode(),
    "tests/test_toy.py": TESTS.encode(),
}


def names(tests):
    return [test.name for test in tests]


def test_order_is_nearness_then_cases_in_turn_then_seconds():
    given = [
        TimedTest("tests/other/test_far.py::test_f", 0.0, 1),
        TimedTest("tests/solvers/test_apg.py::test_slow", 9.0, 1),
        TimedTest("tests/solvers/test_start.py::test_s", 0.0, 9),
        TimedTest("tests/solvers/test_apg.py::test_c[0]", 0.1, 9),
        TimedTest("tests/solvers/test_apg.py::test_c[1]", 0.1, 8),
    ]
    ordered = names(in_order(given, "solvers", "apg"))
    assert [name.split("::")[1] for name in ordered] == ["test_c[1]", "test_slow", "test_c[0]", "test_s", "test_f"]


def test_limits_leave_at_least_one():
    tests = [TimedTest(str(i), seconds, 1) for i, seconds in enumerate([5.0, 1.0, 9.0, 1.0])]
    assert names(limited(tests, 4, 8)) == ["0", "1", "3"]
    assert names(limited(tests, 1, 100)) == ["0"]
    assert names(limited(tests, 4, 0.5)) == ["0"]


def test_name_of_the_failed_test():
    printed = "x\nFAILED tests/a.py::f[a - b] - assert 1 == 2\n"
    assert failed_test(printed, ["tests/a.py::f[a", "tests/a.py::f[a - b]"]) == "tests/a.py::f[a - b]"
    assert failed_test("ERROR tests/a.py - ImportError", ["tests/a.py::f"]) == ""


def test_files_of_tests_below_a_path():
    files = ["tests/tools/test_mutants.py", "tests/tools/helper.py", "tests/test_docs.py"]
    root = Path(__file__).parents[2]
    assert files_of_tests(files, [root / "tests" / "tools"]) == files[:1]
    assert files_of_tests(files, [root / "tests" / "test_docs.py"]) == files[2:]


def test_results_are_appended_and_read_back(tmp_path):
    mutant, other = mutants_of("x = a + b < c\n", "a.py")[:2]
    results = Results(tmp_path / "new" / "results.csv", "this")
    assert results.read() == {}
    results.append("p", mutant, Outcome("survived", 2, 3, 1.0))
    results.append("p", mutant, Outcome("killed", 2, 3, 1.0, "test"))
    Results(results.path, "another source").append("p", other, Outcome("killed"))
    assert {key: line["status"] for key, line in results.read().items()} == {mutant.key: "killed"}


@pytest.mark.parametrize(
    ("status", "again", "expected"),
    [
        (None, False, True),
        ("uncovered", False, True),
        ("survived", False, False),
        ("survived", True, True),
        ("killed", True, False),
        ("timed out", True, False),
    ],
)
def test_what_is_left_to_judge(status, again, expected):
    assert to_judge(None if status is None else {"status": status}, again) is expected


def test_summary_shows_equivalent_mutants_apart(tmp_path):
    found = mutants_of("x = a + b < c\n", "a.py")
    results = Results(tmp_path / "results.csv", "this")
    for mutant, status in zip(found, ["killed", "survived", "timed out"]):
        results.append("p", mutant, Outcome(status, 1, 4))
    text = summary({"p": found}, results.read(), {})
    assert "| p | 3 | 2 | 67% |" in text
    assert f"a.py:1  x = a + b < c  ->  {found[1].mutated}\n    survived, 1 of 4 tests run" in text
    listed = tmp_path / "equivalent.toml"
    listed.write_text(
        f'[[mutant]]\nfile = "a.py"\noriginal = "x = a + b  < c"\nmutated = "{found[1].mutated}"\nreason = "no c"\n'
    )
    reasons = equivalents(listed)
    text = summary({"p": found}, results.read(), reasons)
    assert "| all | 2 | 2 | 100% |" in text
    assert "Survivors" not in text
    assert "Equivalent, not counted: 1" in text
    assert outdated(reasons, {"a.py": b"x = a + b < c\n"}) == []
    assert outdated(reasons, {"a.py": b"x = 1\n"}) == list(reasons)


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """A copy of a small repository, the tests that pass its lines, and the store of these."""
    folder = tmp_path_factory.mktemp("toy")
    copies = SimpleQueue()
    copies.put(Copy(folder / "copy", FILES))
    maps = map_tests(FILES, ["tests/test_toy.py"], "src", folder / "store", copies, 1)
    return Judge(maps, 40, 60), copies.get(), folder / "store"


def judge(judged, mutated):
    mutant = next(mutant for mutant in mutants_of(SOURCE, "src/toy.py") if mutant.mutated == mutated)
    outcome = judged[0].judge(judged[1], "toy", mutant)
    assert (judged[1].folder / "src" / "toy.py").read_text() == SOURCE
    return outcome


def test_which_tests_pass_a_line(judged):
    (covering,) = judged[0].maps
    expected = {"test_after_another", "test_small[0]", "test_small[1]", "test_all"}
    assert {name.split("::")[1] for name in names(covering.covering("src/toy.py", 5, 5))} == expected
    assert covering.covering("src/toy.py", 9, 9) == []
    assert len(covering.covering("src/toy.py")) == 4


def test_what_was_recorded_is_not_recorded_again(judged):
    copies = SimpleQueue()  # an empty one would be waited for
    assert len(map_tests(FILES, ["tests/test_toy.py"], "src", judged[2], copies, 1)) == 1


def test_a_change_is_killed_by_a_test_that_can_be_believed(judged):
    outcome = judge(judged, "return x >= LIMIT")
    assert (outcome.status, outcome.tests_run, outcome.tests_covering) == ("killed", 3, 4)
    assert outcome.killed_by == "tests/test_toy.py::test_all"
    assert judged[0].unsound == {"tests/test_toy.py::test_after_another"}


def test_a_line_that_runs_at_import_belongs_to_the_tests_of_its_file(judged):
    assert judge(judged, "LIMIT = 4").status == "killed"


def test_a_line_without_tests(judged):
    assert judge(judged, "return x - 1") == Outcome("uncovered")


def test_a_copy_is_made_equal_again(tmp_path):
    copy = Copy(tmp_path / "copy", FILES)
    (copy.folder / "src" / "toy.py").write_text("broken")
    (copy.folder / "src" / "moved.py").write_text("")
    shutil.rmtree(copy.folder / "tests")
    copy.restore()
    assert {p.relative_to(copy.folder).as_posix() for p in copy.folder.rglob("*.*") if p.is_file()} == set(FILES)
    assert (copy.folder / "src" / "toy.py").read_text() == SOURCE


def test_digest_depends_on_names_and_content():
    assert digest({"a": b"1"}) == digest({"a": b"1"})
    assert len({digest({"a": b"1"}), digest({"b": b"1"}), digest({"a": b"2"}), digest({"a": b"1", "b": b""})}) == 4
