"""Reliability diagrams: every dot where its bin is, every method with probabilities a panel."""

import numpy as np
import pandas as pd
import pytest
from fake_rows import make_rows

from rbrl.experiments import Results
from rbrl.experiments.label_figures import bins_by_method, reliability_diagram
from rbrl.metrics import expected_calibration_error, reliability_bins

RNG = np.random.default_rng(0)
P = RNG.random((300, 3))
Y = (RNG.random((300, 3)) < P**2).astype(int)


def test_dots_are_the_means_of_their_bins():
    figure = reliability_diagram(Y, P, n_bins=5, title="bold")
    (axes,) = figure.axes
    bins = reliability_bins(Y, P, 5)
    (dots,) = [one for one in axes.collections if hasattr(one, "get_sizes") and len(one.get_offsets()) == 5]
    np.testing.assert_allclose(dots.get_offsets(), np.column_stack([bins.foretold / bins.n, bins.relevant / bins.n]))
    assert axes.get_title("left") == f"bold, ECE {expected_calibration_error(Y, P, n_bins=5):.3f}"


def test_empty_bins_have_no_dot_and_every_name_a_panel():
    figure = reliability_diagram(Y, {f"m{i}": np.full_like(P, 0.1 * i) for i in range(6)})
    assert len(figure.axes) == 6
    assert all(
        len(one.get_offsets()) == 1 for axes in figure.axes for one in axes.collections if one.get_offsets().any()
    )


def test_missing_labels_are_left_out():
    holes = np.where(RNG.random(Y.shape) < 0.3, np.nan, Y)
    with pytest.raises(ValueError, match="NaN"):
        reliability_diagram(holes, P)
    assert reliability_diagram(holes, P, missing="ignore").axes


def test_bins_of_a_method_are_summed_over_runs():
    columns = ["dataset", "method", "split", "bin", "n", "foretold", "relevant"]
    lines = [(data, "br", split, b, 10.0, 2.0, 1.0) for data in ("sea", "hill") for split in (0, 1) for b in (0, 1)]
    results = Results.from_rows(make_rows(), reliability=pd.DataFrame(lines, columns=columns))
    (found,) = bins_by_method(results).items()
    assert found[0] == "br"
    np.testing.assert_array_equal(found[1].n, [40, 40])
    assert found[1].error == pytest.approx(8 / 80)
    assert bins_by_method(results.only(["rbrl"])) == {}
