"""Options and shared fixtures."""

import os
from pathlib import Path

import pytest


def pytest_addoption(parser):
    parser.addoption("--soak", action="store_true", help="also run the tests marked soak")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--soak"):
        return
    skip = pytest.mark.skip(reason="long: run with --soak, or `make soak`")
    for item in items:
        if "soak" in item.keywords:
            item.add_marker(skip)


def _folder(variable):
    path = os.environ.get(variable)
    if not path:
        pytest.skip(f"{variable} is not set: this test needs that folder of real data")
    return Path(path)


@pytest.fixture(scope="session")
def data_home():
    """Folder of the real data sets (NPZ files); the test is skipped without it."""
    return _folder("RBRL_DATA")


@pytest.fixture(scope="session")
def golden():
    """Folder with the figures of the authors' own program; the test is skipped without it."""
    return _folder("RBRL_GOLDEN")
