"""Help is quick and complete, with examples; wrong calls exit with 2 and print a line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
COMMANDS = ["compare", "report", "fit", "predict", "evaluate", "info"]
DATA = [["data", name] for name in ("list", "show", "fetch", "convert")]


@pytest.mark.parametrize("command", [[name] for name in COMMANDS] + DATA, ids=" ".join)
def test_every_command_has_help_with_an_example(rbrl, command):
    answer = rbrl(*command, "--help")
    assert answer.code == 0
    assert f"rbrl {' '.join(command)} " in answer.out.replace("\n", " ") or "rbrl data list" in answer.out
    assert "bool" not in answer.out, "a flag takes no value"


def test_help_lists_the_commands(rbrl):
    answer = rbrl("--help")
    assert all(name in answer.out for name in [*COMMANDS, "data", "--install-completion"])


def test_version(rbrl):
    from rbrl import __version__, info

    assert rbrl("--version").out == f"rbrl {__version__} (core: {info()['core']})\n"


def test_info(rbrl):
    from rbrl import info

    found = info()
    assert json.loads(rbrl("info", "--json").out) == found
    lines = dict(line.split(maxsplit=1) for line in rbrl("info").out.splitlines())
    assert lines == found
    assert {"rbrl", "core", "python", "platform", "cores", "blas", "numpy", "extras"} <= set(found)
    assert "cli" in found["extras"].split(", ")


def test_completion():
    """Check the script that --install-completion writes, and a completion."""
    script = complete(_RBRL_COMPLETE="source_bash")
    assert script.returncode == 0
    assert "_RBRL_COMPLETE=complete_bash" in script.stdout
    answer = complete(_RBRL_COMPLETE="complete_bash", COMP_WORDS="rbrl fit ye", COMP_CWORD="2")
    assert answer.stdout.split() == ["yeast"], answer.stderr


def complete(**environment):
    main = "import sys; sys.argv = ['rbrl']; import rbrl.cli; rbrl.cli.main()"
    return python("-c", main, **environment)


def python(*arguments, **environment):
    environment = os.environ | {"PYTHONPATH": str(SRC)} | environment
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=120)


def test_help_imports_nothing_heavy():
    """Help must be quick on any machine."""
    heavy = [
        "numpy",
        "scipy",
        "sklearn",
        "pandas",
        "matplotlib",
        "jinja2",
        "joblib",
        "skops",
        "requests",
        "platformdirs",
    ]
    after = f"import atexit, sys; atexit.register(lambda: print([name for name in {heavy} if name in sys.modules]))"
    answer = python("-c", f"{after}; import rbrl.cli; rbrl.cli.main(['--help'])")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines()[-1] == "[]"


def test_tables_import_only_what_they_need():
    """A table in the terminal waits for neither matplotlib nor Jinja2."""
    heavy = ["matplotlib", "jinja2"]
    after = f"import atexit, sys; atexit.register(lambda: print([name for name in {heavy} if name in sys.modules]))"
    answer = python("-c", f"{after}; import rbrl.cli; rbrl.cli.main(['data', 'list'])")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines()[-1] == "[]"


def test_reading_a_store_needs_no_methods(tmp_path):
    code = "import sys; from rbrl.experiments import Store; Store(sys.argv[1]).rows()"
    answer = python("-c", f"{code}; print([name for name in ('sklearn',) if name in sys.modules])", str(tmp_path))
    assert answer.stdout.strip() == "[]", answer.stderr


def test_importing_the_package_is_light_and_names_are_complete():
    code = (
        "import sys, rbrl; light = 'numpy' not in sys.modules; "
        "assert set(rbrl.__all__) <= set(dir(rbrl)); [getattr(rbrl, name) for name in rbrl.__all__]; print(light)"
    )
    assert python("-c", code).stdout.strip() == "True"


def test_an_unknown_attribute_is_an_attribute_error():
    import rbrl

    with pytest.raises(AttributeError, match="nonsense"):
        rbrl.nonsense  # noqa: B018


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "nonsense"),
        (["reproduce", "table3"], "reproduce"),
        (["data", "show", "yeats"], "Did you mean 'yeast'?"),
        (["data", "show", "no/such.csv"], "no such file: no/such.csv"),
        (["data", "show", "yeast", "--labels", "3"], "--labels goes with a file"),
        (["fit", "yeast", "-o", "/no/such/folder/m"], "no such folder: /no/such/folder"),
        (["fit", "yeast", "-o", "m", "--method", "svm"], "Got 'svm' instead"),
        (["fit", "yeast", "-o", "m", "--set", "ridge"], "Got 'ridge' instead"),
        (["fit", "yeast", "-o", "m", "--set", "rigde=1"], "Got rigde instead"),
        (["predict", "no-model", "yeast"], "no such model file: no-model"),
        (["evaluate", "no-model", "yeast", "--metric", "auc"], "Got 'auc' instead"),
        (["report", "no-run"], "no such folder: no-run"),
    ],
)
def test_wrong_calls_exit_with_two_and_a_line(rbrl, arguments, message):
    answer = rbrl(*arguments)
    assert answer.code == 2
    assert message in answer.err
    assert "Traceback" not in answer.err
    if answer.err.startswith("rbrl:"):
        assert answer.err.count("\n") == 1


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m rbrl.cli data list | head -1"
    environment = os.environ | {"PYTHONPATH": str(SRC)}
    run = subprocess.run(["bash", "-o", "pipefail", "-c", command], env=environment, capture_output=True, text=True)
    assert run.stderr == ""
    assert run.stdout == "Data sets\n"


def test_messages_use_shell_terms():
    from rbrl import registry  # noqa: F401 - names of methods are known after this import
    from rbrl.cli.app import _use_shell_terms

    assert _use_shell_terms("MLkNN failed: pass labels=-2 or first_label=1") == (
        "ml-knn failed: pass --labels -2 or --label-base 1"
    )
    assert _use_shell_terms("with sklearn.preprocessing.StandardScaler.") == "with --standardise."
    assert _use_shell_terms("a column RBRL, n_labels=3") == "a column RBRL, n_labels=3"


def test_options_for_files_have_their_own_section(rbrl):
    out = rbrl("fit", "--help").out
    own = out.partition("Options for a data file")[2]
    assert all(name in own for name in ("--labels", "--positive", "--ignore", "--index-base", "--label-base"))
    assert "--method" not in own


def test_equal_warnings_of_one_command_are_shown_once(rbrl, tmp_path):
    options = ["--set", "max_iter=1", "--calibrate", "sigmoid"]
    answer = rbrl("fit", "yeast", "-o", tmp_path / "m", *options)
    assert answer.code == 0, answer.err
    shown, fitted, count = answer.err.splitlines()
    assert shown.startswith("rbrl: The quasi-Newton solver stopped after 1 iterations (max_iter=1)")
    assert "m: rbrl on 2417 samples" in fitted
    # A fit to all rows, and one without each of the five folds.
    assert count.startswith("rbrl: 6 times in all, perhaps with other numbers: The quasi-Newton solver stopped")
