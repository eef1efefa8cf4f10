"""The paper's tables on the command line."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from published_rows import effort, published_rows

from rbrl.experiments import Plan, execute
from studies.reproduction.command import ACTIONS, Target
from studies.reproduction.recorded import facts, write_rows, write_table
from studies.text_files import read_text, write_text

ROOT = Path(__file__).resolve().parents[3]
F_F = {
    "hamming_loss": 13.1812,
    "subset_accuracy": 31.7855,
    "f1_example": 23.4032,
    "ranking_loss": 52.5736,
    "coverage": 46.6988,
    "average_precision": 51.9481,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Recorded results that are the paper's, but that BR has hard luck on equal terms."""
    folder = tmp_path_factory.mktemp("recorded") / "results"
    rows = published_rows()
    fair = published_rows(change=lambda dataset, metric, method: 0.3 if method == "BR" and metric == "coverage" else 0)
    for name, one in {"paper": rows, "paper-fair": fair}.items():
        write_rows(folder / f"{name}.csv.gz", one, facts())
        write_table(folder / f"{name}-tuning.csv.gz", effort(one), facts())
    return folder


def test_table_4_prints_every_rank(reproduce):
    lines = reproduce("table4").out.splitlines()
    overall = next(line.split() for line in lines if line.startswith("Overall"))
    assert overall[1:] == ["5.28", "6.27", "6.83", "7.13", "3.82", "5.25", "2.60", "5.18", "1.73"]
    assert "63 of 63 figures are those that the paper prints." in lines


def test_table_4_as_json(reproduce):
    records = json.loads(reproduce("table4", "--json").out)
    assert len(records) == 63
    assert all(abs(round(r["average_rank"], 2) - r["printed"]) < 1e-9 for r in records)


def test_table_5(reproduce):
    assert "31.7855" in reproduce("table5").out
    records = json.loads(reproduce("table5", "--json").out)
    assert {r["metric"]: r["F_F"] for r in records} == pytest.approx(F_F, abs=1e-3)
    assert all(r["critical_value"] == pytest.approx(2.0698, abs=5e-5) for r in records)
    assert all(r["critical_distance"] == pytest.approx(3.799, abs=1e-3) for r in records)


OTHERS = {1: "cardinality 1.240", 2: "Rank-SVMz", 3: "0.189 ± 0.008", 6: "BRL", 7: "5158"}


@pytest.mark.parametrize(("number", "text"), OTHERS.items())
def test_other_published_tables(reproduce, number, text):
    answer = reproduce(f"table{number}", "--published")
    assert answer.code == 0
    assert text in answer.out


RECORDED = {
    "table3": "All methods: 540 of 540 cells within a distance of 3.",
    "table4": "Ours, its rules",
    "table5": "31.7855",
    "table6": "What the ranking term changes",
    "table7": "5158",
    "observations": "Statistically better than MLFE",
    "fair": "Ours, equal terms",
    "cost": "RBRL's full protocol",
}


@pytest.mark.parametrize(("what", "text"), RECORDED.items())
def test_recorded_results_are_shown(reproduce, folder, what, text):
    answer = reproduce(what, "--results", folder)
    assert answer.code == 0, answer.err
    assert text in answer.out
    assert json.loads(reproduce(what, "--results", folder, "--json").out)


def test_another_plan_and_a_part_of_it(reproduce, folder):
    part = ["--plan", "paper-fair", "--dataset", "arts", "--method", "br", "--split", 1, "--json"]
    found = json.loads(reproduce("table3", "--results", folder, *part).out)
    known = [cell for cell in found["cells"] if cell["kind"] != "missing"]
    assert {(cell["dataset"], cell["method"], cell["n"]) for cell in known} == {("arts", "BR", 1)}
    assert [cell["metric"] for cell in known if cell["kind"] == "worse"] == ["coverage"]
    answer = reproduce("table3", "--results", folder, "--split", 9)
    assert answer.code == 2
    assert "There are no results of paper for 9." in answer.err


def test_a_part_that_a_change_has_no_results_of(reproduce, folder, tmp_path):
    folder = shutil.copytree(folder, tmp_path / "results")
    far = published_rows(change=lambda dataset, metric, method: 0.3 if method == "BR" and metric == "coverage" else 0)
    write_rows(folder / "paper.csv.gz", far, facts())
    write_rows(folder / "paper-unscaled.csv.gz", published_rows(datasets=["emotions"]), facts())
    for dataset, moved in {"emotions": "−1 +0", "arts": "–"}.items():
        part = ["--dataset", dataset, "--method", "br", "--split", 0]
        answer = reproduce("table3", "--results", folder, *part)
        assert answer.code == 0, answer.err
        (line,) = [line for line in answer.out.splitlines() if line.startswith("Dense features as they are ")]
        assert line.split("  ")[-1].strip() == moved
        assert "RBRL: " not in answer.out


