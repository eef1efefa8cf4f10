"""The pages of the reproduction: Markdown from templates, and on request one HTML file of the same text."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined

from rbrl.experiments import RUN_KEYS, Results, compare, rank_table
from rbrl.experiments.tables import MISSING, Cell, Table, count, join, number, to_markdown, word, write_text
from rbrl.metrics import get_metric
from rbrl.registry import METHODS
from studies.reproduction import cells as beside
from studies.reproduction import claims, equal, verdicts
from studies.reproduction.causes import Explained, effect_table, explained, far_table
from studies.reproduction.cost import cost_tables
from studies.reproduction.criteria import CHOSEN_ON, choice_table, variant_tables
from studies.reproduction.figures import draw_all, lead_table
from studies.reproduction.html import to_page
from studies.reproduction.paper import (
    ABLATION,
    OURS,
    OVERALL,
    PAPER,
    SOFT_CLR,
    SOURCES,
    as_published,
    by_decision_values,
    further,
    paper_methods,
    published_results,
)  # fmt: skip
from studies.reproduction.phrases import Leads, Verdicts, oracle_parts, tuning_parts
from studies.reproduction.recorded import COMMAND, Recorded, by_hand, read_plan
from studies.reproduction.studies import penalty_table, solver_table, width_table

TEMPLATES = Path(__file__).parent / "pages"
IMAGES = Path("images", "reproduction")
# The first page, and the others with their contents.
FIRST = "reproduction"
PAGES = {
    "verdicts": "RBRL against each method: differences, effect sizes, tests; tuning on the first split or on every one",
    "equal": "equal terms: what was searched for each method and where, and every mean",
    "table3": "Table 3 cell by cell, which cells are far, and the changes that move them near",
    "oracle": "every point of the grid where cells are far",
    "claims": "the seven observations, claim by claim",
    "ranks": "Tables 4 and 5, Figures 1 and 2: average ranks, Friedman's test, critical-difference diagrams",
    "ablation": "Table 6: RBRL without its ranking term",
    "time": "Table 7: seconds, and our solver against the authors' algorithm",
    "studies": "Figures 3 to 5: convergence and sensitivity",
    "open-choices": "what the paper leaves open: criterion, splits that are searched, standardisation",
    "cost": "fits and hours",
    "commands": "commands that repeat it all",
}
# Parts that are written by hand, each a file in studies/reproduction/notes.
NOTES = ("observations", "cells", "ablation", "time", "convergence", "sensitivity", "choices", "cost")


def write_pages(recorded: Recorded, docs: Path, html: Path | None = None) -> list[Path]:
    """Write reproduction.md, the pages that it links to and their figures.

    Parameters
    ----------
    recorded : Recorded
    docs : path
        Folder of the documentation.
    html : path, optional
        File for all pages and figures together; default: none is written.

    Returns
    -------
    list of Path
        The files that were written.
    """
    images = draw_all(recorded, docs / IMAGES)
    texts = render(recorded, images)
    files = [write_text(docs / _place(name), text) for name, text in texts.items()]
    files += [docs / IMAGES / one["file"] for part in images.values() for one in part]
    if html:
        page = to_page(texts[FIRST], {name: texts[name] for name in PAGES}, PAGES, docs)
        files.append(write_text(html, page))
    return files


def _place(name: str) -> Path:
    return Path(f"{FIRST}.md") if name == FIRST else Path(FIRST, f"{name}.md")


def render(recorded: Recorded, images: Mapping[str, list[dict[str, str]]]) -> dict[str, str]:
    """Return the text of every page by its name.

    Parameters
    ----------
    recorded : Recorded
    images : dict of str to list of dict
        Result of `studies.reproduction.figures.draw_all`.
    """
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    content = _content(recorded) | {"figures": images, "pages": list(PAGES.items())}
    texts = {}
    for name in (FIRST, *PAGES):
        template = environment.from_string((TEMPLATES / f"{name}.md.jinja").read_text(encoding="utf-8"))
        # Parts that are empty leave gaps.
        lines = [line.rstrip() for line in template.render(**content).splitlines()]
        kept = [line for i, line in enumerate(lines) if line or (i and lines[i - 1])]
        texts[name] = "\n".join(kept).strip() + "\n"
    return texts


def _content(recorded: Recorded) -> dict[str, Any]:
    """Return everything that a template may show."""
    rows, effort = recorded.rows("paper"), recorded.effort("paper")
    results, with_brl = as_published(rows), as_published(rows, ABLATION)
    known = [plan for plan in SOURCES if recorded.has(plan)]
    both = {PAPER: published_results()} | {SOURCES[plan]: as_published(recorded.rows(plan)) for plan in known}
    ours = {name: one for name, one in both.items() if name != SOURCES["paper-fair"]}
    frame = beside.cells(results)
    far, found = explained(frame, recorded), beside.agreement(results, frame)
    return {
        "command": COMMAND,
        "state": _state(recorded, rows),
        "notes": {name: _note(name) for name in NOTES},
        **_verdicts(both, recorded),
        "equal_terms": _equal_terms(recorded) if recorded.has("paper-fair") else None,
        "rope": verdicts.ROPE,
        **_smallest_hamming(results),
        "grids": _grids(),
        "n_datasets": len(results.datasets),
        "fair": _fair(both) if len(both) > len(ours) else None,
        "distance": f"{compare(published_results(), 'coverage').distance:.3f}",
        "claims_table": _bare(claims.verdict_table(both)),
        "claims": _bare(claims.claim_table(both)),
        "ranks": _overall(both),
        "yardsticks": _bare(beside.yardstick_table(frame, CHOSEN_ON)),
        "within": _within(frame, far, found),
        "counts": _bare(beside.count_table(frame)),
        "agreement": found.sentences(),
        "tuned": _tuned(),
        "tuning": tuning_parts(recorded),
        "oracle": oracle_parts(recorded),
        "legend": beside.LEGEND,
        "cells": [(table.title, _bare(table)) for table in beside.cell_tables(frame)],
        **_far(frame, far),
        "table4": to_markdown(claims.metric_ranks(ours, ties="minimum")),
        "table5": to_markdown(beside.friedman_beside(results)),
        "table7": _bare(beside.time_beside(results)),
        "ablation": [to_markdown(make(with_brl)) for make in (beside.ablation_summary, beside.ablation_beside)],
        "solver": _of(recorded, "solver", solver_table),
        "convergence": _of(recorded, "figure3-claims", convergence_table),
        "sensitivity": [_of(recorded, "figure4", width_table), _of(recorded, "figure5", penalty_table)],
        "variants": [to_markdown(table) for table in variant_tables(recorded)],
        "choices": _of(recorded, "criteria", choice_table),
        "costs": [to_markdown(table) for table in cost_tables(rows, effort)],
        "repeat": list(_commands(rows)),
    }


def _verdicts(both: Mapping[str, Results], recorded: Recorded) -> dict[str, Any]:
    """Return the verdicts by several results; without leads if RBRL or equal terms are not recorded."""
    hard, fair = (SOURCES[plan] for plan in ("paper", "paper-fair"))
    tuned = {}
    if fair in both:
        rows = recorded.rows("paper-fair")
        tuned[fair] = {equal.COLUMN: equal.tuned_counts(read_plan("paper-fair"))}
        both = {**both, fair: as_published(rows, *further(rows))}
    frames = {name: verdicts.verdicts(results) for name, results in both.items()}
    frames = {name: frame for name, frame in frames.items() if len(frame)}
    grids = {name: verdicts.verdict_grid(frame, name, tuned.get(name)) for name, frame in frames.items()}
    content: dict[str, Any] = {
        "leads": None,
        "artefact": "",
        "verdict_grids": [to_markdown(grid) for grid in grids.values()],
        "verdict_rows": _bare(verdicts.verdict_rows(frames)),
    }
    if {hard, fair} <= set(frames):
        soft = as_published(by_decision_values(rows))
        lead = verdicts.artefact(both[hard], soft, lead_table(both[hard], soft).rival.unique())
        content["leads"], content["artefact"] = Leads(lead), to_markdown(verdicts.artefact_table(lead))
        content["equal"], content["published"] = (
            Verdicts(frames[fair], grids[fair]),
            Verdicts(frames[hard], grids[hard]),
        )
    return content


def _equal_terms(recorded: Recorded) -> dict[str, Any]:
    """Return the searches on equal terms, every mean, and the gain of CLR's votes."""
    plan, rows = read_plan("paper-fair"), recorded.rows("paper-fair")
    dates = recorded.dates("paper-fair")
    return {
        "n_runs": int((rows.drop_duplicates(RUN_KEYS).status == "ok").sum()),
        "n_all": plan.n_runs,
        "recorded": join([f"{n:,} on {date}" for date, n in dates.items()]) if dates else "not dated",
        "searches": _bare(equal.search_table(plan)),
        "means": [to_markdown(table) for table in equal.mean_tables(as_published(rows, *further(rows)), plan)],
        "mark": equal.MARK,
        "gain_of_votes": (
            f"{equal.gain_of_votes(rows, get_metric('average_precision')):.3f}" if SOFT_CLR in set(rows.method) else ""
        ),
    }


