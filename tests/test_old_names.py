"""Old import paths work, warn once at the line of the user, and give the same objects."""

import subprocess
import sys
import warnings
from importlib import import_module

import pytest

from rbrl._common import old_names

# Public names of the modules before they moved.
PUBLIC = {
    "rbrl.estimators.binary_reductions": "BinaryRelevance CalibratedLabelRanking",
    "rbrl.estimators.cpnl": "CPNL",
    "rbrl.explanations": "Explanation LabelMap explain label_map",
    "rbrl.onnx": "to_onnx",
    "rbrl.report": """
        FORMATS KEYS MISSING Cell Comparison Report Results Sizes Table Verdict ablation_table all_tables as_shown best_of
        compare count datasets_table friedman_table heading join metric_table number p_text pairs_table parameters_table
        rank_table ranks_table reliability_diagram render_page results_table save_table seconds seconds_table
        show_tables spread time_table to_csv to_html to_json to_latex to_markdown to_terminal verdict word write_page
        write_report write_text""",
    "rbrl.report.figures": """
        ACCENT CONTRAST HEAT INK MUTED draw_average_ranks draw_cooccurrence draw_critical_difference draw_label_quality
        draw_singular_values draw_trade_off plain_powers save_figure styled""",
    "rbrl.search": """
        PAPER_GRID CalibratedMultiLabelClassifier PathSearchCV RBRLClassifierCV TunedThresholdClassifier choose solve_grid
        tune""",
    "rbrl.statistics": """
        FriedmanResult SignedRankProbabilities average_ranks bayesian_signed_rank bonferroni_dunn_distance
        bonferroni_dunn_p_values friedman groups holm mean_std median_differences nemenyi_decidable nemenyi_distance
        nemenyi_groups nemenyi_p_values rank_biserial ranks smallest_wilcoxon_p wilcoxon_holm""",
    "rbrl.torch": "RBRLHead RBRLLoss nuclear_norm refit_last_layer",
}
SAME = [
    ("rbrl.explanations", "explain", "rbrl.inspection"),
    ("rbrl.onnx", "to_onnx", "rbrl.interop.onnx"),
    ("rbrl.search", "PathSearchCV", "rbrl.selection"),
    ("rbrl.report", "Results", "rbrl.experiments"),
    ("rbrl.report", "number", "rbrl.experiments.tables"),
    ("rbrl.report.figures", "draw_trade_off", "rbrl.experiments.figures"),
    ("rbrl.statistics", "friedman", "rbrl.experiments.statistics"),
]


def import_quietly(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return import_module(name)


def test_every_old_module_is_tested():
    assert set(PUBLIC) == set(old_names.MODULES)


@pytest.mark.parametrize(("module", "name"), [(key, name) for key, names in PUBLIC.items() for name in names.split()])
def test_every_public_name_is_found(module, name):
    if module == "rbrl.torch":
        pytest.importorskip("torch")
    getattr(import_quietly(module), name)


@pytest.mark.parametrize(("old", "name", "new"), SAME)
def test_old_and_new_name_are_one_object(old, name, new):
    assert getattr(import_quietly(old), name) is getattr(import_module(new), name)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'rbrl.report' has no attribute 'nothing'"):
        import_quietly("rbrl.report").nothing  # noqa: B018


@pytest.mark.parametrize(
    "statement",
    [
        "import rbrl.statistics; rbrl.statistics.ranks",
        "from rbrl.statistics import ranks, holm",
        "from rbrl import statistics; statistics.ranks",
        "import rbrl; rbrl.statistics.ranks; rbrl.statistics.holm",
        "from rbrl.statistics import *; friedman",
    ],
)
def test_the_warning_comes_once_and_points_at_the_import(statement):
    command = [sys.executable, "-W", "always::DeprecationWarning", "-c", f"{statement}\nimport rbrl.statistics"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == (
        "<string>:1: DeprecationWarning: rbrl.statistics has moved to rbrl.experiments.statistics; "
        "the old name will be removed in the next release.\n"
    )
