"""Fixtures of the report's tests."""

import pytest
from fake_rows import make_rows


@pytest.fixture
def rows():
    return make_rows()
