"""`rbrl compare` and `rbrl report`."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

ARGUMENTS = ["--dataset", "yeast", "--method", "br", "--method", "ml-knn", "--splits", "2"]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The folder of one comparison for all tests of this file, and what it answered, once one of them has asked for it."""
    return SimpleNamespace(folder=tmp_path_factory.mktemp("comparison") / "run", answer=None)


@pytest.fixture
def run(rbrl, done, tmp_path):
    """Return the answer of a comparison, and a copy of its folder."""
    if done.answer is None:
        done.answer = rbrl("compare", *ARGUMENTS, "-o", done.folder)
    assert done.answer.code == 0, done.answer.err
    return done.answer, shutil.copytree(done.folder, tmp_path / "run")


def test_compare_ends_with_a_table_and_a_page(run):
    answer, folder = run
    assert "Hal ↓" in answer.out
    assert "Overall" in answer.out
    assert "4 runs done, 0 reused, 0 failed" in answer.err
    assert (folder / "report" / "report.html").is_file()


def test_one_message_that_one_data_set_is_not_tested(run):
    answer, folder = run
    assert "Friedman" not in answer.out
    assert (answer.out + answer.err).count(
        "Not tested. A test needs several data sets: splits of one data set share rows"
    ) == 1
    assert not (folder / "report" / "tables" / "pairs.csv").exists()


def test_two_data_sets_get_exact_tests_everywhere(rbrl, tmp_path):
    """Two data sets cannot tell two methods apart, whatever the results: full agreement is as likely as none."""
    rng = np.random.default_rng(0)
    for name in ("sea", "hill"):
        X = rng.normal(size=(60, 3))
        frame = pd.DataFrame(X, columns=["x", "y", "z"]).assign(a=(X[:, 0] > 0) * 1, b=(X[:, 1] > 0) * 1)
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    arguments = ["--dataset", tmp_path / "sea.csv", "--dataset", tmp_path / "hill.csv", "--labels", "a,b"]
    arguments += ["--method", "br", "--method", "ml-knn", "--splits", "1", "-o", tmp_path / "run"]
    answer = rbrl("compare", *arguments)
    assert answer.code == 0, answer.err
    assert "too few data sets" in answer.out
    assert "Rank-biserial" in answer.out
    assert "On 2 data sets the test gives 0.500 at least" in " ".join(answer.out.split())
    tables = json.loads(rbrl("compare", *arguments, "--json").out)["tables"]
    assert {row["p_from"] for row in tables["friedman"]} == {"exact"}
    assert all(row["p_value"] >= 0.5 for row in tables["friedman"])
    assert len(tables["pairs"]) == 6
    assert all({"rank_biserial", "median_difference", "p_holm"} <= set(row) for row in tables["pairs"])
    folder = tmp_path / "run" / "report"
    assert "Rank-biserial" in (folder / "tables" / "pairs.tex").read_text(encoding="utf-8")
    assert (folder / "tables" / "pairs.csv").is_file()
    assert "2 data sets are too few to test 2 methods" in (folder / "report.html").read_text(encoding="utf-8")
    assert not list((folder / "figures").glob("critical-difference*"))


def test_compare_again_reuses_everything(rbrl, run):
    answer = rbrl("compare", *ARGUMENTS, "-o", run[1], "--json")
    found = json.loads(answer.out)
    assert (found["n_done"], found["n_reused"]) == (0, 4)
    assert {"results", "average-ranks", "time"} <= set(found["tables"])


def test_report_writes_tables_and_figures(rbrl, run, tmp_path):
    answer = rbrl("report", run[1], "-o", tmp_path / "out", "--formats", "csv,tex", "--quiet")
    assert (answer.code, answer.out) == (0, "")
    assert (tmp_path / "out" / "tables" / "results.tex").is_file()
    assert (tmp_path / "out" / "figures" / "average-ranks.svg").is_file()
    assert "rbrl compare plan.toml" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_report_refuses_unknown_formats(rbrl, run):
    answer = rbrl("report", run[1], "--formats", "docx")
    assert answer.code == 2
    assert "Got docx instead" in answer.err


