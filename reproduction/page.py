"""The page of the reproduction, and the answers that open it."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined

from rbrl.report import (
    KEYS,
    MISSING,
    Cell,
    Results,
    Table,
    compare,
    count,
    number,
    rank_table,
    to_markdown,
    word,
    write_page,
    write_text,
)
from reproduction import cells as beside
from reproduction import claims
from reproduction.causes import Explained, effect_table, explained, far_table
from reproduction.cells import Agreement
from reproduction.cost import cost, cost_tables, hours_text, mean_per_fit
from reproduction.criteria import choice_table, variant_tables
from reproduction.figures import draw_all
from reproduction.paper import ABLATION, OURS, OVERALL, PAPER, SOURCES, as_published, key, published_results
from reproduction.recorded import COMMAND, Recorded, read_plan
from reproduction.studies import penalty_table, solver_table, width_table

TEMPLATE = Path(__file__).parent / "page.md.jinja"
IMAGES = Path("images", "reproduction")
# Parts that are written by hand, each a file in docs/reproduction.
NOTES = ("summary", "fair", "observations", "cells", "ablation", "time", "convergence", "sensitivity", "unsaid", "cost")
VERDICTS = {
    claims.HOLDS: "upheld",
    claims.WEAK: "upheld without significance",
    claims.FAILS: "not upheld",
    claims.UNKNOWN: "not tested",
}


def short_table(
    found: Agreement, far: pd.DataFrame, sources: Mapping[str, Results], rows: pd.DataFrame, effort: pd.DataFrame
) -> Table:
    """Questions that a reader has, and their answers in figures.

    Parameters
    ----------
    found : Agreement
    far : DataFrame
        The far cells; see `reproduction.causes.explain`.
    sources : dict of str to Results
        The paper's results and ours, by name.
    rows, effort : DataFrame
        Of our plan, as a store gives them.
    """
    moved, left = int((far.cause >= 0).sum()), int((far.cause < 0).sum())
    good = f"{found.ours_good} of {found.ours_cells} cells within a distance of 2, or better"
    near = f"{found.within} of {found.cells} cells within a distance of 3; "
    near += f"{moved} far ones moved near by a named change, {left} unexplained"
    lines = [
        (f"Is {OURS} what the paper says?", good),
        ("Are the other methods?", near),
        ("Do the overall ranks agree?", f"Spearman correlation {found.spearman:.2f}"),
        (f"Where does {OURS} rank?", _in_each(sources, _place)),
        (f"Whom does {OURS} beat significantly?", _in_each(sources, _wins)),
        ("Do the seven observations hold?", _in_each(sources, _verdicts)),
        (f"What does {OURS}'s full search cost?", _cost_sentence(rows, effort)),
    ]
    answers = tuple((word(question), word(answer)) for question, answer in lines)
    return Table("short", "In short", ("Question", "Answer"), answers, pd.DataFrame(lines))


def _in_each(sources: Mapping[str, Results], say: Callable[[Results], str]) -> str:
    return "; ".join(f"{name.lower()}: {say(results)}" for name, results in sources.items())


def _place(results: Results) -> str:
    ranks = rank_table(results).loc[OVERALL].dropna()
    if OURS not in ranks:
        return "not known yet"
    place = int((ranks < ranks[OURS]).sum()) + 1
    n_datasets = compare(results, results.metrics[0]).n_datasets
    few = f" over {n_datasets} of {len(results.datasets)} data sets" if n_datasets < len(results.datasets) else ""
    return f"place {place} of {len(ranks)}, overall average rank {ranks[OURS]:.2f}{few}"


def _wins(results: Results) -> str:
    wins, losses = claims.beaten_counts(results)
    pairs = (len(results.methods) - 1) * len(results.metrics)
    return f"{wins} of {pairs} pairs of method and metric" + (f", beaten in {losses}" if losses else "")


def _verdicts(results: Results) -> str:
    found = Counter(claims.judge(observation, results)[0] for observation in claims.observations())
    return ", ".join(f"{found[name]} {VERDICTS[name]}" for name in VERDICTS if found[name])


def _cost_sentence(rows: pd.DataFrame, effort: pd.DataFrame) -> str:
    own, tuned = (frame[frame.method.map(key) == key(OURS)] for frame in (rows, effort))
    if own.empty:
        return "not known yet"
    found = cost(own, tuned)
    hours = hours_text(found.recorded_hours.sum(), found.hours.sum())
    fits = f"{found.n_fits.sum():,} fits in {hours} hours of processor time, half of that on two cores"
    return f"{fits}; {mean_per_fit(tuned, 'evaluations'):.1f} evaluations per fit"


def write_pages(recorded: Recorded, docs: Path) -> list[Path]:
    """Write reproduction.md, its figures, and reproduction.html, the page of our results, into a folder of docs."""
    images = draw_all(recorded, docs / IMAGES)
    said = {"title": "The paper's comparison, reproduced", "command": f"{COMMAND} all"}
    return [
        write_text(docs / "reproduction.md", render(recorded, docs, images)),
        write_page(
            as_published(recorded.rows("paper")),
            docs / "reproduction.html",
            **said,
            plan=read_plan("paper").to_toml(),
        ),
        *(docs / IMAGES / one["file"] for part in images.values() for one in part),
    ]


def render(recorded: Recorded, docs: Path, images: Mapping[str, list[dict[str, str]]]) -> str:
    """The page as text.

    Parameters
    ----------
    recorded : Recorded
    docs : path
        Folder of documentation, with what is written by hand in its folder reproduction.
    images : dict of str to list of dict
        As `reproduction.figures.draw_all` gives them.
    """
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    text = template.render(**_content(recorded, docs), figures=images)
    # Parts that are empty leave gaps.
    lines = [line.rstrip() for line in text.splitlines()]
    kept = [line for i, line in enumerate(lines) if line or (i and lines[i - 1])]
    return "\n".join(kept).strip() + "\n"


def _content(recorded: Recorded, docs: Path) -> dict[str, Any]:
    rows, effort = recorded.rows("paper"), recorded.effort("paper")
    results, with_brl = as_published(rows), as_published(rows, ABLATION)
    known = [plan for plan in SOURCES if recorded.has(plan)]
    both = {PAPER: published_results()} | {SOURCES[plan]: as_published(recorded.rows(plan)) for plan in known}
    ours = {name: one for name, one in both.items() if name != SOURCES["paper-fair"]}
    frame = beside.cells(results)
    far, found = explained(frame, docs, recorded), beside.agreement(results, frame)
    return {
        "command": COMMAND,
        "state": _state(recorded, rows),
        "short": _bare(short_table(found, far.cells, both, rows, effort)),
        "notes": {name: _note(docs / "reproduction" / f"{name}.md") for name in NOTES},
        "fair": _fair(both) if len(both) > len(ours) else None,
        "distance": f"{compare(published_results(), 'coverage').distance:.3f}",
        "verdicts": _bare(claims.verdict_table(both)),
        "claims": _bare(claims.claim_table(both)),
        "counts": _bare(beside.count_table(frame)),
        "agreement": found.sentences(),
        "tuned": _tuned(),
        "legend": beside.LEGEND,
        "cells": [(table.title, _bare(table)) for table in beside.cell_tables(frame)],
        **_far(frame, far),
        "table4": to_markdown(claims.metric_ranks(ours, ties="minimum")),
        "table5": to_markdown(beside.friedman_beside(results)),
        "table7": to_markdown(beside.time_beside(results)),
        "ablation": [to_markdown(make(with_brl)) for make in (beside.ablation_summary, beside.ablation_beside)],
        "solver": _of(recorded, "solver", solver_table),
        "convergence": _of(recorded, "figure3-claims", convergence_table),
        "sensitivity": [_of(recorded, "figure4", width_table), _of(recorded, "figure5", penalty_table)],
        "variants": [to_markdown(table) for table in variant_tables(recorded)],
        "choices": _of(recorded, "criteria", choice_table),
        "costs": [to_markdown(table) for table in cost_tables(rows, effort)],
        "repeat": list(_commands(rows)),
    }


def _of(recorded: Recorded, name: str, make: Callable[[pd.DataFrame], Table]) -> str:
    """A table of what is recorded under a name; nothing if that is not there."""
    return to_markdown(make(recorded.table(name))) if recorded.has_table(name) else ""


def _bare(table: Table) -> str:
    """A table without its title, which stands above it already."""
    return to_markdown(table).partition("\n\n")[2]


def _note(path: Path) -> str:
    """A part of the page that is written by hand; nothing if there is none."""
    return f"\n{path.read_text(encoding='utf-8').strip()}\n\n" if path.is_file() else ""


def _state(recorded: Recorded, rows: pd.DataFrame) -> str:
    """What is recorded, when and with what, in a sentence."""
    facts, plan = recorded.facts("paper"), read_plan("paper")
    runs = rows.drop_duplicates(KEYS)
    machines = " and ".join(value for name, value in facts.items() if name.startswith("machine"))
    link = "[reproduction/plans/paper.toml](../reproduction/plans/paper.toml)"
    versions = ", ".join(dict.fromkeys(map(str, runs.version)))
    done = f"{(runs.status == 'ok').sum()} of {plan.n_runs} runs of {link}"
    return f"{done}, recorded on {facts['date']} with rbrl {versions} ({machines})."


def _fair(sources: Mapping[str, Results]) -> dict[str, str]:
    tables = {"overall": claims.overall_ranks, "beaten": claims.beaten_table, "metrics": claims.metric_ranks}
    return {name: to_markdown(make(sources)) for name, make in tables.items()}


def _tuned() -> str:
    """Which methods are tuned on every split, in a sentence."""
    plan = read_plan("paper")
    every = {m.name: [d.name for d in plan.datasets if m.tuned_on(d, plan.tuning.on) == "every"] for m in plan.methods}
    whole = [name for name, sets in every.items() if len(sets) == len(plan.datasets)]
    parts = [f"{name} on {', '.join(sets)}" for name, sets in every.items() if 0 < len(sets) < len(plan.datasets)]
    text = f"Searched on every split, as in the paper: {', '.join([*whole, *parts])}."
    first = [name for name, sets in every.items() if len(sets) < len(plan.datasets)]
    rest = f" On the other data sets {', '.join(first)} are searched on the first split, and its choice serves all ten."
    return text + (rest if first else "")


def _far(frame: pd.DataFrame, far: Explained) -> dict[str, Any]:
    """Far cells, how many a change moves near, and each cause that was tried with the cells that it explains."""
    distances, parts = far.cells.distance, []
    for i, cause in enumerate(far.causes):
        own = far.cells[far.cells.cause == i]
        table = _bare(far_table(own, cause.title)) if len(own) else ""
        part = {"title": cause.title, "plan": cause.plan("paper"), "text": cause.text, "n": len(own), "table": table}
        parts += [part] if cause.change in far.variants else []
    better, worse = (distances > 0).sum(), (distances < 0).sum()
    return {
        "far": f"{len(far.cells)} cells are far: {better} better than the paper's, {worse} worse.",
        "effects": to_markdown(effect_table(frame, far.causes, far.variants)) if far.variants else "",
        "causes": parts,
        "unexplained": _unexplained(far.cells[far.cells.cause < 0]),
    }


def _unexplained(left: pd.DataFrame) -> str:
    if left.empty:
        return "No far cell is left unexplained."
    table = far_table(left, f"Unexplained: {len(left)} cells")
    # No change moved them: the last column would be empty.
    return to_markdown(replace(table, columns=table.columns[:-1], rows=tuple(row[:-1] for row in table.rows)))


def convergence_table(frame: pd.DataFrame) -> Table:
    """What `reproduction.studies.convergence_claims` found, as a table."""
    rows = []
    for row in frame.to_dict("records"):
        claimed, stopped = (_gap(row[name]) for name in ("gap_claimed", "gap_stop"))
        stop = Cell(MISSING) if row["stop"] != row["stop"] else count(int(row["stop"]))
        names = ("iterations_1e-02", "iterations_1e-03", "iterations_1e-04", "ours")
        reached = [number(row[name], 0) for name in names]
        rows.append((word(row["problem"]), count(row["claimed"]), claimed, stop, stopped, *reached))
    found = ("Claimed", "Gap there", "Authors' stop", "Gap there")
    titles = ("Problem", *found, "To 0.01", "To 0.001", "To 0.0001", "Ours to 0.0001")
    title = "How far from the optimum after how many iterations"
    note = "Iterations of the paper's algorithm, each one evaluation, to certified relative gaps; of ours evaluations."
    return Table("claims", title, titles, tuple(rows), frame, note=note)


def _gap(value: float) -> Cell:
    return Cell(MISSING) if value != value else Cell(f"{value:.1e}", value)


def _commands(rows: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """For each data set the commands that repeat one split of its cells, with the seconds that they took."""
    runs = rows[rows.split == 0].drop_duplicates(KEYS)
    for dataset, part in runs.groupby("dataset", sort=False):
        options = [f"--dataset {dataset} --method {name} --split 0 --store runs/one" for name in part.method]
        lines = [f"$ rbrl compare reproduction/plans/paper.toml {one}" for one in options]
        width, taken = max(map(len, lines)), part.tune_seconds + part.train_seconds + part.test_seconds
        yield dataset, "\n".join(f"{line:{width}}  # {seconds:.0f} s" for line, seconds in zip(lines, taken))
