"""Defaults that follow from the data: variances in one pass, the ridge, the width of a kernel; a weight is a repetition."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist

from rbrl._common.checks import check_number
from rbrl.exceptions import ScalingWarning
from rbrl.scales import WIDTHS, ColumnScales, intercept_column, kernel_width, shifted_sums

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 7)) * np.arange(1, 8)
WEIGHTS = RNG.integers(1, 4, size=60)
storages = pytest.mark.parametrize(
    "storage", [np.asarray, np.float32, sparse.csr_array], ids=["dense", "single", "sparse"]
)


@storages
def test_variances_and_ridge(storage):
    found = ColumnScales.from_rows(storage(X))
    np.testing.assert_allclose(found.variances, X.var(axis=0), rtol=1e-5 if storage is np.float32 else 1e-12)
    expected = 3 * 7 * np.median(X.var(axis=0)) * np.sqrt(60 / 8)
    assert found.ridge() == pytest.approx(expected, rel=1e-5)


def test_few_rows():
    assert ColumnScales.from_rows(X[:5]).ridge() == pytest.approx(3 * 7 * np.median(X[:5].var(axis=0)))


@storages
def test_a_weight_is_a_repetition(storage):
    weighted = ColumnScales.from_rows(storage(X), WEIGHTS.astype(float))
    repeated = ColumnScales.from_rows(storage(np.repeat(X, WEIGHTS, axis=0)))
    assert weighted.n_samples == repeated.n_samples == WEIGHTS.sum()
    assert weighted.ridge() == pytest.approx(repeated.ridge(), rel=1e-6)


@storages
@pytest.mark.parametrize("constant", [0.0, 0.1, 1e6])
def test_constant_columns_count_for_nothing(storage, constant):
    wider = np.hstack([X, np.full((60, 3), constant)])
    expected = ColumnScales.from_rows(storage(X)).ridge()
    assert ColumnScales.from_rows(storage(wider)).ridge() == pytest.approx(expected, rel=1e-6)
    assert ColumnScales.from_rows(storage(wider[:, 7:])).ridge() == 1.0


def test_columns_far_from_zero_keep_their_digits():
    np.testing.assert_allclose(ColumnScales.from_rows(X + 1e9).variances, X.var(axis=0), rtol=1e-5)


def test_sums_of_parts_are_those_of_the_whole():
    shift = X[0]
    parts = [shifted_sums(part, shift) for part in (X[:20], sparse.csr_array(X[20:50]), X[50:])]
    found = ColumnScales.from_sums(60, *(sum(sums) for sums in zip(*parts)))
    np.testing.assert_allclose(found.variances, X.var(axis=0), rtol=1e-10)


def test_columns_beyond_all_numbers_are_refused():
    with pytest.raises(
        ValueError, match=r"finite median of the variances.*Got inf; scale X.*or pass ridge as a number"
    ):
        ColumnScales.from_rows(X * 1e200).ridge()


def test_a_scaler_is_named_where_one_column_is_far_larger():
    with pytest.warns(ScalingWarning, match=r"It: columns of X differ.*StandardScaler or MaxAbsScaler"):
        ColumnScales.from_rows(X * [1e6, 1, 1, 1, 1, 1, 1]).warn_of_spread("It")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in (X, X * 1e9, np.ones((3, 2)), X * [1e-9, 1, 1, 1, 1, 1, 1]):
            ColumnScales.from_rows(rows).warn_of_spread("It")


def test_the_column_of_the_intercept():
    assert intercept_column(8.0, 2.0) == 2.0
    assert {intercept_column(8.0, None), intercept_column(8.0, "ridge"), intercept_column(0.0, 2.0)} == {1.0}


@storages
def test_widths(storage):
    rows = storage(X)
    assert kernel_width("median", rows) == pytest.approx(1 / np.median(pdist(X, "sqeuclidean")), rel=1e-5)
    assert kernel_width("scale", rows) == pytest.approx(1 / (7 * X.var()), rel=1e-5)
    assert kernel_width("paper", rows) == kernel_width(None, rows) == 1 / 7
    assert kernel_width(0.25, rows) == 0.25


@storages
@pytest.mark.parametrize("gamma", ["median", "scale"])
@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_widths_of_repeated_rows(storage, gamma, shift):
    weighted = kernel_width(gamma, storage(X + shift), WEIGHTS.astype(float))
    assert weighted == pytest.approx(kernel_width(gamma, storage(np.repeat(X + shift, WEIGHTS, axis=0))), rel=1e-4)


@pytest.mark.parametrize("gamma", ["median", "scale"])
def test_rows_that_do_not_differ_have_a_width(gamma):
    assert kernel_width(gamma, np.full((5, 3), 0.1)) == 1.0
    assert kernel_width(gamma, sparse.csr_array((5, 3))) == 1.0


def test_a_sample_tells_the_median():
    rows = RNG.normal(size=(3000, 4))
    expected = 1 / np.median(pdist(rows, "sqeuclidean"))
    assert kernel_width("median", rows) == pytest.approx(expected, rel=0.05)
    assert kernel_width("median", rows) == kernel_width("median", rows), "the sample is a fixed one"
    weights = RNG.integers(1, 4, size=3000)
    weighted, repeated = kernel_width("median", rows, weights.astype(float)), np.repeat(rows, weights, axis=0)
    assert weighted == pytest.approx(kernel_width("median", repeated), rel=0.05)


@pytest.mark.parametrize("gamma", ["widest", 0.0, -1, float("nan"), True])
def test_other_widths_are_refused(gamma):
    with pytest.raises(ValueError, match="The gamma parameter of It must be"):
        check_number("It", "gamma", gamma, strict=True, words=WIDTHS)
