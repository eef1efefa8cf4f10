"""The page of the results, made from the recorded rows."""

from pathlib import Path

import numpy as np

from studies.benchmarks.problems import markdown, write_results

RESULTS = Path(__file__).with_name("results.csv")
METRICS = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@5")
COLUMNS = (
    "part", "method", "setting", "labels", "seconds", "gb", "added_gb", "estimate_gb", "gap", "passes", *METRICS,
    "file_gb", "all_rows", "one_row", "multiply_adds", "version", "date", "rank", "note",
)  # fmt: skip
GRID_SIZE = 4
WIKI_RIDGE = 1
WIKI_LABELS = (1_000, 30_938)
# Bars of the study.
MOST_SECONDS = 20 * 60
MOST_GB = 10
LARGEST_GAP = 1e-3
LARGEST_TIME_EXPONENT = 1.1
LARGEST_MEMORY_EXPONENT = 1.0
MOST_WIKI_GB = 16
ESTIMATE_FACTOR = 1.5
LEAST_SPEED_UP = 5
LARGEST_LOSS = 0.002

TEXT = """The peers ran with `--omikuji PYTHON --libpecos PYTHON --napkinxc PYTHON
--libmultilabel PYTHON`. Every fit is in a process of its own, with one thread. Seconds are
processor time, user and system, and GB is the peak memory of the process: Python, libraries and
data included. The other core of the machine was busy. The column "date" of `results.csv` says when
a row was measured.

The data are debdepends: 53,416 packages with 29,540 terms, about 10 in a row, and 11,969 labels,
4.7 in a row. 45,000 rows are fitted and 8,416 measured. rbrl fits with `nuclear=0, tol=1e-3` to a
certified gap. Peers have their defaults, except for the number of threads and C: three trees in
Omikuji; clusters of the labels by their mean rows in PECOS; the logistic loss in napkinXC; `-s 1 -B
1` in LibMultiLabel, which is the squared hinge with an intercept. None of them certifies its
result. With `compress=0.01`, the weights of rbrl are sparse, and the gap includes the permitted
rise of the objective. PSP weights a label by its inverse propensity (A = 0.55, B = 1.5).

The parameter of a method is chosen among four values: the ridge of rbrl, and C of the peers, which
corresponds to 1 / (2 ridge). It has the highest nDCG@5 on 2,500 held-out training rows, for a fit
of 5,000 others. If the best value was the first or the last, further values were tried. "One row"
is the mean of up to 20 calls with one row."""


def chosen_setting(rows, method):
    """Return the setting with the highest nDCG@5 on the held-out rows; None if one is not known."""
    found = {float(row["setting"]): float(row["nDCG@5"]) for row in of_part(rows, "choice") if row["method"] == method}
    return max(found, key=found.__getitem__) if len(found) >= GRID_SIZE else None


def of_part(rows, part):
    """Return the rows of a part."""
    return [row for row in rows if row["part"] == part]


def number(text, digits):
    """Return a recorded number with so many digits after the point; nothing if there is none."""
    return f"{float(text):.{digits}f}" if text else ""


def whole_line(row):
    """Return the line of a method in the comparison."""
    line = {"method": row["method"], "ridge or C": row["setting"], "fit, s": number(row["seconds"], 1)}
    line |= {"GB": number(row["gb"], 2), "gap": f"{float(row['gap']):.1e}" if row["gap"] else ""}
    line |= {name: number(row[name], 3) for name in METRICS}
    line["file, GB"] = number(row["file_gb"], 3)
    line |= {"all rows, s": number(row["all_rows"], 2), "one row, ms": number(1e3 * float(row["one_row"]), 2)}
    return line


def choice_lines(rows):
    """Return a line for each method with nDCG@5 at its four settings, the chosen one in bold."""
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        best = chosen_setting(rows, method)
        found = [
            f"{row['setting']}: "
            + ("**{}**" if float(row["setting"]) == best else "{}").format(number(row["nDCG@5"], 4))
            for row in own
        ]
        seconds = sum(float(row["seconds"]) for row in own)
        lines.append({"method": method, "ridge or C: nDCG@5": ", ".join(found), "all fits, s": f"{seconds:.0f}"})
    return lines