def _overall(sources: Mapping[str, Results]) -> str:
    ranks = {name: rank_table(results).loc[OVERALL].get(OURS, float("nan")) for name, results in sources.items()}
    return ", ".join(f"{rank:.2f} ({name.lower()})" for name, rank in ranks.items() if rank == rank)


def _smallest_hamming(results: Results) -> dict[str, str]:
    """Return RBRL's smallest mean Hamming loss and its data set."""
    table = results.means("hamming_loss")
    if OURS not in table:
        return {"smallest": "not known yet", "smallest_on": "any set"}
    return {"smallest": f"{table[OURS].min():.3f}", "smallest_on": str(table[OURS].idxmin())}


def _grids() -> str:
    """Return the number of points of each method of Table 3 in the paper's grid, in words."""
    sizes = {
        m.title: sum(prod(map(len, grid.values())) for grid in m.grids) for m in METHODS if m.title in paper_methods()
    }
    by_size = {
        size: [title for title in sizes if sizes[title] == size] for size in sorted(set(sizes.values()), reverse=True)
    }
    return ", ".join(f"{join(titles)} {size}" for size, titles in by_size.items())


def _within(frame: pd.DataFrame, far: Explained, found: beside.Agreement) -> dict[str, Any]:
    """Count the cells that are near by both yardsticks, and the far ones."""
    known = frame[frame.kind != "missing"]
    own, others = known[known.method == OURS], known[~known.dataset.isin(CHOSEN_ON)]
    ours, every = beside.yardsticks(own), beside.yardsticks(known)
    return {
        **{"ours": len(own), "ours_sd": ours["sd2_or_better"], "ours_se": ours["se2"]},
        **{"all": len(known), "all_sd": every["sd3"], "all_se": every["se2"]},
        **{"others": len(others), "others_sd": beside.yardsticks(others)["sd3"]},
        **{"far": len(far.cells), "moved": int((far.cells.cause >= 0).sum()), "left": int((far.cells.cause < 0).sum())},
        "spearman": f"{found.spearman:.2f}" if found.spearman == found.spearman else "an amount not known yet",
    }


