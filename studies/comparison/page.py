"""The page of the comparison: Markdown from a template, and on request one HTML file of the same text."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined

from rbrl.datasets import CARDS
from rbrl.experiments.tables import Cell, Table, count, number, p_text, seconds, to_markdown, word, write_text
from studies.comparison import rows, rules
from studies.comparison.answers import (
    KIND_WORDS,
    LABELS,
    SCORES,
    Findings,
    MetricComparison,
    in_sentence,
    is_better_larger,
    title_of,
)
from studies.comparison.figures import draw_all
from studies.comparison.methods import BY_NAME, METHODS
from studies.comparison.sentences import OTHERS, RBRL, answers, losses_of, paired, sensitivity, studies
from studies.comparison.tasks import kind
from studies.reproduction.html import to_page

FOLDER = Path(__file__).resolve().parent
DOCS = FOLDER.parents[1] / "docs"
TEMPLATE = FOLDER / "page.md.jinja"
README = FOLDER.parents[1] / "README.md"
# What stands between these lines of the README is written here.
BEGIN, END = "<!-- comparison: written by `python -m studies.comparison page` -->", "<!-- /comparison -->"
DETAILS = (SCORES, LABELS, "f1_macro_each", "ranking_loss")


def write_pages(results: Path = rows.FOLDER, docs: Path = DOCS, html: Path | None = None) -> list[Path]:
    """Write comparison.md and its figures, and all of it into one HTML file if `html` names one."""
    findings = Findings(rows.read(results))
    images = draw_all(findings, docs)
    text = render(findings, images, results)
    files = [write_text(docs / "comparison.md", text), *(docs / place for place in images.values())]
    if html:
        files.append(write_text(html, to_page(text, {}, {}, docs)))
    return files


def with_answers(readme: str, findings: Findings) -> str:
    """Return the README with three sentences from the rows."""
    before, _, rest = readme.partition(BEGIN)
    packages = {BY_NAME[name].package for name in findings.ranked}
    first = f"{len(findings.ranked)} methods of {len(packages)} packages on {len(findings.datasets)} data sets, "
    first += f"up to {rules.TRAIN_ROWS} training rows, by rules that were fixed before there were results to choose by:"
    found = "\n".join(f"- {answer}" for answer in answers(findings)[:2])
    more = "Which method for which data, what it costs, and where RBRL loses: [docs/comparison.md](docs/comparison.md)."
    return f"{before}{BEGIN}\n{first}\n\n{found}\n\n{more}\n{END}{rest.partition(END)[2]}"


def render(findings: Findings, images: dict[str, str], results: Path = rows.FOLDER) -> str:
    """Return the page as Markdown."""
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    lines = [
        line.rstrip()
        for line in template.render(**_content(findings), **_studies(findings, results), figures=images).splitlines()
    ]
    return "\n".join(line for i, line in enumerate(lines) if line or (i and lines[i - 1])).strip() + "\n"


def _content(findings: Findings) -> dict[str, Any]:
    scores, labels = findings.compare(SCORES), findings.compare(LABELS)
    own = sorted(BY_NAME[name].package for name in findings.ranked)
    return {
        "rules": rules,
        "state": _state(findings),
        "n_methods": len(findings.ranked),
        "left_out": _left_out(findings),
        "n_others": sum(package != "rbrl" for package in own),
        "answers": answers(findings),
        "ranks": _bare(rank_table(findings)),
        "against": [
            (title_of(one.column), BY_NAME[one.best].title, _bare(against_table(one))) for one in (scores, labels)
        ],
        "kinds": _bare(kind_table(findings)),
        "losses": [(BY_NAME[name].title, losses_of(findings, name)) for name in RBRL],
        "rbrl": _rbrl_facts(findings),
        "sensitivity": sensitivity(findings),
        "tuning": _bare(tuning_table(findings)),
        "thresholds": _bare(threshold_table(findings)),
        "probabilities": _bare(probability_table(findings)),
        "cost": _bare(cost_table(findings)),
        "hours": float(findings.hours.minutes.sum() / 60),
        "failures": _failures(findings),
        "not_run": _not_run(findings),
        "apart": _bare(apart_table(findings)) if findings.apart else "",
        "datasets": _bare(dataset_table(findings)),
        "values": [(title_of(column), _bare(value_table(findings, column))) for column in DETAILS],
        "all_metrics": _bare(all_metrics_table(findings)),
        "methods": _bare(method_table()),
    }


def _studies(findings: Findings, results: Path) -> dict[str, Any]:
    """Return the two studies beside the main run, as far as they have rows."""
    more, wide = (rows.read(results / name) for name in ("more-rows", "wide"))
    tables = [
        (title, _bare(study_table(findings, one)))
        for title, one in (("More rows", more), ("Wider searches", wide))
        if len(one)
    ]
    return {"studies": studies(more, wide, findings), "study_tables": tables}


def study_table(findings: Findings, study: pd.DataFrame) -> Table:
    """Average precision on the first split, in the main run and in a study."""
    before, after = paired(findings.rows, study)
    lines = []
    for name in after.mean().sort_values(ascending=False, kind="stable").index:
        cells = (Cell(f"{old:.3f} → {new:.3f}", new) for old, new in zip(before[name], after[name]))
        lines.append((word(BY_NAME[name].title), number(before[name].mean()), number(after[name].mean()), *cells))
    return _table("study", ("Method", "Mean, main run", "Mean, study", *after.index), lines)


def _state(findings: Findings) -> str:
    n_cells = findings.rows.drop_duplicates(["dataset", "split", "method"]).shape[0]
    splits = findings.splits.value_counts().sort_index(ascending=False)
    by = ", ".join(f"{n} on {number_of} split{'s' if number_of > 1 else ''}" for number_of, n in splits.items())
    return f"{len(findings.datasets)} data sets ({by}), {len(findings.ranked)} methods in the ranks, {n_cells} cells"


def _rbrl_facts(findings: Findings) -> dict[str, float]:
    """Return the figures in the text about RBRL's losses."""
    table = findings.values(SCORES)
    dense = table[[kind(name) == "dense" for name in table.index]]
    sparse = table[[kind(name) == "sparse" for name in table.index]]
    linear = [name for name in findings.ranked if BY_NAME[name].family == "linear"]
    curved = [name for name in findings.ranked if BY_NAME[name].family in ("kernel", "trees", "network")]
    gains = findings.threshold_gains("f1_micro", rules.ONE)
    return {
        "dense_best_linear": dense[linear].max(axis=1).mean(),
        "dense_best_curved": dense[curved].max(axis=1).mean(),
        "sparse_best_linear": sparse[linear].max(axis=1).mean(),
        "sparse_best_curved": sparse[curved].max(axis=1).mean(),
        "dense_kernel": (dense["rbrl-rbf"] - dense["rbrl-linear"]).mean(),
        "sparse_kernel": (sparse["rbrl-rbf"] - sparse["rbrl-linear"]).mean(),
        "own_place": list(findings.compare("f1_micro").ranks.index).index("rbrl-rbf") + 1,
        "own_gain": gains["rbrl-rbf"],
        "other_gain": gains.median(),
        "ranking_term": (table["rbrl-linear"] - table["brl"]).mean(),
        "ranking_wins": int((table["rbrl-linear"] > table["brl"]).sum()),
        "n": len(table),
    }