def slope(rows, name):
    """Return the slope of the logarithm of a fact against that of the number of labels."""
    labels = [float(row["labels"]) for row in rows]
    return float(np.polyfit(np.log(labels), np.log([float(row[name]) for row in rows]), 1)[0])


def verdict(holds):
    """Return whether a bar is met, as text."""
    return "met" if holds else "**not met**"


def describe_whole(rows):
    """Return whether the fits of all labels meet their bars, and how much random trees differ."""
    ours = [row for row in of_part(rows, "whole") if row["gap"] and "compress" not in row["method"]]
    lines = []
    again = of_part(rows, "another run")
    for row in ours:
        seconds, gigabytes = float(row["seconds"]), float(row["gb"])
        is_met = seconds <= MOST_SECONDS and gigabytes <= MOST_GB and float(row["gap"]) <= LARGEST_GAP
        lines.append(f"{row['method']}: {seconds:.0f} s and {gigabytes:.2f} GB, {verdict(is_met)}")
    random = "".join(
        f" Another run of {row['method']}, whose trees are random, with the same C had P@1 {number(row['P@1'], 3)} and "
        f"nDCG@5 {number(row['nDCG@5'], 3)}."
        for row in again
    )
    return f"At most {MOST_SECONDS} s and {MOST_GB} GB, gap at most 1e-3. {'; '.join(lines)}.{random}"


def growth_section(rows):
    """Return the table of the growth in the number of labels, and its exponents."""
    lines = [
        {
            "method": row["method"],
            "labels": row["labels"],
            "fit, s": number(row["seconds"], 2),
            "added GB": number(row["added_gb"], 3),
            "GB": number(row["gb"], 3),
            "passes": row["passes"],
            "gap": f"{float(row['gap']):.1e}",
        }
        for row in rows
    ]
    found = []
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        if len(own) < 2:
            continue
        time, memory = slope(own, "seconds"), slope(own, "added_gb")
        holds = time <= LARGEST_TIME_EXPONENT and memory <= LARGEST_MEMORY_EXPONENT
        found.append(f"{method}: {time:.2f} for time, {memory:.2f} for memory, {verdict(holds)}")
    text = f"""Nested random subsets of the labels on the same 5,000 rows, ridge=1, a process for each fit.
"Added GB" is the peak less the peak before the fit. The exponent is the slope of the logarithms
against the number of labels, at most {LARGEST_TIME_EXPONENT} for time and {LARGEST_MEMORY_EXPONENT} for memory.
{"; ".join(found)}."""
    return section("Growth in the number of labels", text, lines)


def fewer_section(rows):
    """Return the table of fits with fewer labels."""
    lines = [
        {
            "method": row["method"],
            "labels": row["labels"],
            "fit, s": number(row["seconds"], 2),
            "GB": number(row["gb"], 2),
            "gap": f"{float(row['gap']):.1e}",
            "file, MB": number(1e3 * float(row["file_gb"]), 2),
            "all rows, s": number(row["all_rows"], 2),
        }
        for row in rows
    ]
    return section("Fewer labels", "All 45,000 training rows, random subsets of the labels, ridge=1, tol=1e-3.", lines)


def wiki_section(rows):
    """Return the table of the made data of the shape of Wiki10-31K."""
    lines, found = [], []
    for row in rows:
        ratio = float(row["gb"]) / float(row["estimate_gb"])
        lines.append({
            "labels": row["labels"],
            "fit, s": number(row["seconds"], 0),
            "GB": number(row["gb"], 2),
            "estimate, GB": number(row["estimate_gb"], 2),
            "measured / estimate": f"{ratio:.2f}",
            "gap": f"{float(row['gap']):.1e}",
        })  # fmt: skip
        holds = float(row["gb"]) < MOST_WIKI_GB and max(ratio, 1 / ratio) <= ESTIMATE_FACTOR
        found.append(f"{row['labels']} labels: {verdict(holds)}")
    text = f"""Made rows of the shape of Wiki10-31K: 14,146 x 101,938 in single precision, about 670 nonzero features
and 19 labels in a row, frequencies by Zipf's law. `ranking=0, nuclear=0, ridge={WIKI_RIDGE}`. Less than {MOST_WIKI_GB} GB,
and the estimate within a factor of {ESTIMATE_FACTOR}: {"; ".join(found)}."""
    if not any(row["labels"] == str(WIKI_LABELS[-1]) for row in rows):
        text += f" All {WIKI_LABELS[-1]:,} labels are not measured yet."
    return section("Shape of Wiki10-31K", text, lines)


