"""Classifiers. `REGISTRY` maps the names that plans and the command line use to their classes."""

from rbrl.estimators.rbrl import BRLClassifier, RBRLClassifier

REGISTRY = {"rbrl": RBRLClassifier, "brl": BRLClassifier}

__all__ = ["REGISTRY", "BRLClassifier", "RBRLClassifier"]
