"""Options and shared fixtures."""

import os
import runpy
import tempfile
from pathlib import Path

import pytest

OFFLINE = Path(__file__).parent / "offline"
REAL_DATA = ("data_home", "golden")


def pytest_addoption(parser):
    parser.addoption("--soak", action="store_true", help="also run the tests marked soak")


def pytest_configure(config):
    """Refuse connections to other machines from here on; new Python processes do so by themselves."""
    handle, path = tempfile.mkstemp(prefix="rbrl-tests-refused-")
    os.close(handle)
    config.add_cleanup(lambda: Path(path).unlink(missing_ok=True))
    names = runpy.run_path(str(OFFLINE / "sitecustomize.py"))
    os.environ[names["REFUSED"]] = path
    paths = [str(OFFLINE), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    config.stash[REFUSED] = Refused(Path(path))
    # Where nothing could be compiled, one test looks at the warning; it is no part of what the others expect of a process.
    os.environ["PYTHONWARNINGS"] = "ignore:rbrl is running its loops in plain NumPy"


def pytest_collection_modifyitems(config, items):
    skip = pytest.mark.skip(reason="long: run with --soak, or `make soak`")
    for item in items:
        if not set(REAL_DATA).isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("real_data")
        if "soak" in item.keywords and not config.getoption("--soak"):
            item.add_marker(skip)


class Refused:
    """Connections that were refused, of this process and of those it started."""

    def __init__(self, path):
        self.path, self.n_read = path, 0

    def take(self):
        """Those since the last call."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        new, self.n_read = lines[self.n_read :], len(lines)
        return new


REFUSED = pytest.StashKey[Refused]()


@pytest.fixture(autouse=True)
def refused(request):
    """Fail a test that tried to reach another machine, also where the code made do without."""
    found = request.config.stash[REFUSED]
    found.take()
    yield found
    if lines := found.take():
        pytest.fail("\n".join(lines))


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
