"""What a fit claims beside what is true."""

import warnings
from dataclasses import dataclass

import numpy as np

from rbrl.exceptions import ConvergenceWarning, MissingLabelsWarning, ScalingWarning

from .witness import lowest_value

# `objective_` is that of the stored coefficients, relatively.
SAME = 1e-9
# What the judge's own arithmetic leaves open about a gap.
SLACK = 1e-12
# An objective below this share of that of zero weights is as good as zero: no double precision slack is seen in it.
NOTHING = 1e-18


@dataclass
class Verdict:
    """The claims of one fit, what the judge found, and what is wrong with it: by letter, in words.

    a: `objective_` is not the objective of the stored coefficients. The difference is excused where kernel values in double
    precision explain it, if the fit warned or is a ranking SVM whose `gap_` covers the difference.
    b: `gap_` is below the true gap. c: a gap that is NaN, or above `tol` without a warning. d: another warning, or an
    exception.
    """

    problem: object
    wrong: dict
    objective: float = np.nan
    gap: float = np.nan
    true_objective: float = np.nan
    true_gap: float = np.nan
    warned: bool = False
    good_witness: bool = True
    decided: bool = True
    excused: bool = False

    def __str__(self):
        wrong = "; ".join(f"({letter}) {words}" for letter, words in self.wrong.items())
        warned = " (warned)" if self.warned else ""
        return f"seed {self.problem.seed}: {wrong or 'right'}{warned} | {self.problem}"


def judge(problem):
    """Fit, and compare every claim with the truth."""
    verdict = Verdict(problem, {})
    model = _fit(problem, verdict)
    if model is None:
        return verdict
    verdict.objective, verdict.gap = float(model.objective_), float(model.gap_)
    posed = problem.pose()
    W = problem.stored_weights(model, posed)
    true, doubt = posed.value(W)
    nothing = NOTHING * posed.value(0 * W)[0]
    best, good = lowest_value(posed, W)
    verdict.true_objective, verdict.true_gap = float(true), relative_gap(true - doubt, best, nothing)
    verdict.good_witness, verdict.decided = good or bool(true <= nothing), bool(doubt <= SAME * true + nothing)
    apart = max(float(abs(true - model.objective_) - doubt - nothing), 0.0)
    covered = verdict.warned or (problem.gap_covers_kernel_rounding and apart <= verdict.gap * true)
    if covered and SAME * true < apart <= posed.value_doubt(W):
        verdict.excused, apart = True, 0.0
    _compare(verdict, apart)
    return verdict


def relative_gap(value, best, nothing=0.0):
    if value <= max(best, nothing):
        return 0.0
    return float((value - best) / best) if best > 0 else np.inf


def _fit(problem, verdict):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = problem.fit()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is judged
            verdict.wrong["d"] = f"{type(error).__name__}: {error}"
            model = None
    verdict.warned = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    unseen = (MissingLabelsWarning,) if problem.has_unseen_label() else ()
    expected = ConvergenceWarning, ScalingWarning, *unseen
    others = {f"{w.category.__name__}: {w.message}" for w in caught if not issubclass(w.category, expected)}
    if others and model is not None:
        verdict.wrong["d"] = ", ".join(sorted(others))
    return model


def _compare(verdict, difference):
    tol = verdict.problem.model.tol
    if not difference <= SAME * verdict.true_objective:
        claimed, true = verdict.objective, verdict.true_objective
        verdict.wrong["a"] = (
            f"objective_ {claimed:.12g}, true {true:.12g}, apart by {relative_gap(true + difference, true):.1e}"
        )
    if verdict.true_gap > verdict.gap + SLACK:
        verdict.wrong["b"] = f"gap_ {verdict.gap:.3e}, true {verdict.true_gap:.3e}"
    if not verdict.gap <= tol and not (verdict.warned or verdict.problem.may_end_above_tol):
        verdict.wrong["c"] = f"gap_ {verdict.gap:.3e} above tol {tol:g} without a warning"
    if np.isnan(verdict.gap):
        verdict.wrong["c"] = "gap_ is NaN"
