"""All tables of a run."""

from rbrl.report.chosen import parameters_table
from rbrl.report.data_tables import datasets_table, known_sizes
from rbrl.report.results import Results
from rbrl.report.table import Table
from rbrl.report.tables import ablation_table, friedman_table, pairs_table, ranks_table, results_table, time_table


def all_tables(results: Results, ablation: tuple[str, str] | None = None, ties: str = "average") -> dict[str, Table]:
    """The paper's tables that a run has, by name.

    Parameters
    ----------
    results : Results
    ablation : pair of str, optional
        Methods of Table 6. Default: BRL and RBRL, where the run has both.
    ties : {"average", "minimum"}
        What tied methods share in the table of ranks.
    """
    tables = [
        datasets_table(known_sizes(results)),
        results_table(results),
        ranks_table(results, ties),
        friedman_table(results),
    ]
    pairs = pairs_table(results)
    tables += [pairs] if pairs.rows else []
    pair = ablation or _ablation_pair(results.methods)
    if pair:
        tables.append(ablation_table(results, *pair))
    if results.runs.shape[0]:
        tables += [parameters_table(results), time_table(results)]
    return {table.name: table for table in tables}


def _ablation_pair(methods):
    named = {name.lower(): name for name in methods}
    return (named["brl"], named["rbrl"]) if {"brl", "rbrl"} <= set(named) else None
