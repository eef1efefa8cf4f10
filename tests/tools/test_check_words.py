"""The check of docstrings and constants."""

from check_words import check, main

WRONG = '''"""Of rows."""
LIMIT = 3

def rows(X):
    """What has a label.

    Parameters
    ----------
    X : array
        That of the data.
    """
'''
RIGHT = '''"""Rows with labels."""
LIMIT = 1e-3

def find_rows(X):
    """Return the rows that have a label.

    Parameters
    ----------
    X : array
        Features of the rows.
    """
'''


def test_wrong_openers_are_named_with_their_place(tmp_path):
    (tmp_path / "wrong.py").write_text(WRONG)
    module, function, description = check([tmp_path])
    assert f"{tmp_path}/wrong.py:1: the docstring of module" in module
    assert f"{tmp_path}/wrong.py:4: the docstring of rows" in function
    assert "a description opens with 'That of the data.'" in description


def test_a_constant_with_two_values_is_named_with_both(tmp_path):
    (tmp_path / "a.py").write_text("LIMIT = 3\nNAMES = ('a', 'b')\n")
    (tmp_path / "b.py").write_text("LIMIT = 1e-3\nNAMES = ('c',)\n")
    assert check([tmp_path]) == [f"LIMIT must have one value. Got 3 at {tmp_path}/a.py:1, 0.001 at {tmp_path}/b.py:1."]


def test_the_exit_code_tells_whether_there_are_complaints(tmp_path, capsys):
    (tmp_path / "right.py").write_text(RIGHT)
    assert main([tmp_path]) == 0
    (tmp_path / "wrong.py").write_text(WRONG)
    assert main([tmp_path]) == 1
    assert "LIMIT must have one value" in capsys.readouterr().out