def _bare(table: Table) -> str:
    """Return a table without its title, which the page has above it."""
    return to_markdown(table).partition("\n\n")[2]


def _table(name: str, columns: tuple[str, ...], lines: Sequence[tuple[Cell, ...]]) -> Table:
    return Table(name, name, columns, tuple(lines), pd.DataFrame())


def rank_table(findings: Findings) -> Table:
    """Average ranks of the methods by the main metrics and others, with their times."""
    columns = (SCORES, LABELS, *OTHERS)
    ranks = {column: findings.compare(column).ranks for column in columns}
    best = {column: found.min() for column, found in ranks.items()}
    lines = []
    for name in ranks[SCORES].index:
        found = [number(ranks[column][name], 1, best=ranks[column][name] == best[column]) for column in columns]
        took = findings.seconds.loc[name]
        lines.append((word(BY_NAME[name].title), *found, seconds(took[rules.TUNED]), seconds(took[rules.DEFAULT])))
    titles = [title_of(column).partition(",")[0] for column in columns]
    return _table("ranks", ("Method", *titles, "Seconds, tuned", "default"), lines)


def against_table(comparison: MetricComparison) -> Table:
    """The best method beside each other one."""
    lines = []
    for name, row in comparison.against(comparison.best).iterrows():
        wins = word(f"{row.wins:.0f} : {row.losses:.0f}")
        figures = (number(row["median"]), number(row.effect, 2), word(p_text(row.p)))
        bayes = (number(row.better, 2), number(row.equivalent, 2), number(row.worse, 2))
        lines.append((word(BY_NAME[str(name)].title), number(comparison.ranks[name], 1), wins, *figures, *bayes))
    titles = (
        "Against",
        "Rank",
        "Wins : losses",
        "Median difference",
        "Effect",
        "p",
        "P(better)",
        "P(equal)",
        "P(worse)",
    )
    return _table("against", titles, lines)