def shortlist_section(rows):
    """Return the table of prediction through clusters of labels, and the verdict."""
    exact = next(row for row in rows if row["method"] == "exact")
    lines, enough = [], []
    for row in rows:
        speed_up = float(exact["all_rows"]) / float(row["all_rows"])
        fewer = float(exact["multiply_adds"]) / float(row["multiply_adds"])
        loss = float(exact["P@1"]) - float(row["P@1"])
        if speed_up >= LEAST_SPEED_UP and loss <= LARGEST_LOSS:
            enough.append(f"{row['method']}, {row['setting']} searched")
        lines.append({
            "prediction": row["method"],
            "searched": row["setting"] if row is not exact else "",
            "all rows, s": number(row["all_rows"], 3),
            "times faster": f"{speed_up:.1f}",
            "multiply-adds of a row": number(row["multiply_adds"], 0),
            "times fewer": f"{fewer:.1f}",
            "P@1": number(row["P@1"], 4),
            "loss": f"{loss:.4f}",
        })  # fmt: skip
    answer = f"these are so: {'; '.join(enough)}" if enough else "none is"
    text = f"""A prototype, `shortlists.py`: scikit-learn's k-means clusters the labels by their weights, a
compressed linear model scores the clusters, and only the labels of the best clusters are scored.
Exact prediction uses the same pruned weights: weights of less than a twentieth of the largest
weight of their label are 0. Both sides are SciPy products of sparse matrices. Prediction should be
{LEAST_SPEED_UP} times faster at a loss of at most {LARGEST_LOSS} of P@1: {answer}."""
    return section("Shortlists of labels", text, lines)


def section(title, text, lines):
    """Return a section with a table."""
    return f"## {title}\n\n{text}\n\n{markdown(lines)}"


def forms_section(rows):
    """Return the table of the forms of a model."""
    lines = []
    for row in rows:
        line = {"model": row["method"], "permitted rise": row["setting"]}
        line["gap"] = f"{float(row['gap']):.1e}" if row["gap"] else row["note"].partition(":")[0]
        line |= {"rank": row["rank"], "fit or compression, s": number(row["seconds"], 1)}
        line |= {"file, MB": number(1e3 * float(row["file_gb"]), 1) if row["file_gb"] else ""}
        line["all rows, s"] = number(row["all_rows"], 2)
        line["one row, ms"] = number(1e3 * float(row["one_row"]), 2) if row["one_row"] else ""
        lines.append(line | {"P@1": number(row["P@1"], 4), "nDCG@5": number(row["nDCG@5"], 4)})
    text = """`rbrl.compress` makes the sparse weights and the factors from the dense weights of one fit: 10,000
rows, 1,000 labels, ranking=0, ridge=1, tol=1e-3. The gap holds for the weights of each form; the
permitted rise is the option `tol` of `compress`."""
    return section("Three forms of a model", text, lines)


def write(rows):
    """Write the page from the rows that are known."""
    rows = list(rows)
    parts = []
    if choice := of_part(rows, "choice"):
        text = "nDCG@5 on the held-out rows at each value; the chosen one is bold."
        parts.append(section("Choice of the parameter", text, choice_lines(choice)))
    sections = {
        "growth": growth_section,
        "fewer": fewer_section,
        "wiki": wiki_section,
        "forms": forms_section,
        "shortlists": shortlist_section,
    }
    for name, make in sections.items():
        if own := of_part(rows, name):
            parts.append(make(own))
    whole = of_part(rows, "whole")
    parts.insert(0, describe_whole(rows))
    versions = ", ".join(dict.fromkeys(row["version"] for row in rows if row["version"]))
    text = f"{TEXT} Versions: {versions}."
    write_results(__file__, "Tens of thousands of labels", text, [whole_line(row) for row in whole], "\n\n".join(parts))
