"""The demo takes the environment that is there, and parts of the long tests are all of them."""

import argparse
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
parse_part = runpy.run_path(str(ROOT / "tests/conftest.py"))["parse_part"]


def planned(*arguments):
    """Return the commands that a call of `make` would run."""
    if shutil.which("make") is None:
        pytest.skip("needs make")
    run = subprocess.run(["make", "-n", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stdout


def test_the_demo_uses_the_environment_of_the_tests_where_there_is_one(tmp_path):
    (tmp_path / ".ready").touch()
    commands = planned("demo", f"VENV={tmp_path}")
    assert f"{tmp_path}/bin/rbrl compare examples/demo.toml" in commands
    assert "environment.sh" not in commands


def test_the_demo_alone_needs_a_small_environment(tmp_path):
    assert ".venv-demo/bin/rbrl compare examples/demo.toml" in planned("demo", f"VENV={tmp_path / 'none'}")
    assert "environment.sh .venv-demo python3 newest demo" in planned("-B", "demo", f"VENV={tmp_path / 'none'}")


@pytest.mark.parametrize("n_parts", [1, 3, 20])
def test_the_parts_of_the_long_tests_are_all_of_them(n_parts):
    tests = list(range(50))
    parts = [tests[first::step] for first, step in (parse_part(f"{i}/{n_parts}") for i in range(7, 7 + n_parts))]
    assert sorted(test for part in parts for test in part) == tests


@pytest.mark.parametrize("text", ["3", "1/0", "-1/3", "a/b", ""])
def test_other_parts_are_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="must be I/N"):
        parse_part(text)