def kind_table(findings: Findings) -> Table:
    """Mean average precision and micro-F1 by kind of data."""
    kinds = [one for one in KIND_WORDS if any(kind(name) == one for name in findings.datasets)]
    columns, tables = [], []
    for one in kinds:
        for column in (SCORES, LABELS):
            compared = findings.compare(column, of_kind=one)
            if len(compared.table):
                columns.append(f"{KIND_WORDS[one]}: {in_sentence(column).partition(',')[0]} ({len(compared.table)})")
                tables.append(compared.table.mean())
    order = findings.compare(SCORES).ranks.index
    lines = []
    for name in order:
        found = (number(one[name], best=one[name] == one.max()) for one in tables)
        lines.append((word(BY_NAME[name].title), *found))
    return _table("kinds", ("Method", *columns), lines)


def tuning_table(findings: Findings) -> Table:
    """Means over data sets with defaults and tuned, and the share of searches that left the default."""
    lines = []
    tuned = findings.ok[findings.ok.variant == rules.TUNED]
    for name in findings.compare(SCORES).ranks.index:
        part = tuned[tuned.method == name]
        found = []
        for column in (SCORES, LABELS):
            values = [findings.values(column, variant)[name].mean() for variant in rules.VARIANTS]
            found += [
                number(values[0]),
                number(values[1]),
                Cell(f"{values[1] - values[0]:+.3f}", values[1] - values[0]),
            ]
        moved = (part.params != "{}").mean()
        lines.append((word(BY_NAME[name].title), *found, word(f"{moved:.0%}"), number(part.n_points.mean(), 1)))
    figures = ("Average precision, default", "tuned", "gain", "Micro-F1, default", "tuned", "gain")
    return _table("tuning", ("Method", *figures, "Moved", "Points"), lines)


def threshold_table(findings: Findings) -> Table:
    """Labels by each rule: means over data sets."""
    lines = []
    for name in findings.compare(LABELS).ranks.index:
        found = [
            number(findings.values(rules.column(metric, rule))[name].mean())
            for metric in ("f1_micro", "f1_macro", "subset_accuracy")
            for rule in rules.LABEL_RULES
        ]
        lines.append((word(BY_NAME[name].title), *found))
    by = ("own rule", "one threshold", "per label")
    metrics = ("Micro-F1", "Macro-F1", "Subset accuracy")
    titles = [f"{metric}, {rule}" if rule == by[0] else rule for metric in metrics for rule in by]
    return _table("thresholds", ("Method", *titles), lines)


def probability_table(findings: Findings) -> Table:
    """Log loss and calibration of the methods that give probabilities."""
    loss, error = (findings.values(column, methods=[m.name for m in METHODS]) for column in rules.PROBABILITY_METRICS)
    able = [name for name in findings.ranked if loss[name].notna().any()]
    lines = []
    for name in sorted(able, key=lambda name: loss[name].mean()):
        n_sets = count(int(loss[name].notna().sum()))
        lines.append((word(BY_NAME[name].title), number(loss[name].mean()), number(error[name].mean()), n_sets))
    return _table("probabilities", ("Method", "Log loss", "Calibration error", "Data sets"), lines)


