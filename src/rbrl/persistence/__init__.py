"""Model files that are safe to load: no pickle, and nothing in a file is executed."""

from rbrl.persistence.files import describe, load, save
from rbrl.persistence.schema import FIRST_HOMES

__all__ = ["FIRST_HOMES", "describe", "load", "save"]
