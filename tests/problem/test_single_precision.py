"""A design in single precision: the same products, to seven digits."""

import numpy as np
import pytest
from scipy import sparse

from problems import random_gram
from rbrl.problem import SpectralDesign, in_single_precision, linear_design

rng = np.random.default_rng(0)
DESIGNS = {
    "linear": linear_design(rng.normal(size=(40, 8))),
    "more features than rows": linear_design(rng.normal(size=(20, 50))),
    "kernel": SpectralDesign(random_gram(rng, 30)),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_products_keep_seven_digits(name):
    design, rng = DESIGNS[name], np.random.default_rng(1)
    quick = in_single_precision(design)
    assert quick.Q.dtype == np.float32
    W, R = rng.normal(size=(design.shape[1], 4)), rng.normal(size=(design.shape[0], 4))
    for found, exact in ((quick.scores(W), design.scores(W)), (quick.adjoint(R), design.adjoint(R))):
        np.testing.assert_allclose(found, exact, atol=1e-6 * np.abs(exact).max())
    np.testing.assert_allclose(quick.row_norms(), design.row_norms(), rtol=1e-5)
    assert quick.columns_multiplied == 8


def test_sparse_and_huge_matrices_stay_as_they_are():
    X = sparse.random_array((5000, 50), density=0.01, rng=np.random.default_rng(0)).tocsr()
    for design in (linear_design(X), linear_design(1e20 * np.eye(3))):
        assert in_single_precision(design) is design
