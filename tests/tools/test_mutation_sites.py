"""Mutants of small sources, and the draw."""

import ast

import pytest

from mutation_sites import draw, mutants_of


def mutated(source):
    return {mutant.mutated for mutant in mutants_of(source, "a.py")}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a < b", {"a <= b", "a >= b"}),
        ("a == b != c", {"a != b != c", "a == b == c"}),
        ("a is  not b", {"a is b"}),
        ("a not in b", {"a in b"}),
        ("(a) + (b)", {"(a) - (b)"}),
        ("x / a ** b", {"x * a ** b", "x / (a * b)"}),
        ("a // b", {"a / b"}),
        ("a & b", {"(a | b)"}),
        ("a @ b", set()),
        ("-a", {"a"}),
        ("not a", {"a"}),
        ("a and b and c", {"(a or b or c)"}),
        ("b if a else c", {"b if not (a) else c"}),
        ("0", {"1"}),
        ("1.0", {"0.0"}),
        ("7", {"8", "6"}),
        ("0.5", {"1.5", "(-0.5)"}),
        ("True", {"False"}),
        ("None", set()),
        ("'text'", set()),
        ("'text' + a", set()),
        ("f'{a + 1}'", set()),
        ("np.max(a)", {"np.min(a)"}),
        ("a.argmin()", {"a.argmax()"}),
        ("max", set()),
        ("'é' < a", {"'é' <= a", "'é' >= a"}),
    ],
)
def test_an_expression(line, expected):
    assert mutated(f"x = {line}\n") == {f"x = {text}" for text in expected}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a += b", {"pass", "a -= b"}),
        ("a @= b", {"pass"}),
        ("f(a)", {"pass"}),
        ("if a: b", {"if not (a): b"}),
        ("while a < b: c", {"while a <= b: c", "while a >= b: c"}),
        ("def f(a: 1 = 2) -> 3:\n    return a", {"def f(a: 1 = 3) -> 3:", "def f(a: 1 = 1) -> 3:", "return None"}),
        ("def f():\n    return None", set()),
        ("a: int | None = b", set()),
    ],
)
def test_a_statement(source, expected):
    assert mutated(f"{source}\n") == expected


@pytest.mark.parametrize(
    "source",
    [
        '"""Text with 1 + 1."""',
        "raise ValueError(f'{a} of {b + 1}')",
        "warnings.warn(f(1))",
        "print(a + 1)",
        "if self.verbose > 1:\n    f(a)",
        "if TYPE_CHECKING:\n    import a",
        "def __repr__(self):\n    return a + 1",
        "@overload\ndef f(a=1): ...",
        "@cache(maxsize=1)\ndef f(): ...",
        "__all__ = [1]",
        "class A(f(1)):\n    pass",
    ],
)
def test_left_alone(source):
    assert mutated(f"{source}\n") == set()


def test_every_mutant_parses_and_differs():
    source = (
        "def f(a, b):\n    # a < b\n    return (\n        a  # not +\n        + b\n    ) if a <= 1 or not b else -2\n"
    )
    found = mutants_of(source, "a.py")
    changed = [mutant.apply(source) for mutant in found]
    assert len(set(changed)) == len(found) == len({mutant.key for mutant in found})
    for text in changed:
        assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(source))


def test_lines_are_those_of_the_statement_without_its_body():
    source = "a = 2\ndef f():\n    if (\n        b\n        < c\n    ):\n        g = b + c\n"
    places = {(m.kind, m.line, m.first, m.last, m.in_function) for m in mutants_of(source, "a.py")}
    assert places == {
        ("constant", 1, 1, 1, False),
        ("comparison", 5, 3, 6, True),
        ("arithmetic", 7, 7, 7, True),
    }


def packages():
    return {name: mutants_of("x = a + b\n" * size, f"{name}.py") for name, size in [("a", 60), ("b", 30), ("c", 10)]}


def test_a_draw_is_in_proportion_and_repeats():
    drawn = draw(packages(), 20, seed=0)
    assert {name: len(found) for name, found in drawn.items()} == {"a": 12, "b": 6, "c": 2}
    assert drawn == draw(packages(), 20, seed=0)
    assert drawn != draw(packages(), 20, seed=1)


def test_a_larger_draw_goes_on_from_a_smaller_one():
    small, large = draw(packages(), 20, seed=0), draw(packages(), 40, seed=0)
    assert all(large[name][: len(found)] == found for name, found in small.items())


@pytest.mark.parametrize("count", [1, 7, 33, 100, 1000])
def test_a_draw_has_its_size(count):
    assert sum(map(len, draw(packages(), count, seed=0).values())) == min(count, 100)


def test_nothing_to_draw_from():
    assert draw({"a": []}, 5, seed=0) == {}
