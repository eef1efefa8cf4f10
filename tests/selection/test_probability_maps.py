"""Maps from scores to probabilities: against an independent solution, and the ends of the shrinkage."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from rbrl.selection.probabilities import fit_isotonic, fit_sigmoids
from rbrl.selection.thresholds import Scores


def drawn(rng, slopes, intercepts, n_rows, centre=0.0):
    """Scores, and labels in {-1, +1} that their sigmoids make."""
    F = rng.normal(centre, 1.0, (n_rows, len(slopes)))
    return F, np.where(rng.random(F.shape) < expit(F * slopes + intercepts), 1, -1)


def test_a_single_label_has_platts_map():
    F, Y = drawn(np.random.default_rng(0), np.array([1.5]), np.array([-0.5]), 80)
    high, low = (np.sum(Y > 0) + 1) / (np.sum(Y > 0) + 2), 1 / (np.sum(Y < 0) + 2)
    targets = np.where(Y > 0, high, low).ravel()

    def loss(map_):
        margins = map_[0] * F.ravel() + map_[1]
        return np.sum(np.logaddexp(0, margins) - targets * margins)

    best = minimize(loss, [1.0, 0.0], method="BFGS", options={"gtol": 1e-9})
    maps = fit_sigmoids(Scores.from_labels(F, Y))
    np.testing.assert_allclose([maps.slopes[0], maps.intercepts[0]], best.x, rtol=1e-4)


def test_units_of_the_scores_do_not_matter():
    F, Y = drawn(np.random.default_rng(1), np.linspace(0.5, 2, 6), np.linspace(-3, 0, 6), 200)
    plain, scaled = fit_sigmoids(Scores.from_labels(F, Y)), fit_sigmoids(Scores.from_labels(100 * F - 7, Y))
    np.testing.assert_allclose(scaled(100 * F - 7), plain(F), atol=1e-6)


def test_frequent_labels_keep_their_maps_and_rare_ones_lean_on_the_others():
    rng = np.random.default_rng(2)
    slopes, intercepts = rng.normal(2.0, 0.3, 40), np.linspace(-1.0, -5.5, 40)
    F, Y = drawn(rng, slopes, intercepts, 1000)
    together = fit_sigmoids(Scores.from_labels(F, Y)).slopes
    alone = np.array([fit_sigmoids(Scores.from_labels(F[:, [j]], Y[:, [j]])).slopes[0] for j in range(40)])
    moved = np.abs(together - alone)
    # The first ten have some 300 relevant rows each, which leave a standard error of 0.15; the last ten fewer than 60.
    assert moved[:10].mean() < 0.5 * moved[-10:].mean()
    assert moved[:10].max() < 0.3
    assert np.mean((together - slopes)[-10:] ** 2) < np.mean((alone - slopes)[-10:] ** 2)


def test_labels_that_are_alike_are_estimated_better_together():
    rng = np.random.default_rng(3)
    errors = []
    for _ in range(10):
        slopes, intercepts = rng.normal(1.5, 0.2, 20), rng.normal(-2.5, 0.3, 20)
        F, Y = drawn(rng, slopes, intercepts, 60)
        truth = expit(F * slopes + intercepts)
        maps = fit_sigmoids(Scores.from_labels(F, Y))
        single = [fit_sigmoids(Scores.from_labels(F[:, [j]], Y[:, [j]]))(F[:, [j]]) for j in range(20)]
        errors.append([np.mean((P - truth) ** 2) for P in (maps(F), np.hstack(single))])
    together, alone = np.mean(errors, axis=0)
    assert together < 0.7 * alone


def test_no_map_falls():
    rng = np.random.default_rng(4)
    F, Y = drawn(rng, np.array([-3.0, 2.0, 2.0, 2.0]), np.zeros(4), 500)
    maps = fit_sigmoids(Scores.from_labels(F, Y))
    assert maps.slopes[0] == 0
    assert (maps.slopes[1:] > 0).all()
    # The constant that is nearest to the labels is their share; the prior moves it by less than a row in a hundred.
    assert maps(F)[0, 0] == pytest.approx(np.mean(Y[:, 0] > 0), abs=0.01)


def test_separable_labels_have_finite_maps():
    F = np.linspace(-1, 1, 40)[:, None] * np.ones(3)
    Y = np.where(F > 0, 1, -1)
    for part in (slice(None), slice(0, 1)):
        maps = fit_sigmoids(Scores.from_labels(F[:, part], Y[:, part]))
        assert np.isfinite(maps.slopes).all()
        P = maps(F[:, part])
        assert ((P > 0) & (P < 1)).all()


def test_equal_scores_are_no_obstacle():
    Y = np.array([[1, -1], [-1, -1], [1, 1], [-1, -1]])
    P = fit_sigmoids(Scores.from_labels(np.ones((4, 2)), Y))(np.ones((4, 2)))
    assert np.isfinite(P).all()


def test_unknown_entries_count_nothing():
    rng = np.random.default_rng(5)
    F, Y = drawn(rng, np.full(4, 1.5), np.full(4, -1.0), 100)
    doubled = np.vstack([F, np.full_like(F, np.nan)]), np.vstack([Y, np.zeros_like(Y)])
    plain, more = fit_sigmoids(Scores.from_labels(F, Y)), fit_sigmoids(Scores.from_labels(*doubled))
    np.testing.assert_allclose(more.slopes, plain.slopes, rtol=1e-6)
    np.testing.assert_allclose(more.intercepts, plain.intercepts, rtol=1e-6)


def test_isotonic_maps_follow_forms_that_a_sigmoid_cannot():
    rng = np.random.default_rng(6)
    F = rng.uniform(-3, 3, (4000, 2))
    truth = np.where(F > 1, 0.9, np.where(F > -1, 0.5, 0.1))
    Y = np.where(rng.random(F.shape) < truth, 1, -1)
    scores = Scores.from_labels(F, Y)
    maps = fit_sigmoids(scores)
    free = np.column_stack([np.interp(F[:, j], *knots) for j, knots in enumerate(fit_isotonic(scores, maps))])
    assert np.mean((free - truth) ** 2) < 0.5 * np.mean((maps(F) - truth) ** 2)
    assert ((free > 0) & (free < 1)).all()
