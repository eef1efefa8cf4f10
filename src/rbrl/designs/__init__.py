"""Designs: linear maps from weights to scores."""

from rbrl.designs.base import Design
from rbrl.designs.eigen import EigenDesign
from rbrl.designs.matrix import MatrixDesign, with_ones
from rbrl.designs.spectral import SpectralDesign

__all__ = ["Design", "EigenDesign", "MatrixDesign", "SpectralDesign", "with_ones"]
