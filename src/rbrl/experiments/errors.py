"""Errors of plans and stores."""

from rbrl.exceptions import RBRLError


class PlanError(RBRLError, ValueError):
    """A plan says something that cannot be done; the message names the key, the value and what is allowed."""


class StoreError(RBRLError, OSError):
    """A store cannot be read or written; the message says what has become of what it held."""
