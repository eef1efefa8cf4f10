"""`Results`: the rows of a run, averaged over splits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import floor, log10
from typing import NamedTuple, Self

import numpy as np
import pandas as pd

from rbrl.experiments.store import RELIABILITY_COLUMNS
from rbrl.experiments.tables import TABLE_DECIMALS, as_shown
from rbrl.metrics import Metric, get_metric

# Columns that identify a run.
RUN_KEYS = ["dataset", "method", "split"]
REQUIRED_COLUMNS = [*RUN_KEYS, "metric", "value", "status"]
# Means below this value are shown with three significant digits instead of three decimals.
SMALL_MEAN = 0.01
# Shortest time that a clock measures reliably; a logarithm needs a positive number.
SHORTEST_SECONDS = 1e-4


class Sizes(NamedTuple):
    """Sizes of a data set that is not in the catalogue.

    Examples
    --------
    >>> Sizes(1000, 20, 5, 1.5, 0.3).n_labels
    5
    """

    n_samples: int
    n_features: int
    n_labels: int
    cardinality: float
    density: float
    domain: str = ""


@dataclass(frozen=True)
class Results:
    """Mean and standard deviation of every metric, for every method on every data set.

    Parameters
    ----------
    summary : DataFrame
        Columns dataset, metric, method, mean, std and n, the number of splits. The standard
        deviation of a single split is NaN.
    datasets, methods : tuple of str
        Names, in the order of the tables.
    metrics : tuple of Metric
        Metrics, in the order of the tables.
    n_splits : int
        Number of splits of a complete run; 0 if unknown.
    runs : DataFrame
        One row per (dataset, method, split) with status, error, params, times, gap, seed, version
        and machine; may be empty.
    sizes : dict of str to Sizes
        Known sizes of data sets that are not in the catalogue.
    reliability : DataFrame
        Bins of probabilities; see `rbrl.experiments.Store.reliability`. May be empty.
    as_printed : bool
        If True, ranks and tests use the means as tables show them, so that methods that look equal
        are equal. Otherwise they use the means in full precision.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbrl.experiments import Results
    >>> rows = pd.DataFrame({"dataset": "sea", "method": ["br", "br", "rbrl", "rbrl"], "split": [0, 1, 0, 1],
    ...                      "metric": "hamming_loss", "value": [0.2, 0.3, 0.1, 0.2], "status": "ok"})
    >>> Results.from_rows(rows).means("hamming_loss").round(3).to_dict("index")
    {'sea': {'br': 0.25, 'rbrl': 0.15}}
    """

    summary: pd.DataFrame
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    metrics: tuple[Metric, ...]
    n_splits: int = 0
    runs: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=[*RUN_KEYS, "status", "error"]))
    sizes: Mapping[str, Sizes] = field(default_factory=dict)
    reliability: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=RELIABILITY_COLUMNS))
    as_printed: bool = True
    # Wide tables by (metric or "every metric", column), kept because pages and tests use each of them many times.
    _tables: dict[tuple[str, str], pd.DataFrame] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_rows(
        cls, rows: pd.DataFrame, datasets: pd.DataFrame | None = None, reliability: pd.DataFrame | None = None
    ) -> Self:
        """Average the rows of a store; a failed run counts as missing.

        Parameters
        ----------
        rows : DataFrame
            Rows of a store; see `rbrl.experiments.Store.rows`.
        datasets : DataFrame, optional
            Sizes of data sets outside the catalogue; see `rbrl.experiments.Store.datasets`.
        reliability : DataFrame, optional
            Bins of probabilities; see `rbrl.experiments.Store.reliability`.

        Returns
        -------
        Results
        """
        missing = [column for column in REQUIRED_COLUMNS if column not in rows]
        if missing:
            raise ValueError(f"Rows need the columns {', '.join(REQUIRED_COLUMNS)}. Missing: {', '.join(missing)}.")
        if rows.empty:
            raise ValueError("There are no rows to report: the run has not finished a single split yet. Got 0 rows.")
        names = {name: get_metric(name).name for name in rows.metric.dropna().unique()}
        rows = rows.assign(metric=rows.metric.map(names))
        good = rows[(rows.status == "ok") & rows.metric.notna() & rows.value.notna()]
        groups = good.groupby(["dataset", "metric", "method"], sort=False).value
        return cls(
            summary=groups.agg(mean="mean", std="std", n="size").reset_index(),
            datasets=_distinct(rows.dataset),
            methods=_distinct(rows.method),
            metrics=_metrics(rows.metric),
            n_splits=int(rows.split.nunique()),
            runs=rows.drop(columns=["metric", "value"]).drop_duplicates(RUN_KEYS).reset_index(drop=True),
            sizes={} if datasets is None else {row[0]: Sizes(*row[1:]) for row in datasets.itertuples(index=False)},
            reliability=pd.DataFrame(columns=RELIABILITY_COLUMNS) if reliability is None else reliability,
        )

    @classmethod
    def from_summary(cls, summary: pd.DataFrame) -> Self:
        """Make results from known means and standard deviations, such as published ones.

        Parameters
        ----------
        summary : DataFrame
            Columns dataset, metric, method, mean and std.

        Returns
        -------
        Results

        Examples
        --------
        >>> import pandas as pd
        >>> from rbrl.experiments import Results
        >>> summary = pd.DataFrame({"dataset": "sea", "metric": "hamming_loss", "method": ["brl", "rbrl"],
        ...                         "mean": [0.2, 0.1], "std": 0.0})
        >>> Results.from_summary(summary).methods
        ('brl', 'rbrl')
        """
        summary = summary.assign(metric=[get_metric(name).name for name in summary.metric], n=0)
        columns = ["dataset", "metric", "method", "mean", "std", "n"]
        return cls(summary[columns], _distinct(summary.dataset), _distinct(summary.method), _metrics(summary.metric))

    def means(self, metric: str | Metric) -> pd.DataFrame:
        """Return the means of one metric, data sets x methods; NaN where there is none."""
        return self._wide(metric, "mean")

    def stds(self, metric: str | Metric) -> pd.DataFrame:
        """Return the standard deviations of one metric, data sets x methods; NaN for a single split."""
        return self._wide(metric, "std")

    def counts(self, metric: str | Metric) -> pd.DataFrame:
        """Return the number of splits of each mean, data sets x methods."""
        return self._wide(metric, "n").fillna(0).astype(int)

    def decimals(self, metric: str | Metric, dataset: str) -> int:
        """Return the number of decimals in tables: three, or more if all means are small.

        With three decimals, a Hamming loss over thousands of labels would be 0.001 for every method.
        """
        largest = self.means(metric).loc[dataset].abs().max()
        return TABLE_DECIMALS - 1 - floor(log10(largest)) if 0 < largest < SMALL_MEAN else TABLE_DECIMALS

    def to_compare(self, metric: str | Metric) -> pd.DataFrame:
        """Return the means for ranks and tests, data sets x methods; see `as_printed`."""
        means = self.means(metric)
        if not self.as_printed:
            return means
        key = get_metric(metric).name, "as printed"
        if key not in self._tables:
            lines = {name: as_shown(line, self.decimals(metric, name)) for name, line in means.iterrows()}
            self._tables[key] = pd.DataFrame(lines, index=means.columns).T.rename_axis(means.index.name)
        return self._tables[key]

    def methods_without_probabilities(self, metric: str | Metric) -> tuple[str, ...]:
        """Return the methods that have labels or scores, but no value of this metric of probabilities.

        The result is empty for a metric that does not need probabilities.
        """
        if get_metric(metric).needs != "probabilities":
            return ()
        means = self.means(metric)
        others = [self.means(other) for other in self.metrics if other.needs != "probabilities"]
        without = [name for name in self.methods if not means[name].notna().any()]
        return tuple(name for name in without if any(other[name].notna().any() for other in others))

    def _wide(self, metric: str | Metric, column: str) -> pd.DataFrame:
        """Return one column of the summary, data sets x methods; it is kept: do not change it."""
        key = get_metric(metric).name, column
        if key not in self._tables:
            rows = self.summary[self.summary.metric == key[0]]
            wide = rows.pivot(index="dataset", columns="method", values=column)
            self._tables[key] = wide.reindex(index=list(self.datasets), columns=list(self.methods))
        return self._tables[key]

    @property
    def has_runs(self) -> bool:
        """True if the single runs are known, with their times and parameters."""
        return len(self.runs) > 0

    @property
    def failures(self) -> pd.DataFrame:
        """Failed runs: dataset, method, split, error."""
        return self.runs.loc[self.runs.status == "failed", [*RUN_KEYS, "error"]].reset_index(drop=True)

    def seconds(self, column: str) -> pd.DataFrame:
        """Return the mean seconds per run, data sets x methods.

        Parameters
        ----------
        column : {"tune_seconds", "train_seconds", "test_seconds"}

        Returns
        -------
        DataFrame
            Seconds; NaN where no time is known.
        """
        if column not in self.runs:
            return pd.DataFrame(index=list(self.datasets), columns=list(self.methods), dtype=float)
        key = "every metric", column
        if key not in self._tables:
            good = self.runs[self.runs.status == "ok"].astype({column: float})
            wide = good.pivot_table(index="dataset", columns="method", values=column, aggfunc="mean")
            self._tables[key] = wide.reindex(index=list(self.datasets), columns=list(self.methods))
        return self._tables[key]

    def training_seconds(self) -> pd.Series:
        """Return the training time of each method: the geometric mean over the data sets whose time is known."""
        return np.exp(np.log(self.seconds("train_seconds").clip(lower=SHORTEST_SECONDS)).mean())

    def only(self, methods: Iterable[str]) -> Self:
        """Return the results of some of the methods, in the given order.

        Parameters
        ----------
        methods : iterable of str
            Names of methods of the run.

        Returns
        -------
        Results
        """
        methods = tuple(methods)
        unknown = [name for name in methods if name not in self.methods]
        if unknown:
            raise ValueError(f"No method of this run is called {', '.join(unknown)}. It has {', '.join(self.methods)}.")
        frames = {"summary": self.summary, "runs": self.runs, "reliability": self.reliability}
        kept = {name: frame[frame.method.isin(methods)] for name, frame in frames.items()}
        return replace(self, methods=methods, **kept, _tables={})


def _distinct(values: pd.Series) -> tuple[str, ...]:
    """Return the different values as text, in the order in which they first occur."""
    return tuple(str(value) for value in dict.fromkeys(values))


def _metrics(names: pd.Series) -> tuple[Metric, ...]:
    """Return the metrics with these names, each once, in order of their first occurrence."""
    return tuple(dict.fromkeys(get_metric(name) for name in dict.fromkeys(names.dropna())))
