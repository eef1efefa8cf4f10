"""The numbers of the rules; RULES.md has them in words, and a test compares the two."""

from rbrl.datasets import CARDS

SPLITS = 3
TRAIN_FRACTION = 0.6
TRAIN_ROWS = 600
TEST_ROWS = 1000
FOLDS = 2
BUDGET_SECONDS = 20.0
# A row without a label gets its best one if at most this share of the training rows has none, as with
# non_empty="auto" of rbrl.
LARGEST_EMPTY_SHARE = 0.02
# A cell that takes this many budgets in all, predictions and judging included, is ended.
HARD_LIMIT = 3.0
MANY_LABELS = 120

# The studies beside the main run: more training rows, and wider searches.
MORE_ROWS, MORE_ROWS_DATASETS = 3000, 3

SCORE_METRICS = (
    "average_precision", "ranking_loss", "coverage", "auc_macro", "precision_at_1", "precision_at_3", "precision_at_5",
)  # fmt: skip
LABEL_METRICS = ("hamming_loss", "subset_accuracy", "f1_example", "f1_micro", "f1_macro")
PROBABILITY_METRICS = ("log_loss", "expected_calibration_error")
CRITERION = ("average_precision", "f1_micro")
# How scores become labels: the method's own rule, one threshold for all labels, one for each label.
OWN, ONE, EACH = LABEL_RULES = ("own", "one", "each")
# The first point of a method's search, and the point that its search chose.
DEFAULT, TUNED = VARIANTS = ("default", "tuned")
CONVENTION = "sklearn"


def cost_order() -> list[str]:
    """Return all data sets of the catalogue: those with many labels last, the cheaper ones first in each part."""
    return sorted(CARDS, key=lambda name: (CARDS[name].n_labels > MANY_LABELS, CARDS[name].n_labels, name))


def column(metric: str, rule: str = OWN) -> str:
    """Return the column of a metric in the rows.

    Examples
    --------
    >>> column("f1_micro"), column("f1_micro", ONE)
    ('f1_micro', 'f1_micro_one')
    """
    return metric if rule == OWN else f"{metric}_{rule}"


METRIC_COLUMNS = (
    *SCORE_METRICS,
    *(column(metric, rule) for rule in LABEL_RULES for metric in LABEL_METRICS),
    *PROBABILITY_METRICS,
)
