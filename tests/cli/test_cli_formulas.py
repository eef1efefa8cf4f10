"""Names in CSV files are text for a spreadsheet program, never formulas."""

import csv

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_multilabel_classification

from rbrl import RBRLClassifier, save
from rbrl._common.texts import FORMULA_STARTS, escape_formula
from rbrl.experiments.tables import Table, number, to_csv, word

FORMULA = "=cmd|' /C calc'!A0"


@pytest.fixture
def files(tmp_path):
    X, Y = make_multilabel_classification(n_samples=40, n_features=4, n_classes=3, random_state=0)
    model = RBRLClassifier(label_names=[FORMULA, "@SUM(1)", "sea"]).fit(X, Y)
    save(model, tmp_path / "m.rbrl")
    np.savetxt(tmp_path / "new.csv", X, delimiter=",", header="a,b,c,d", comments="")
    return tmp_path


@pytest.mark.parametrize("options", [["--write", "names"], ["--write", "scores"], ["--top", "2"], []], ids=str)
def test_predict_writes_no_formula(files, options):
    from rbrl.cli import main

    out = files / "out.csv"
    with pytest.raises(SystemExit) as end:
        main(["predict", str(files / "m.rbrl"), str(files / "new.csv"), "-o", str(out), *options])
    assert not end.value.code
    cells = [cell for row in csv.reader(out.open()) for cell in row]
    assert not [cell for cell in cells if cell.startswith(FORMULA_STARTS) and escape_formula(cell) != cell]
    assert any(cell.startswith(f"'{FORMULA}") for cell in cells)


def test_no_name_of_a_list_is_a_formula(files):
    """Programs that take the semicolon for a separator split the list of names."""
    from rbrl.cli import main

    with pytest.raises(SystemExit):
        main(
            ["predict", str(files / "m.rbrl"), str(files / "new.csv"), "-o", str(files / "out.csv"), "--write", "names"]
        )
    names = {name for row in csv.reader((files / "out.csv").open()) for cell in row for name in cell.split(";")}
    assert names - {"labels", ""} == {f"'{FORMULA}", "'@SUM(1)", "sea"}


def test_tables_hold_no_formula():
    frame = pd.DataFrame({"=dataset": [FORMULA], "loss": [-0.25]})
    table = Table("losses", "Losses", ("Data set", "Loss"), ((word(FORMULA), number(-0.25)),), frame)
    assert to_csv(table) == f"'=dataset,loss\n'{FORMULA},-0.25\n"


@pytest.mark.parametrize("number", ["-1.5", "+2", "-inf", "1e-3", "-1e5"])
def test_numbers_stay_numbers(number):
    assert escape_formula(number) == number