def test_a_failed_run_exits_with_one(rbrl, tmp_path):
    (tmp_path / "bad.py").write_text(
        "from sklearn.base import BaseEstimator, ClassifierMixin\n"
        "class Bad(ClassifierMixin, BaseEstimator):\n"
        "    def fit(self, X, y):\n        raise RuntimeError('on\\npurpose')\n",
        encoding="utf-8",
    )
    plan = 'datasets = ["yeast"]\n[splits]\nnumber = 1\n[methods.br]\n[methods.bad]\nuse = "bad.py:Bad"\n'
    (tmp_path / "plan.toml").write_text(plan, encoding="utf-8")
    answer = rbrl("compare", tmp_path / "plan.toml", "-o", tmp_path / "run", "--quiet")
    assert answer.code == 1, answer.err
    assert answer.err == (
        "rbrl: 1 of 2 runs failed. The first is yeast · bad · split 0: RuntimeError: on purpose. "
        "Correct the cause, and repeat the command with --retry-failed.\n"
    )
    assert "on\npurpose" in (tmp_path / "run" / "report" / "report.html").read_text(encoding="utf-8")
    found = json.loads(rbrl("compare", tmp_path / "plan.toml", "-o", tmp_path / "run", "--json").out)
    assert found["failures"] == [
        {"dataset": "yeast", "method": "bad", "split": 0, "error": "RuntimeError: on\npurpose"}
    ]


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A user's own file, in the folder where the command is typed."""
    monkeypatch.chdir(tmp_path)
    lines = [f"{i % 7},{i % 5},{int(i % 7 > 3)},{int(i % 5 > 2)}" for i in range(40)]
    (tmp_path / "mine.csv").write_text("\n".join(["width,height,sea,sand", *lines]) + "\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("labels", ["-2", "sea,sand"])
def test_own_file(rbrl, table, labels):
    answer = rbrl("compare", "-d", "mine.csv", "--labels", labels, "-m", "brl", "--splits", "1", "--json")
    assert json.loads(answer.out)["n_done"] == 1
    assert (table / "runs" / "comparison" / "report" / "report.html").is_file()


def test_undeclared_labels(rbrl, table):
    answer = rbrl("compare", "-d", "mine.csv", "-m", "brl")
    assert answer.code == 2
    assert "does not say which of its 4 columns are labels" in answer.err


def test_a_stopped_comparison_can_be_continued(rbrl, tmp_path, monkeypatch):
    def stop(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("rbrl.experiments.execute", stop)
    answer = rbrl("compare", *ARGUMENTS, "-o", tmp_path / "run")
    assert answer.code == 130
    assert answer.err == (
        f"rbrl: stopped; finished runs are kept in {tmp_path / 'run'}. Repeat the command to continue.\n"
    )


def test_a_folder_without_a_comparison_is_left_alone(rbrl, tmp_path):
    answer = rbrl("report", tmp_path)
    assert answer.code == 2
    assert "has no comparison in it; `rbrl compare` makes one" in answer.err
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written(rbrl, tmp_path):
    (tmp_path / "file").write_text("mine")
    answer = rbrl("compare", *ARGUMENTS, "-o", tmp_path / "file")
    assert answer.code == 2
    assert "cannot be written" in answer.err
    assert answer.err.count("\n") == 1


def test_a_part_of_a_plan_reuses_results(rbrl, tmp_path):
    plan = 'datasets = ["yeast"]\nsplits = { number = 2 }\n[methods.br]\n[methods.ml-knn]\n'
    (tmp_path / "plan.toml").write_text(plan, encoding="utf-8")
    whole, part = ["compare", tmp_path / "plan.toml", "-o", tmp_path / "run", "--json"], ["-m", "ml-knn", "-s", 1]
    found = json.loads(rbrl(*whole, *part).out)
    assert found["n_done"] == 1
    assert [row["method"] for row in found["tables"]["time"]] == ["ml-knn"]
    assert json.loads(rbrl(*whole).out)["n_reused"] == 1
    answer = rbrl(*whole, "--method", "rbrl")
    assert answer.code == 2
    assert "the plan has no method 'rbrl'." in answer.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Got no plan and no dataset and method."),
        (["--dataset", "yeast"], "Got no plan and no method."),
        (
            ["--dataset", "yeast", "--method", "br", "--labels", "3"],
            "--labels goes with a file; 'yeast' is not a file",
        ),
        (["--dataset", "yeast", "--method", "br", "--split", "10"], "a split must be a number from 0 to 9. Got 10"),
        (["no-plan.toml"], "no-plan.toml"),
        (["--dataset", "yeast", "--method", "nonsense"], "nonsense"),
    ],
)
def test_wrong_plans_exit_with_two(rbrl, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    answer = rbrl("compare", *arguments)
    assert answer.code == 2
    assert message in answer.err
    assert "Traceback" not in answer.err
