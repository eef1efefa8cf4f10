"""Options and shared fixtures."""

import argparse
import os
import re
import runpy
import tempfile
from pathlib import Path

import pytest

OFFLINE = Path(__file__).parent / "offline"
REAL_DATA = ("data_home", "golden")


def pytest_addoption(parser):
    parser.addoption("--soak", action="store_true", help="also run the tests marked soak")
    parser.addoption(
        "--soak-part",
        metavar="I/N",
        type=parse_part,
        default=(0, 1),
        help="with --soak, run one of N parts of the tests marked soak: every N-th test, from test I modulo N on",
    )


def parse_part(text):
    """Return (I, N) of "I/N"; I counts modulo N."""
    match = re.fullmatch(r"(\d+)/([1-9]\d*)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"a part must be I/N, for example 3/20. Got {text!r} instead.")
    return int(match[1]) % int(match[2]), int(match[2])


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
    for item in items:
        if not set(REAL_DATA).isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("real_data")
    long = [item for item in items if "soak" in item.keywords]
    first, step = config.getoption("--soak-part")
    # A part is spread over all files: the tests of a file cost about the same.
    wanted = long[first::step] if config.getoption("--soak") else []
    skip = pytest.mark.skip(reason="long: run with --soak, or `make soak`")
    for item in set(long).difference(wanted):
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
