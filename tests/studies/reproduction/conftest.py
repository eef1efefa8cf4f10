"""Run the command in this process."""

from collections import namedtuple

import pytest

from studies.reproduction.command import main

Answer = namedtuple("Answer", "code out err")


@pytest.fixture
def reproduce(capsys, monkeypatch):
    """Call `python -m studies.reproduction` with arguments; return its exit code and what it wrote."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments):
        try:
            main([str(argument) for argument in arguments])
            code = 0
        except SystemExit as end:
            code = end.code or 0
        return Answer(code, *capsys.readouterr())

    return run
