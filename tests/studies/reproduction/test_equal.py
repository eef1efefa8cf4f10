"""Equal terms: what was searched where, which means are marked, and the rules of the methods that are added."""

import numpy as np
import pandas as pd
import pytest
from published_rows import published_rows
from ranked_powerset import RankedPowerset
from sklearn.datasets import make_multilabel_classification

from rbrl import LabelPowerset
from rbrl.experiments import Plan
from rbrl.metrics import get_metric
from studies.reproduction import equal
from studies.reproduction.paper import FURTHER, as_published, by_decision_values, further
from studies.reproduction.recorded import RUN_KEYS, Recorded, read_plan, results_folder

PLAN = Plan.from_dict(
    {
        "datasets": ["emotions", "arts"],
        "methods": {
            "rbrl": {"grid": {"ridge": [0.1, 1.0], "nuclear": [1.0, 2.0, 3.0]}},
            "brl": {},
            "br": {"grid": {"C": [1.0, 2.0]}, "by_dataset": {"arts": {"tune_on": "first", "grid": {"C": [1.0]}}}},
            "label-powerset": {"grid": {"C": [1.0]}, "tune_on": "first"},
        },
    }
)


def named(rows, name, of="br", add=0.0):
    """The rows of one method once more, under another name."""
    own = rows[rows.method == of]
    return own.assign(method=name, value=own.value + add)


def test_what_was_searched_where():
    assert equal.tuned_counts(PLAN) == {"BR": "1 of 2", "RBRL": "2 of 2", "Label powerset": "0 of 2"}
    found = equal.search_table(PLAN).frame.set_index("method")
    assert found.points.to_dict() == {"BR": "2; 1 on arts", "RBRL": "6", "Label powerset": "1"}
    assert found["first"].to_dict() == {"BR": "arts", "RBRL": "none", "Label powerset": "all"}


def test_a_mean_that_the_first_split_chose_is_marked():
    results = as_published(published_rows(datasets=["emotions", "arts"]))
    table = next(one for one in equal.mean_tables(results, PLAN) if one.title == "Coverage ↓")
    cells = {row[0].text: dict(zip(table.columns[1:], row[1:])) for row in table.rows}
    assert cells["BR"]["arts"].text.endswith("†")
    assert not cells["BR"]["emotions"].text.endswith("†")
    assert cells["RBRL"]["emotions"].best


def test_a_method_counts_where_it_has_every_data_set():
    rows = published_rows(datasets=["emotions", "arts"])
    whole, part = named(rows, "label-powerset"), named(rows, "ensemble-of-chains")
    assert further(rows) == []
    assert further(pd.concat([rows, whole, part[part.dataset == "arts"]])) == ["Label powerset"]


def test_hard_votes_beside_soft_ones():
    rows = published_rows(datasets=["emotions", "arts"])
    both = pd.concat([rows, named(rows, "clr-soft", of="clr", add=-0.01)])
    assert equal.gain_of_votes(both, get_metric("average_precision")) == pytest.approx(0.01)
    assert equal.gain_of_votes(both, get_metric("coverage")) == pytest.approx(-0.01)
    soft = by_decision_values(both)
    assert "clr-soft" not in set(soft.method)
    old, new = (one[one.method == "clr"].groupby("metric").value.mean() for one in (rows, soft))
    np.testing.assert_allclose(old - new, 0.01)
    assert by_decision_values(rows) is rows


def test_recorded_runs_are_those_of_the_plan():
    """No run is missing, and none has parameters that its search did not offer."""
    plan, rows = read_plan("paper-fair"), Recorded(results_folder()).rows("paper-fair").drop_duplicates(RUN_KEYS)
    assert len(rows) == plan.n_runs
    assert set(rows.status) == {"ok"}
    assert set(further(rows)) == set(FURTHER)
    methods, datasets = ({one.name: one for one in part} for part in (plan.methods, plan.datasets))
    chosen = {(row.dataset, row.method): set() for row in rows.itertuples()}
    for row in rows.itertuples():
        chosen[row.dataset, row.method].add(row.params)
    on_first = [pair for pair in chosen if methods[pair[1]].tuned_on(datasets[pair[0]], plan.tuning.on) == "first"]
    assert all(len(chosen[pair]) == 1 for pair in on_first), "the first split chose for all"


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_ranked_powerset_predicts_the_best_set_and_ranks_it_first(kernel):
    X, Y = make_multilabel_classification(n_samples=120, n_features=8, n_classes=5, random_state=1)
    ranked, plain = (cls(kernel=kernel, C=10.0).fit(X, Y) for cls in (RankedPowerset, LabelPowerset))
    scores, labels = ranked.decision_function(X), plain.predict(X)
    np.testing.assert_array_equal(ranked.predict(X), labels)
    np.testing.assert_array_equal(scores > 0, labels > 0)
    shares = plain.set_params(votes="soft").decision_function(X)
    for row, share, own in zip(scores, shares, labels > 0):
        for side in (own, ~own):
            np.testing.assert_array_equal(np.argsort(row[side], kind="stable"), np.argsort(share[side], kind="stable"))
