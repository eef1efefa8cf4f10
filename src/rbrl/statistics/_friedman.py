"""Friedman's test: do the methods differ at all?"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc, fdtrc, fdtri

from rbrl.statistics._ranks import as_table, average_ranks


class FriedmanResult(NamedTuple):
    """Friedman's test in both forms.

    Attributes
    ----------
    chi2, chi2_p_value : float
        Friedman's statistic and its p-value, from the chi-square distribution with n_methods - 1 degrees of freedom.
    f, p_value : float
        The less conservative F_F of Iman and Davenport, and its p-value.
    critical_value : float
        F_F above it is significant.
    degrees : tuple of int
        Degrees of freedom of F_F.
    average_ranks : array, shape (n_methods,)
        Tied methods share the mean of their ranks.
    """

    chi2: float
    chi2_p_value: float
    f: float
    p_value: float
    critical_value: float
    degrees: tuple[int, int]
    average_ranks: np.ndarray

    @property
    def significant(self) -> bool:
        """Whether the methods differ more than by chance."""
        return self.f > self.critical_value


def friedman(values: Any, greater_is_better: bool, alpha: float = 0.05) -> FriedmanResult:
    r"""Friedman's test over data sets, with the F statistic of Iman and Davenport.

    .. math:: \chi_F^2 = \frac{12 N}{k (k+1)} \Bigl(\sum_j R_j^2 - \frac{k (k+1)^2}{4}\Bigr), \qquad
        F_F = \frac{(N-1) \chi_F^2}{N (k-1) - \chi_F^2}

    for k methods with average ranks R on N data sets. There is no correction for ties, as in the paper and in
    Demšar's text; the corrected statistic is larger where there are ties.

    Parameters
    ----------
    values : array, shape (n_datasets, n_methods)
        One metric.
    greater_is_better : bool
        Direction of the metric.
    alpha : float, default=0.05
        Level of the critical value.
    """
    n_datasets, n_methods = as_table(values).shape
    if n_datasets < 2:
        raise ValueError(f"Friedman's test needs at least two data sets. Got {n_datasets} instead.")
    means = average_ranks(values, greater_is_better)
    spread = np.sum(means**2) - n_methods * (n_methods + 1) ** 2 / 4
    chi2 = float(12 * n_datasets / (n_methods * (n_methods + 1)) * spread)
    rest = n_datasets * (n_methods - 1) - chi2
    # All data sets agree on one order: the statistic is unbounded.
    f = float("inf") if rest <= 1e-9 else (n_datasets - 1) * chi2 / rest
    degrees = (n_methods - 1, (n_methods - 1) * (n_datasets - 1))
    return FriedmanResult(
        chi2=chi2,
        chi2_p_value=float(chdtrc(degrees[0], chi2)),
        f=f,
        p_value=float(fdtrc(*degrees, f)),
        critical_value=float(fdtri(*degrees, 1 - alpha)),
        degrees=degrees,
        average_ranks=means,
    )
