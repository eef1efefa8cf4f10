"""The answers that open the page of the reproduction."""

from collections import Counter
from importlib.resources import files
from pathlib import Path

import pandas as pd
from jinja2 import Environment, StrictUndefined

from rbrl.report.comparison import compare, rank_table
from rbrl.report.results import KEYS
from rbrl.report.table import Cell, Table, count, number, to_markdown, word
from reproduction import cells as beside
from reproduction.causes import changed_cells, effect_table, explain, far_table, read_causes
from reproduction.cells import LEGEND, ablation_beside, ablation_summary, agreement, cell_tables, cells, count_table
from reproduction.claims import (
    FAILS,
    HOLDS,
    UNKNOWN,
    WEAK,
    beaten_counts,
    beaten_table,
    claim_table,
    judge,
    metric_ranks,
    observations,
    overall_ranks,
    verdict_table,
)
from reproduction.cost import cost, cost_tables, hours_text, mean_per_fit
from reproduction.criteria import choice_table, variant_tables
from reproduction.figures import draw_all
from reproduction.paper import ABLATION, OURS, as_published, key, published_results
from reproduction.recorded import Recorded, read_plan, write_text
from reproduction.studies import penalty_table, solver_table, width_table

VERDICTS = {HOLDS: "upheld", WEAK: "upheld without significance", FAILS: "not upheld", UNKNOWN: "not tested"}


def short_table(found, explained, sources, rows, effort) -> Table:
    """Questions that a reader has, and their answers in figures."""
    moved, left = int((explained.cause >= 0).sum()), int((explained.cause < 0).sum())
    near = f"{found.within} of {found.cells} cells within a distance of 3; "
    near += f"{moved} far ones moved near by a named change, {left} unexplained"
    lines = [
        (
            f"Is {OURS} what the paper says?",
            f"{found.ours_good} of {found.ours_cells} cells within a distance of 2, or better",
        ),
        ("Are the other methods?", near),
        ("Do the overall ranks agree?", f"Spearman correlation {found.spearman:.2f}"),
        (f"Where does {OURS} rank?", _in_each(sources, _place)),
        (f"Whom does {OURS} beat significantly?", _in_each(sources, _wins)),
        ("Do the seven observations hold?", _in_each(sources, _verdicts)),
        (f"What does {OURS}'s full search cost?", _cost_sentence(rows, effort)),
    ]
    return Table(
        "short", "In short", ("Question", "Answer"), tuple((word(a), word(b)) for a, b in lines), pd.DataFrame(lines)
    )


def _in_each(sources, say):
    return "; ".join(f"{name.lower()}: {say(results)}" for name, results in sources.items())


def _place(results):
    ranks = rank_table(results).loc["Overall"].dropna()
    if OURS not in ranks:
        return "not known yet"
    place = int((ranks < ranks[OURS]).sum()) + 1
    n_datasets = compare(results, results.metrics[0]).n_datasets
    few = f" over {n_datasets} of {len(results.datasets)} data sets" if n_datasets < len(results.datasets) else ""
    return f"place {place} of {len(ranks)}, overall average rank {ranks[OURS]:.2f}{few}"


def _wins(results):
    wins, losses = beaten_counts(results)
    pairs = (len(results.methods) - 1) * len(results.metrics)
    return f"{wins} of {pairs} pairs of method and metric" + (f", beaten in {losses}" if losses else "")


def _verdicts(results):
    found = Counter(judge(observation, results)[0] for observation in observations())
    return ", ".join(f"{found[name]} {VERDICTS[name]}" for name in VERDICTS if found[name])


def _cost_sentence(rows, effort):
    own, tuned = (frame[frame.method.map(key) == key(OURS)] for frame in (rows, effort))
    if own.empty:
        return "not known yet"
    found = cost(own, tuned)
    hours = hours_text(found.recorded_hours.sum(), found.hours.sum())
    evaluations = mean_per_fit(tuned, "evaluations")
    return (
        f"{found.n_fits.sum():,} fits in {hours} hours of processor time, half of that on two cores; "
        f"{evaluations:.1f} evaluations per fit"
    )


PAPER, PUBLISHED, EQUAL = "The paper", "Ours, its rules", "Ours, equal terms"
NOTES = ("summary", "fair", "observations", "cells", "ablation", "time", "convergence", "sensitivity", "unsaid", "cost")
IMAGES = Path("images", "reproduction")


