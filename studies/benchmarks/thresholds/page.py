"""``results.md`` from the rows that are known."""

import itertools

import numpy as np

from studies.benchmarks.problems import markdown, write_results
from studies.benchmarks.thresholds.protocol import HAMMING, METRICS, REPORTING, SHARE, SUBSET

# Bounds of the shares of empty training rows that are shown together.
SHARES = (-1.0, 0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 1.0)
FIGURES = (*METRICS, "no_label", "average_precision")
SHORT = {
    "hamming_loss": "Hamming", "subset_accuracy": "subset accuracy", "f1_micro": "micro-F1", "f1_macro": "macro-F1",
    "f1_example": "example-F1", "no_label": "rows without a label", "average_precision": "AP",
}  # fmt: skip
OLD, ZERO, LEARNED, PER_LABEL, GLOBAL = (
    "0, filled if no row is empty",
    "0",
    "f1_micro",
    "tuned per label",
    "tuned globally",
)
TEXT = """`RBRLClassifier()` with thresholds of several kinds. The data sets, sizes and rules of decision were fixed in
`protocol.py`, by the commit 2de3555, before the table `report` was first run. Rows without a label get their best one
where at most 2 % of the training rows have none, unless stated otherwise. "tuned" is `TunedThresholdClassifier`, which
fills nothing.

## Table `report`: means over the data sets and three splits

Average precision depends on scores alone; a threshold for each label changes the ranking of the labels of a row."""


def table(known, name):
    """{(data, case, rule): figures, means over the splits} of a table."""
    found = {}
    for (letter, data, _, case, rule), row in known.items():
        if letter == name:
            numbers = [float(row[key]) if row[key] else np.nan for key in FIGURES]
            found.setdefault((data, case, rule), []).append((numbers, row["note"]))
    return {key: (np.mean([each for each, _ in rows], axis=0), rows[0][1]) for key, rows in found.items()}


def write(known):
    report = table(known, "report")
    rules = list(dict.fromkeys(rule for _, _, rule in report))
    data = [name for name in REPORTING if (name, "", rules[-1]) in report] if rules else []
    means = {rule: np.mean([report[name, "", rule][0] for name in data], axis=0) for rule in rules} if data else {}
    rows = [{"threshold": rule} | shown(values) for rule, values in means.items()]
    after = [verdicts(report, means, data), per_data(report, data), sources(known), filling(known)] if data else []
    write_results(__file__, "What is a threshold worth?", TEXT, rows or [{"report": "is missing"}], "\n\n".join(after))


def shown(values):
    return {SHORT[key]: f"{value:.3f}" for key, value in zip(FIGURES, values)}


def wins(report, data, metric, new, old):
    place = FIGURES.index(metric)
    return sum(report[name, "", new][0][place] > report[name, "", old][0][place] for name in data)


def verdicts(report, means, data):
    """The two decisions, by the rules of the protocol."""
    needed = SHARE * len(data)
    counts = {metric: wins(report, data, metric, LEARNED, ZERO) for metric in ("f1_micro", "f1_macro", "f1_example")}
    fall = means[ZERO][1] - means[LEARNED][1]
    rise = means[LEARNED][0] / means[ZERO][0] - 1
    better, harmless = all(count >= needed for count in counts.values()), fall <= SUBSET and rise <= HAMMING
    tuned = {metric: wins(report, data, metric, GLOBAL, PER_LABEL) for metric in ("f1_micro", "f1_example")}
    higher = ", ".join(f"{SHORT[metric]} on {count}" for metric, count in counts.items())
    also = ", ".join(f"{SHORT[metric]} on {count}" for metric, count in tuned.items())
    return (
        f'Default of `threshold`: with "f1_micro" higher {higher} of {len(data)} sets (needed: {needed:g}); subset accuracy '
        f"falls by {fall:.3f} (allowed: {SUBSET:g}), the Hamming loss rises by {rise:.1%} (allowed: {HAMMING:.0%}). "
        f"It **{'changes' if better and harmless else 'stays 0'}**.\n\n"
        f'Default of `TunedThresholdClassifier`: `GlobalThreshold("f1_micro")` is higher than '
        f'`LabelThresholds("f1_macro")` in {also} of {len(data)} sets. It '
        f"**{'changes' if all(count >= needed for count in tuned.values()) else 'stays per label'}**."
    )


def per_data(report, data):
    """Micro-F1, subset accuracy and rows without a label of each data set."""
    rules = (OLD, ZERO, "f1_micro", "f1_samples", "f1_macro", PER_LABEL, GLOBAL)
    rows = [
        {"data": name, "empty": report[name, "", ZERO][1].removeprefix("empty ")}
        | {rule: " / ".join(f"{report[name, '', rule][0][FIGURES.index(key)]:.3f}" for key in
                            ("f1_micro", "f1_macro", "subset_accuracy", "no_label")) for rule in rules}
        for name in data
    ]  # fmt: skip
    return f"Micro-F1 / macro-F1 / subset accuracy / share of the test rows without a label:\n\n{markdown(rows)}"


def sources(known):
    """Return the table of the scores that a threshold is learned from."""
    found = table(known, "scores")
    rules, cases = (list(dict.fromkeys(key[i] for key in found)) for i in (2, 1))
    rows = []
    for case in cases:
        names = [key[0] for key in found if key[1:] == (case, rules[0])]
        share = np.mean([float(found[name, case, rules[0]][1]) for name in names])
        of_rules = {rule: np.mean([found[name, case, rule][0][2:4] for name in names], axis=0) for rule in rules}
        figures = {rule: " / ".join(f"{value:.3f}" for value in values) for rule, values in of_rules.items()}
        rows.append({"model": case, "parameters / rows": f"{share:.2f}"} | figures)
    text = """## Table `scores`: which scores a threshold is learned from

Ten choosing sets, 1,000 training rows. Micro-F1 with one threshold, and macro-F1 with a threshold for each label."""
    return f"{text}\n\n{markdown(rows)}" if rows else ""


def filling(known):
    """Return the gain of filling empty rows, by the share of the training rows that have no label."""
    found = table(known, "filling")
    gains = []
    for data, case in dict.fromkeys(key[:2] for key in found):
        for threshold in ("0.0", "f1_micro"):
            before, after = (found[data, case, f"{threshold}, {state}"] for state in ("as it is", "filled"))
            share = float(after[1].removeprefix("empty "))
            gains.append((threshold, share, after[0] - before[0]))
    rows = []
    for threshold, (low, high) in itertools.product(("0.0", "f1_micro"), itertools.pairwise(SHARES)):
        group = [gain for rule, share, gain in gains if rule == threshold and low < share <= high]
        if group:
            name = "none" if high == 0 else f"up to {high:.0%}"
            means, worst = np.mean(group, axis=0), np.min(group, axis=0)
            rows.append({"threshold": threshold, "empty training rows": name, "cases": len(group)}
                        | {SHORT[key]: f"{means[i]:+.3f}" for i, key in enumerate(METRICS)}
                        | {"worst subset accuracy": f"{worst[1]:+.3f}", "worst example-F1": f"{worst[4]:+.3f}"})  # fmt: skip
    text = """## Table `filling`: what the best label of an empty prediction is worth

Ten choosing sets, with all or some of their labels, so that some rows have none. Gain by filling, mean over the cases."""
    return f"{text}\n\n{markdown(rows)}" if rows else ""
