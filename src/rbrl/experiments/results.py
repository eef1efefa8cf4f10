"""`Results`: the rows of a run, averaged over splits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import floor, log10
from typing import NamedTuple, Self

import numpy as np
import pandas as pd

from rbrl.experiments.cells import DIGITS, as_shown
from rbrl.metrics import Metric, get_metric

# The columns that tell one run from another.
RUN_KEYS = ["dataset", "method", "split"]
BINNED = [*RUN_KEYS, "bin", "n", "foretold", "relevant"]
NEEDED = [*RUN_KEYS, "metric", "value", "status"]
SMALL = 0.01  # means below it get three digits that count, instead of three after the point
SHORTEST = 1e-4  # seconds; clocks tell nothing below, and a logarithm needs something above zero


class Sizes(NamedTuple):
    """What a card of the catalogue says, for a data set that has none.

    Examples
    --------
    >>> from rbrl.experiments.results import Sizes
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
        One row per (dataset, metric, method): mean, std and n, the number of splits behind them. The std of a single split
        is NaN.
    datasets, methods : tuple of str
        In the order of the tables.
    metrics : tuple of Metric
    n_splits : int
        Splits that a complete run has; 0 if unknown.
    runs : DataFrame
        One row per (dataset, method, split): status, error, params, times, gap, seed, version, machine; may be empty.
    sizes : dict of str to Sizes
        Of data sets outside the catalogue, as far as they are known.
    reliability : DataFrame
        What came of probabilities, in bins; see `rbrl.experiments.Store.reliability`. May be empty.
    as_printed : bool
        Whether methods whose means look equal in the tables are equal to ranks and tests, too: the default, so that no
        place rests on digits that nobody sees. Otherwise ranks and tests take the means in full.

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
    reliability: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=BINNED))
    as_printed: bool = True
    # Wide tables by (metric, column): pages and tests ask for the same ones again and again.
    _tables: dict[tuple[str, str], pd.DataFrame] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_rows(
        cls, rows: pd.DataFrame, datasets: pd.DataFrame | None = None, reliability: pd.DataFrame | None = None
    ) -> Self:
        """Average the rows of a store; a failed run counts as missing, never as a number.

        Parameters
        ----------
        rows : DataFrame
            See `rbrl.experiments.Store.rows`.
        datasets : DataFrame, optional
            Sizes of data sets outside the catalogue; see `rbrl.experiments.Store.datasets`.
        reliability : DataFrame, optional
            What came of probabilities; see `rbrl.experiments.Store.reliability`.

        Returns
        -------
        Results

        Examples
        --------
        >>> import pandas as pd
        >>> from rbrl.experiments import Results
        >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
        ...                      "value": [0.2, 0.1], "status": "ok"})
        >>> results = Results.from_rows(rows)
        >>> results.methods, results.datasets
        (('brl', 'rbrl'), ('sea',))
        """
        missing = [column for column in NEEDED if column not in rows]
        if missing:
            raise ValueError(f"Rows need the columns {', '.join(NEEDED)}. Missing: {', '.join(missing)}.")
        if rows.empty:
            raise ValueError("There are no rows to report: the run has not finished a single split yet. Got 0 rows.")
        names = {name: get_metric(name).name for name in rows.metric.dropna().unique()}
        rows = rows.assign(metric=rows.metric.map(names))
        good = rows[(rows.status == "ok") & rows.metric.notna() & rows.value.notna()]
        groups = good.groupby(["dataset", "metric", "method"], sort=False).value
        return cls(
            summary=groups.agg(mean="mean", std="std", n="size").reset_index(),
            datasets=_in_order(rows.dataset),
            methods=_in_order(rows.method),
            metrics=_metrics(rows.metric),
            n_splits=int(rows.split.nunique()),
            runs=rows.drop(columns=["metric", "value"]).drop_duplicates(RUN_KEYS).reset_index(drop=True),
            sizes={} if datasets is None else {row[0]: Sizes(*row[1:]) for row in datasets.itertuples(index=False)},
            reliability=pd.DataFrame(columns=BINNED) if reliability is None else reliability,
        )

    @classmethod
    def from_summary(cls, summary: pd.DataFrame) -> Self:
        """Results of which only means and standard deviations are known, such as published ones.

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
        return cls(summary[columns], _in_order(summary.dataset), _in_order(summary.method), _metrics(summary.metric))

    def means(self, metric: str | Metric) -> pd.DataFrame:
        """Means of one metric, data sets x methods; NaN where there is none.

        Parameters
        ----------
        metric : str or Metric

        Returns
        -------
        DataFrame

        Examples
        --------
        >>> import pandas as pd
        >>> from rbrl.experiments import Results
        >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
        ...                      "value": [0.2, 0.1], "status": "ok"})
        >>> results = Results.from_rows(rows)
        >>> results.means("hamming_loss").loc["sea"].to_dict()
        {'brl': 0.2, 'rbrl': 0.1}
        """
        return self._wide(metric, "mean")

    def stds(self, metric: str | Metric) -> pd.DataFrame:
        """Standard deviations of one metric, data sets x methods; NaN where there is only one split.

        Parameters
        ----------
        metric : str or Metric

        Returns
        -------
        DataFrame
        """
        return self._wide(metric, "std")

    def counts(self, metric: str | Metric) -> pd.DataFrame:
        """Splits behind each mean, data sets x methods.

        Parameters
        ----------
        metric : str or Metric

        Returns
        -------
        DataFrame
        """
        return self._wide(metric, "n").fillna(0).astype(int)

    def decimals(self, metric: str | Metric, dataset: str) -> int:
        """Digits after the point that tables show: three, or more where all means are small, so that they differ.

        A Hamming loss over thousands of labels is 0.001 for every method.

        Parameters
        ----------
        metric : str or Metric
        dataset : str

        Returns
        -------
        int
        """
        largest = self.means(metric).loc[dataset].abs().max()
        return DIGITS - 1 - floor(log10(largest)) if 0 < largest < SMALL else DIGITS

    def to_compare(self, metric: str | Metric) -> pd.DataFrame:
        """Means that ranks and tests are made of, data sets x methods: as tables show them; see `as_printed`.

        Parameters
        ----------
        metric : str or Metric

        Returns
        -------
        DataFrame
        """
        means = self.means(metric)
        if not self.as_printed:
            return means
        lines = {name: as_shown(line, self.decimals(metric, name)) for name, line in means.iterrows()}
        return pd.DataFrame(lines, index=means.columns).T.rename_axis(means.index.name)

    def without_probabilities(self, metric: str | Metric) -> tuple[str, ...]:
        """Methods without a value of a metric of probabilities anywhere, but with values of others: they have none.

        Parameters
        ----------
        metric : str or Metric

        Returns
        -------
        tuple of str
            Empty for a metric that needs labels or scores.
        """
        if get_metric(metric).needs != "probabilities":
            return ()
        found, others = self.means(metric), [self.means(m) for m in self.metrics if m.needs != "probabilities"]
        plain = [name for name in self.methods if not found[name].notna().any()]
        return tuple(name for name in plain if any(means[name].notna().any() for means in others))

    def _wide(self, metric: str | Metric, column: str) -> pd.DataFrame:
        key = get_metric(metric).name, column
        if key not in self._tables:
            chosen = self.summary[self.summary.metric == key[0]]
            wide = chosen.pivot(index="dataset", columns="method", values=column)
            self._tables[key] = wide.reindex(index=list(self.datasets), columns=list(self.methods))
        return self._tables[key]

    @property
    def has_runs(self) -> bool:
        """Whether runs are known, with their times and parameters, and not only means."""
        return len(self.runs) > 0

    @property
    def failures(self) -> pd.DataFrame:
        """Runs that failed: dataset, method, split, error."""
        return self.runs.loc[self.runs.status == "failed", [*RUN_KEYS, "error"]].reset_index(drop=True)

    def seconds(self, column: str) -> pd.DataFrame:
        """Mean seconds per run, data sets x methods; `column` is one of tune_seconds, train_seconds, test_seconds.

        Parameters
        ----------
        column : {"tune_seconds", "train_seconds", "test_seconds"}

        Returns
        -------
        DataFrame
            NaN where there is no time.
        """
        if column not in self.runs:
            return pd.DataFrame(index=list(self.datasets), columns=list(self.methods), dtype=float)
        good = self.runs[self.runs.status == "ok"].astype({column: float})
        wide = good.pivot_table(index="dataset", columns="method", values=column, aggfunc="mean")
        return wide.reindex(index=list(self.datasets), columns=list(self.methods))

    def training_seconds(self) -> pd.Series:
        """Geometric mean over data sets of each method's seconds to train.

        Returns
        -------
        Series
            By method.
        """
        return np.exp(np.log(self.seconds("train_seconds").clip(lower=SHORTEST)).mean())

    def only(self, methods: Iterable[str]) -> Self:
        """The same results for some of the methods, in the order given.

        Parameters
        ----------
        methods : iterable of str
            Of the run.

        Returns
        -------
        Results

        Examples
        --------
        >>> import pandas as pd
        >>> from rbrl.experiments import Results
        >>> rows = pd.DataFrame({"dataset": "sea", "method": ["brl", "rbrl"], "split": 0, "metric": "hamming_loss",
        ...                      "value": [0.2, 0.1], "status": "ok"})
        >>> results = Results.from_rows(rows)
        >>> results.only(["rbrl"]).methods
        ('rbrl',)
        """
        methods = tuple(methods)
        unknown = [name for name in methods if name not in self.methods]
        if unknown:
            raise ValueError(f"The run has the methods {', '.join(self.methods)}. Got {', '.join(unknown)} instead.")
        frames = {"summary": self.summary, "runs": self.runs, "reliability": self.reliability}
        kept = {name: frame[frame.method.isin(methods)] for name, frame in frames.items()}
        return replace(self, methods=methods, **kept, _tables={})


def _in_order(values: pd.Series) -> tuple[str, ...]:
    return tuple(str(value) for value in dict.fromkeys(values))


def _metrics(names: pd.Series) -> tuple[Metric, ...]:
    return tuple(dict.fromkeys(get_metric(name) for name in dict.fromkeys(names.dropna())))