def write_pages(recorded: Recorded, docs: Path) -> list[Path]:
    """Write reproduction.md, its figures, and reproduction.html, the page of our results, into a folder of docs."""
    from rbrl.report.page import write_page

    results = as_published(recorded.rows("paper"))
    images = draw_all(recorded, docs / IMAGES)
    text = render(recorded, docs, images)
    plan = read_plan("paper").to_toml()
    options = {"title": "The paper's comparison, reproduced", "command": "rbrl reproduce all", "plan": plan}
    page = write_page(results, docs / "reproduction.html", **options)
    return [
        write_text(docs / "reproduction.md", text),
        page,
        *(docs / IMAGES / one["file"] for part in images.values() for one in part),
    ]


def render(recorded: Recorded, docs: Path, images: dict) -> str:
    """The page as text."""
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    template = files("reproduction").joinpath("page.md.jinja").read_text(encoding="utf-8")
    text = environment.from_string(template).render(**_content(recorded, docs, images))
    # Parts that are empty leave gaps.
    lines = [line.rstrip() for line in text.splitlines()]
    kept = [line for i, line in enumerate(lines) if line or (i and lines[i - 1])]
    return "\n".join(kept).strip() + "\n"


def _content(recorded, docs, images):
    rows = recorded.rows("paper")
    results = as_published(rows)
    ours = {PAPER: published_results(), PUBLISHED: results}
    both = ours | ({EQUAL: as_published(recorded.rows("paper-fair"))} if recorded.has("paper-fair") else {})
    frame = cells(results)
    causes = read_causes(docs / "reproduction" / "causes.toml")
    variants = changed_cells(causes, recorded, "paper")
    causes = [cause for cause in causes if cause.change in variants]
    explained = explain(frame, causes, variants)
    found = agreement(results, frame)
    with_brl = as_published(rows, ABLATION)
    effort = recorded.effort("paper")
    return {
        "state": _state(recorded, rows),
        "short": _bare(short_table(found, explained, both, rows, effort)),
        "notes": {name: _note(docs / "reproduction" / f"{name}.md") for name in NOTES},
        "fair": _fair(both),
        "distance": f"{compare(published_results(), 'coverage').distance:.3f}",
        "verdicts": _bare(verdict_table(both)),
        "claims": _bare(claim_table(both)),
        "counts": _bare(count_table(frame)),
        "agreement": found.sentences(),
        "tuned": _tuned(),
        "legend": LEGEND,
        "cells": [(table.title, _bare(table)) for table in cell_tables(frame)],
        "far": _far_sentence(explained),
        "effects": to_markdown(effect_table(frame, causes, variants)) if causes else "",
        "causes": _cause_parts(causes, explained),
        "unexplained": _unexplained(explained),
        "table4": to_markdown(metric_ranks(ours, ties="minimum")),
        "table5": to_markdown(beside.friedman_beside(results)),
        "table7": to_markdown(beside.time_beside(results)),
        "ablation": {
            "summary": to_markdown(ablation_summary(with_brl)),
            "lines": to_markdown(ablation_beside(with_brl)),
        },
        "solver": to_markdown(solver_table(recorded.table("solver"))) if recorded.has_table("solver") else "",
        "convergence": _convergence(recorded),
        "sensitivity": _sensitivity(recorded),
        "figures": images,
        "variants": [to_markdown(table) for table in variant_tables(recorded)],
        "choices": to_markdown(choice_table(recorded.table("criteria"))) if recorded.has_table("criteria") else "",
        "costs": [to_markdown(table) for table in cost_tables(rows, effort)],
        "repeat": list(_commands(rows)),
    }


def _bare(table):
    """A table without its title, which stands above it already."""
    return to_markdown(table).partition("\n\n")[2]


def _note(path):
    """A part of the page that is written by hand; nothing if there is none."""
    return f"\n{path.read_text(encoding='utf-8').strip()}\n\n" if path.is_file() else ""


def _state(recorded, rows):
    facts, plan = recorded.facts("paper"), read_plan("paper")
    runs = rows.drop_duplicates(KEYS)
    machines = " and ".join(value for name, value in facts.items() if name.startswith("machine"))
    done = f"{(runs.status == 'ok').sum()} of {plan.n_runs} runs of [plans/paper.toml](../plans/paper.toml)"
    versions = ", ".join(dict.fromkeys(map(str, runs.version)))
    return f"{done}, recorded on {facts['date']} with rbrl {versions} ({machines})."