def _of(recorded: Recorded, name: str, make: Callable[[pd.DataFrame], Table]) -> str:
    """Return the table of a recorded frame, or nothing if it is not recorded."""
    return to_markdown(make(recorded.table(name))) if recorded.has_table(name) else ""


def _bare(table: Table) -> str:
    """Return a table without its title, which the page has above it."""
    return to_markdown(table).partition("\n\n")[2]


def _note(name: str) -> str:
    """Return a hand-written part of a page, or nothing if there is none."""
    path = by_hand(f"notes/{name}.md")
    return f"\n{path.read_text(encoding='utf-8').strip()}\n\n" if path.is_file() else ""


def _state(recorded: Recorded, rows: pd.DataFrame) -> str:
    """Return a sentence about the recorded runs, their date and their machine."""
    facts, plan = recorded.facts("paper"), read_plan("paper")
    runs = rows.drop_duplicates(RUN_KEYS)
    machines = " and ".join(value for name, value in facts.items() if name.startswith("machine"))
    link = "[studies/reproduction/plans/paper.toml](../studies/reproduction/plans/paper.toml)"
    versions = ", ".join(dict.fromkeys(map(str, runs.version)))
    done = f"{(runs.status == 'ok').sum()} of {plan.n_runs} runs of {link}"
    return f"{done}, recorded on {facts['date']} with rbrl {versions} ({machines})."


def _fair(sources: Mapping[str, Results]) -> dict[str, str]:
    tables = {"overall": claims.overall_ranks, "beaten": claims.beaten_table, "metrics": claims.metric_ranks}
    return {name: to_markdown(make(sources)) for name, make in tables.items()}


def _tuned() -> str:
    """Return a sentence about the methods that are tuned on every split."""
    plan = read_plan("paper")
    every = {m.name: [d.name for d in plan.datasets if m.tuned_on(d, plan.tuning.on) == "every"] for m in plan.methods}
    whole = [name for name, sets in every.items() if len(sets) == len(plan.datasets)]
    parts = [f"{name} on {', '.join(sets)}" for name, sets in every.items() if 0 < len(sets) < len(plan.datasets)]
    text = f"Searched on every split, as in the paper: {', '.join([*whole, *parts])}."
    first = [name for name, sets in every.items() if len(sets) < len(plan.datasets)]
    rest = f" On the other data sets {', '.join(first)} are searched on the first split, and its choice serves all ten."
    return text + (rest if first else "")


def _far(frame: pd.DataFrame, far: Explained) -> dict[str, Any]:
    """Return the far cells, the numbers that changes move near, and each cause with the cells that it explains."""
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
    """Result of `studies.reproduction.studies.convergence_claims` as a table."""
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
    """Yield each data set with the commands that repeat one split of its cells, and their seconds."""
    runs = rows[rows.split == 0].drop_duplicates(RUN_KEYS)
    for dataset, part in runs.groupby("dataset", sort=False):
        options = [f"--dataset {dataset} --method {name} --split 0 --store runs/one" for name in part.method]
        lines = [f"$ rbrl compare studies/reproduction/plans/paper.toml {one}" for one in options]
        width, taken = max(map(len, lines)), part.tune_seconds + part.train_seconds + part.test_seconds
        yield dataset, "\n".join(f"{line:{width}}  # {seconds:.0f} s" for line, seconds in zip(lines, taken))