def cost_table(findings: Findings) -> Table:
    """Cells, failures, time and memory of each method."""
    lines = []
    for name, row in findings.hours.iterrows():
        took = findings.seconds.reindex([name]).iloc[0]
        figures = (seconds(row.minutes), seconds(took["predict"]), seconds(took["megabytes"]))
        lines.append((word(BY_NAME[str(name)].title), count(int(row.cells)), count(int(row.failed)), *figures))
    return _table("cost", ("Method", "Cells", "Failed", "Minutes in total", "Seconds to predict", "Megabytes"), lines)


def apart_table(findings: Findings) -> Table:
    """Methods that are not in the ranks: on the data sets that they have, beside the best ranked method there."""
    ranked = findings.values(SCORES)
    best = findings.compare(SCORES).best
    lines = []
    for name in findings.apart:
        own = findings.values(SCORES, methods=[name])[name].dropna()
        tried = findings.rows[findings.rows.method == name].dataset.nunique()
        beside = ranked.loc[own.index, best] - own if len(own) else own
        figures = (number(own.mean()), number(beside.median()) if len(own) else Cell("–"))
        lines.append((word(BY_NAME[name].title), count(len(own)), count(tried), *figures))
    titles = (
        "Method",
        "Data sets",
        "Tried on",
        "Mean average precision",
        f"{BY_NAME[best].title} is ahead by (median)",
    )
    return _table("apart", titles, lines)


def dataset_table(findings: Findings) -> Table:
    """Sizes, domain and splits of the data sets."""
    lines = []
    for name in rules.cost_order():
        card = CARDS[name]
        sizes = (count(card.n_samples), count(card.n_features), count(card.n_labels), number(card.cardinality, 2))
        n_splits = int(findings.splits.get(name, 0))
        lines.append((word(name), word(card.domain), word(kind(name)), *sizes, count(n_splits)))
    titles = ("Data set", "Domain", "Kind", "Rows", "Features", "Labels", "Labels per row", "Splits")
    return _table("datasets", titles, lines)


def value_table(findings: Findings, column: str) -> Table:
    """Means over splits, data sets by methods."""
    table = findings.values(column)[list(findings.compare(SCORES).ranks.index)]
    best = table.max(axis=1) if is_better_larger(column) else table.min(axis=1)
    lines = [
        (word(dataset), *(number(value, best=value == best[dataset]) for value in row))
        for dataset, row in zip(table.index, table.to_numpy())
    ]
    return _table("values", ("Data set", *(BY_NAME[name].title for name in table.columns)), lines)


def all_metrics_table(findings: Findings) -> Table:
    """Means over the data sets that all have, metrics by methods."""
    order = list(findings.compare(SCORES).ranks.index)
    lines = []
    for column in rules.METRIC_COLUMNS:
        if _is_of_probabilities(column):
            continue
        means = findings.compare(column).table.mean()[order]
        best = means.max() if is_better_larger(column) else means.min()
        lines.append((word(title_of(column)), *(number(value, best=value == best) for value in means)))
    return _table("metrics", ("Metric", *(BY_NAME[name].title for name in order)), lines)


def _is_of_probabilities(column: str) -> bool:
    return column in rules.PROBABILITY_METRICS


def method_table() -> Table:
    """The methods, their packages, and what their searches try."""
    lines = []
    for method in METHODS:
        points = [", ".join(f"{name}={value}" for name, value in point.items()) or "default" for point in method.points]
        lines.append((word(method.title), word(method.package), word(method.family), word("; ".join(points))))
    return _table("methods", ("Method", "Package", "Family", "Points"), lines)


def _left_out(findings: Findings) -> list[str]:
    """Data sets that are not in the ranks, each with the methods that have no value there."""
    lacking = findings.values(SCORES).isna()
    return [
        f"{dataset} ({', '.join(BY_NAME[name].title for name in lacking.columns[row])})"
        for dataset, row in zip(lacking.index, lacking.to_numpy())
        if row.any()
    ]


def _failures(findings: Findings) -> list[str]:
    """Failures by method and reason."""
    lines = []
    for (method, reason), part in findings.failures.groupby(["method", "reason"]):
        where = ", ".join(dict.fromkeys(part.dataset))
        lines.append(f"{BY_NAME[method].title}, {len(part)} cells: {reason} ({where})")
    return lines


def _not_run(findings: Findings) -> list[str]:
    """Return the cells that the rules require but that have no rows, the largest number first."""
    return [f"{what} ({n} cells)" for what, n in findings.not_run().items()]
