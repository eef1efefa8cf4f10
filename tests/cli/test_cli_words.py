"""Files with words, ids, dates and a row index: `fit`, `predict` and `evaluate` read them alike."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from rbrl import load


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 3))
    status, calm = x[:, 0] > 0, x[:, 1] > 0.2
    return pd.DataFrame(
        {
            "id": [f"r{i}" for i in range(60)],
            "date": pd.date_range("2024-01-01", periods=60).strftime("%Y-%m-%d"),
            **{f"x{j}": x[:, j] for j in range(3)},
            "member": np.where(x[:, 2] > 0, "yes", "no"),
            "status": np.where(status, "active", "inactive"),
            "calm": np.where(calm, "ja", "nein"),
        }
    )


@pytest.fixture(params=["csv", "parquet"])
def path(frame, tmp_path, request):
    path = tmp_path / f"data.{request.param}"
    if request.param == "csv":
        frame.to_csv(path, index=False)
    else:
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    return path


LABELS = ["--labels", "status,calm"]
WORDS = ["--positive", "active", "--positive", "ja"]


def test_fit_names_the_option_for_words_of_labels(rbrl, path, tmp_path):
    answer = rbrl("fit", path, *LABELS, "--ignore", "id,date", "-o", tmp_path / "m")
    assert answer.code == 2
    assert "the label 'status' has the words 'active' and 'inactive', which may mean 1 or 0" in answer.err
    assert "with --positive 'active' or --positive 'inactive', or write 0 and 1" in answer.err
    assert not (tmp_path / "m").exists()


def test_fit_names_the_column_of_ids(rbrl, path, tmp_path):
    answer = rbrl("fit", path, *LABELS, *WORDS, "-o", tmp_path / "m")
    assert answer.code == 2
    assert (
        "the feature 'id' has 'r0', and features must be numbers: leave the column out with --ignore 'id'" in answer.err
    )
    answer = rbrl("fit", path, *LABELS, *WORDS, "--ignore", "id", "-o", tmp_path / "m")
    assert "leave the column out with --ignore 'date'" in answer.err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("options", [[], ["--standardise"], ["--calibrate", "sigmoid"]], ids=str)
def test_predict_and_evaluate_read_the_file_of_fit(rbrl, path, frame, tmp_path, options):
    ignored = ["--ignore", "id", "--ignore", "date"]
    answer = rbrl("fit", path, *LABELS, *WORDS, *ignored, "-o", tmp_path / "m", "--set", "ridge=0.01", *options)
    assert answer.code == 0, answer.err
    answer = rbrl("predict", tmp_path / "m", path, "--block-size", 7)
    assert answer.code == 0, answer.err
    lines = answer.out.splitlines()
    assert lines[0] == "status,calm"
    predicted = np.array([line.split(",") for line in lines[1:]], dtype=int)
    expected = frame[["status", "calm"]].isin(["active", "ja"]).to_numpy()
    assert (predicted == expected).mean() > 0.9, "1 stands for the positive words"
    answer = rbrl("evaluate", tmp_path / "m", path, "--metric", "hamming_loss", "--json")
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["hamming_loss"] == pytest.approx((predicted != expected).mean())
    assert list(load(tmp_path / "m").ignored_columns_) == ["id", "date"]


def test_predict_ignores_other_columns(rbrl, frame, tmp_path):
    frame.drop(columns=["id", "date"]).to_csv(tmp_path / "data.csv", index=False)
    frame.to_csv(tmp_path / "new.csv", index=False)
    assert rbrl("fit", tmp_path / "data.csv", *LABELS, *WORDS, "-o", tmp_path / "m").code == 0
    for command in ("predict", "evaluate"):
        answer = rbrl(command, tmp_path / "m", tmp_path / "new.csv")
        assert answer.code == 2
        assert "--ignore 'id'" in answer.err
        assert rbrl(command, tmp_path / "m", tmp_path / "new.csv", "--ignore", "id,date").code == 0


def test_a_numeric_column_that_the_model_does_not_know_is_named(rbrl, frame, tmp_path):
    frame.drop(columns=["id", "date"]).to_csv(tmp_path / "data.csv", index=False)
    frame.drop(columns=["id", "date"]).assign(age=3).to_csv(tmp_path / "new.csv", index=False)
    assert rbrl("fit", tmp_path / "data.csv", *LABELS, *WORDS, "-o", tmp_path / "m").code == 0
    for command in ("predict", "evaluate"):
        assert "leave it out with --ignore 'age'" in rbrl(command, tmp_path / "m", tmp_path / "new.csv").err
        assert rbrl(command, tmp_path / "m", tmp_path / "new.csv", "--ignore", "age").code == 0


def test_the_row_index_of_pandas_is_left_out_everywhere(rbrl, frame, tmp_path):
    rest = frame.drop(columns=["id", "date"])
    rest.to_csv(tmp_path / "data.csv")
    rest.to_csv(tmp_path / "plain.csv", index=False)
    answer = rbrl("fit", tmp_path / "data.csv", *LABELS, *WORDS, "-o", tmp_path / "m")
    assert answer.code == 0
    assert "its first column, which has no name, is taken for the row index of pandas and left out" in answer.err
    assert list(load(tmp_path / "m").feature_names_in_) == ["x0", "x1", "x2", "member"]
    outputs = [rbrl("predict", tmp_path / "m", tmp_path / name).out for name in ("data.csv", "plain.csv")]
    assert outputs[0] == outputs[1] != ""


def test_other_commands_take_the_options(rbrl, path, tmp_path):
    options = [*LABELS, *WORDS, "--ignore", "id,date"]
    assert "n labels                 2" in rbrl("data", "show", path, *options).out
    assert rbrl("data", "convert", path, tmp_path / "data.npz", *options).code == 0
    assert rbrl("data", "convert", path, tmp_path / "shards", "--rows-per-shard", 20, *options).code == 0
    answer = rbrl("compare", "-d", path, "-m", "br", "--splits", 2, "-o", tmp_path / "run", *options)
    assert answer.code == 0, answer.err
    plan = re.search(r"ignore = .*", (tmp_path / "run" / "report" / "report.html").read_text())
    assert plan
    assert "date" in plan[0]


def test_options_for_files_need_a_file(rbrl, path, tmp_path):
    for option in (["--ignore", "id"], ["--positive", "ja"], ["--labels", "-2"]):
        answer = rbrl("fit", "yeast", *option, "-o", tmp_path / "m")
        assert (answer.code, answer.err) == (2, f"rbrl: {option[0]} goes with a file; 'yeast' is not a file.\n")
        (tmp_path / "plan.toml").write_text('datasets = ["yeast"]\nmethods = ["br"]\n')
        answer = rbrl("compare", tmp_path / "plan.toml", *option)
        assert answer.code == 2
        assert "--labels, --ignore and --positive need --dataset FILE; with a plan, write them" in answer.err
