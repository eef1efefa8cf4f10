"""Every example of the gallery has the form that the gallery needs, runs, draws, and says what its text promises."""

import ast
import importlib
import inspect
import io
import tempfile

import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure

import gallery

# The packages of extras that may be missing.
EXTRAS = ("onnxruntime", "torch")
LONGEST = 120  # lines
# What an example must have printed for its text to be true.
SAYS = {
    "certificate": [
        f"{solver}: the certified gap was never below the true distance: True" for solver in ("auto", "apg")
    ],
    "comparison": ["64 runs; "],
    "explanations": ["Class1 above Class4", "14 labels, weights of rank"],
    "kernel": ["rbf "],
    "label_correlations": ["12 labels, weights of rank"],
    "last_layer": ["after 12 epochs the trained layer is at most"],
    "many_labels": ["500 labels, 5 of them in a row"],
    "missing_labels": ["90% hidden: NaN: missing 0.5"],
    "onnx": ["linear, float64: 0 of 13538 labels differ"],
    "out_of_core": ["40000 rows: both certified True, objectives apart by less than the gap True"],
    "rank_path": ["rank 14, average precision 0.7"],
    "reliability": ["Calibrated         expected_calibration_error 0.0"],
    "text": ["payment, size", "small = "],
    "thresholds": ["labels of the first gene: ['Class", "Class14       0.00      0.00      0.00        10"],
}


@pytest.fixture(params=sorted(gallery.EXAMPLES))
def name(request):
    return request.param


def parsed(name):
    return ast.parse(gallery.EXAMPLES[name].read_text(encoding="utf-8"))


def imports(name):
    """(module, name) of everything that an example imports from somewhere; the name is None of a whole module."""
    for node in ast.walk(parsed(name)):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)


def test_the_gallery_is_whole():
    assert SAYS.keys() == gallery.EXAMPLES.keys()


def test_form(name):
    title, underline, empty, *_ = ast.get_docstring(parsed(name)).splitlines()
    assert underline == "=" * len(title)
    assert not empty
    lines = gallery.EXAMPLES[name].read_text(encoding="utf-8").splitlines()
    assert len(lines) <= LONGEST
    blocks = [i for i, line in enumerate(lines) if line == "# %%"]
    assert len(blocks) >= 2
    for i in blocks:
        heading, underline = lines[i + 1 : i + 3]
        assert underline == "# " + "-" * (len(heading) - 2), heading


def test_public_names_only(name):
    for module, imported in imports(name):
        if module.split(".")[0] == "rbrl" and not module.startswith("rbrl.interop.torch"):
            home = importlib.import_module(module)
            is_module = module == "rbrl" and inspect.ismodule(getattr(home, imported))
            assert is_module or imported in home.__all__, f"{imported} is no public name of {module}"


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_it_runs_and_draws(name, tmp_path, monkeypatch):
    for package in {module.split(".")[0] for module, _ in imports(name)}.intersection(EXTRAS):
        pytest.importorskip(package, reason=f"the example needs {package}, which is not installed")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    done = gallery.run(gallery.EXAMPLES[name])
    for words in SAYS[name]:
        assert words in done.printed
    assert "False" not in done.printed
    assert done.figures
    for figure in done.figures:
        assert any(axes.has_data() for axes in figure.axes)
        figure.savefig(drawn := io.BytesIO(), format="png")
        assert drawn.getvalue().startswith(b"\x89PNG")


def test_a_figure_that_pyplot_did_not_make_is_shown_once():
    plt.switch_backend("Agg")
    variables = {"ours": Figure(), "pyplot's": plt.figure(), "something else": 3}
    gallery.show(variables)
    assert [plt.figure(number) for number in plt.get_fignums()] == [variables["pyplot's"], variables["ours"]]
    plt.close("all")
    gallery.show(variables)
    assert not plt.get_fignums()