def _fair(sources):
    if EQUAL not in sources:
        return None
    return {
        "overall": to_markdown(overall_ranks(sources)),
        "beaten": to_markdown(beaten_table(sources)),
        "metrics": to_markdown(metric_ranks(sources)),
    }


def _tuned():
    """Which methods are tuned on every split, in a sentence."""
    plan = read_plan("paper")
    every = {m.name: [d.name for d in plan.datasets if m.tuned_on(d, plan.tuning.on) == "every"] for m in plan.methods}
    whole = [name for name, sets in every.items() if len(sets) == len(plan.datasets)]
    parts = [f"{name} on {', '.join(sets)}" for name, sets in every.items() if 0 < len(sets) < len(plan.datasets)]
    text = f"Searched on every split, as in the paper: {', '.join([*whole, *parts])}."
    first = [name for name, sets in every.items() if len(sets) < len(plan.datasets)]
    rest = f" On the other data sets {', '.join(first)} are searched on the first split, and its choice serves all ten."
    return text + (rest if first else "")


def _far_sentence(explained):
    worse, better = (explained.distance < 0).sum(), (explained.distance > 0).sum()
    return f"{len(explained)} cells are far: {better} better than the paper's, {worse} worse."


def _cause_parts(causes, explained):
    parts = []
    for i, cause in enumerate(causes):
        own = explained[explained.cause == i]
        table = _bare(far_table(own, cause.title)) if len(own) else ""
        parts.append(
            {"title": cause.title, "plan": cause.plan("paper"), "text": cause.text, "n": len(own), "table": table}
        )
    return parts


def _unexplained(explained):
    left = explained[explained.cause < 0]
    if left.empty:
        return "No far cell is left unexplained."
    table = far_table(left, "")
    table = Table(
        "unexplained",
        f"Unexplained: {len(left)} cells",
        table.columns[:-1],
        tuple(row[:-1] for row in table.rows),
        left,
        n_keys=3,
    )
    return to_markdown(table)


def _convergence(recorded):
    if not recorded.has_table("figure3-claims"):
        return ""
    rows = []
    for row in recorded.table("figure3-claims").to_dict("records"):
        gaps = [_gap(row[name]) for name in ("gap_claimed", "gap_stop")]
        reached = [number(row[f"iterations_{gap}"], 0) for gap in ("1e-02", "1e-03", "1e-04")]
        stop = Cell("–") if row["stop"] != row["stop"] else count(int(row["stop"]))
        rows.append(
            (word(row["problem"]), count(row["claimed"]), gaps[0], stop, gaps[1], *reached, number(row["ours"], 0))
        )
    titles = (
        "Problem",
        "Claimed",
        "Gap there",
        "Authors' stop",
        "Gap there",
        "To 0.01",
        "To 0.001",
        "To 0.0001",
        "Ours to 0.0001",
    )
    note = "Iterations of the paper's algorithm, each one evaluation, to certified relative gaps; of ours evaluations."
    return to_markdown(
        Table(
            "claims",
            "How far from the optimum after how many iterations",
            titles,
            tuple(rows),
            pd.DataFrame(),
            note=note,
        )
    )


def _sensitivity(recorded):
    makers = {"figure4": width_table, "figure5": penalty_table}
    return [to_markdown(make(recorded.table(name))) for name, make in makers.items() if recorded.has_table(name)]


def _gap(value):
    return Cell("–") if value != value else Cell(f"{value:.1e}", value)


def _commands(rows):
    runs = rows[rows.split == 0].drop_duplicates(KEYS)
    for dataset, part in runs.groupby("dataset", sort=False):
        lines = [
            (
                f"$ rbrl compare plans/paper.toml --dataset {dataset} --method {run.method} --split 0 --store runs/one",
                run,
            )
            for run in part.itertuples()
        ]
        width = max(len(line) for line, _ in lines)
        taken = [sum(getattr(run, f"{name}_seconds") for name in ("tune", "train", "test")) for _, run in lines]
        yield dataset, "\n".join(f"{line:{width}}  # {s:.0f} s" for (line, _), s in zip(lines, taken))