def test_without_results_the_error_says_what_to_do(reproduce, tmp_path):
    answer = reproduce("table3", "--results", tmp_path / "none")
    file = tmp_path / "none" / "paper.csv.gz"
    line = f"reproduction: no such results: {file}; `python -m studies.reproduction export --run STORE` writes them\n"
    assert (answer.code, answer.err) == (2, line)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository with a small plan called paper, and its store in runs/paper."""
    plan = 'datasets = ["yeast"]\nsplits = { number = 2 }\ntuning = { folds = 2 }\n[methods.br]\ngrid.C = [0.01, 0.1]\n'
    folder = tmp_path / "studies" / "reproduction"
    (folder / "plans").mkdir(parents=True)
    (folder / "plans" / "paper.toml").write_text(plan + "[methods.ml-knn]\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("studies.reproduction.recorded.FOLDER", folder)
    monkeypatch.setattr("studies.reproduction.steps.PLANS", ("paper",))
    return tmp_path


def test_a_store_is_exported_checked_and_written_about(reproduce, project):
    execute(Plan.from_toml("studies/reproduction/plans/paper.toml"), "runs/paper")
    answer = reproduce("export")
    assert answer.code == 0, answer.err
    assert reproduce("table3", "--check", "--seed", 1).code == 0
    recorded = project / "studies" / "reproduction" / "results" / "paper.csv.gz"
    text = read_text(recorded)
    write_text(recorded, text.replace(",br,0,0.", ",br,0,0.9").replace(",ml-knn,0,0.", ",ml-knn,0,0.9"))
    codes = [reproduce("table3", "--check", "--seed", 1, "--split", 0).code]
    assert codes == [1]
    assert reproduce("page", "--html", "runs/all.html").code == 0
    page = (project / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert "4 of 4 runs" in page
    commands = (project / "docs" / "reproduction" / "commands.md").read_text(encoding="utf-8")
    assert "--dataset yeast --method br --split 0" in commands
    assert (project / "runs" / "all.html").is_file()


def test_all_runs_records_and_writes_and_does_nothing_twice(reproduce, project):
    answer = reproduce("all", "--quiet")
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    names = {path.name for path in (project / "studies" / "reproduction" / "results").iterdir()}
    assert names == {"paper.csv.gz", "paper-tuning.csv.gz", "criteria.csv.gz"}
    recorded = project / "studies" / "reproduction" / "results" / "paper.csv.gz"
    before = read_text(recorded)
    again = reproduce("all")
    assert "4 runs, 4 of them done already" in again.err
    assert "figure3 left out: There is no recorded result of rbrl on split 0 of emotions" in again.err
    after = read_text(recorded)
    assert after.partition("\n")[2] == before.partition("\n")[2], "all but the command"


def test_check_goes_with_table_3(reproduce):
    answer = reproduce("table4", "--check")
    assert (answer.code, answer.err) == (2, "reproduction: --check goes with table3. Got table4 instead.\n")


WRONG = [
    (["table9"], "table9"),
    (["table3", "--run", "no-run"], "reproduction: no such folder: no-run; `rbrl compare` makes one\n"),
    (["table3", "--plan", "none"], "no such results"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_calls_end_with_two_and_a_line(reproduce, arguments, message):
    answer = reproduce(*arguments)
    assert answer.code == 2
    assert message in answer.err
    assert "Traceback" not in answer.err


def test_help_has_every_target_and_examples(reproduce):
    answer = reproduce("--help")
    assert answer.code == 0
    assert "python -m studies.reproduction table3 --method rbrl --split 0" in answer.out
    assert set(ACTIONS) == set(Target)


def test_a_reader_that_has_seen_enough_is_no_error():
    command = f"{sys.executable} -m studies.reproduction table3 --published | head -1"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    options = {"cwd": ROOT, "env": environment, "capture_output": True, "text": True}
    run = subprocess.run(["bash", "-o", "pipefail", "-c", command], **options)
    assert (run.stdout, run.stderr) == ("Table 3: results\n", "")


def test_figures_name_their_files(reproduce, tmp_path):
    assert reproduce("figure1", "-o", tmp_path).out.count(".svg") == 1
    assert reproduce("figure2", "-o", tmp_path).out.count(".svg") == 6


def test_convergence_of_a_file(reproduce, tmp_path):
    from sklearn.datasets import make_multilabel_classification

    from rbrl.datasets import Dataset, save_file

    X, Y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=4, random_state=0)
    save_file(Dataset(X, Y, name="small"), tmp_path / "small.npz")
    answer = reproduce("figure3", "-o", tmp_path, "-d", tmp_path / "small.npz", "--json")
    assert [name.rpartition("/")[2] for name in json.loads(answer.out)] == ["figure3.svg", "figure3.png", "figure3.csv"]
