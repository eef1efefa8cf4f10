"""Find the tests that run a line of the source, and the seconds of each.

Each file of tests runs once, by itself, under coverage, which notes the test with each line (its dynamic contexts). What
came out stays in a folder under a name made from the content of the source and of that file, so an interrupted run goes
on where it was, and a changed file of tests is the only one to run again.

    python covering_tests.py FILE_OF_TESTS FOLDER_OF_SOURCE DATA TIMES     is how it starts itself for one file

Limits: code that a test runs in another process, and code that is compiled, are not seen. What a fixture of a module or
of the session runs counts for every test that asks for the fixture; what a helper keeps for later (`functools.cache`)
counts for the first test that called it.
"""

import json
import os
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import coverage
import pytest

from repository_copy import ROOT, digest

FIXTURE = "fixture "
COMPLETE = (0, 1, 5)  # exit codes of pytest: passed, some failed, there were none to run


@dataclass(frozen=True)
class TimedTest:
    """A test, with its seconds and the number of source lines that it runs."""

    name: str
    seconds: float
    n_lines: int

    @property
    def function(self):
        """Name without the parameters."""
        return self.name.split("[")[0]

    @property
    def file(self):
        return self.name.split("::")[0]


class Recorder:
    """A pytest plugin that sets coverage's context to the running test, and records seconds and outcomes."""

    def __init__(self, coverage):
        self.coverage = coverage
        self.running = ""
        self.seconds, self.users = Counter(), defaultdict(list)
        self.passed, self.failed = set(), set()

    def pytest_collection_finish(self, session):
        for item in session.items:
            for name in getattr(item, "fixturenames", ()):
                self.users[name].append(item.nodeid)

    def pytest_runtest_logstart(self, nodeid):
        self.running = nodeid
        self.coverage.switch_context(nodeid)

    def pytest_runtest_logfinish(self):
        self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] += report.duration
        if report.when == "call" and report.passed:
            self.passed.add(report.nodeid)
        if report.failed:
            self.failed.add(report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        if fixturedef.scope == "function":
            return (yield)
        self.coverage.switch_context(FIXTURE + fixturedef.argname)
        try:
            return (yield)
        finally:
            self.coverage.switch_context(self.running)

    def times(self):
        """Return the record: seconds of the tests that passed, and the users of each fixture."""
        good = self.passed - self.failed
        return {
            "seconds": {name: self.seconds[name] for name in sorted(good)},
            "users": {name: [user for user in users if user in good] for name, users in self.users.items()},
        }


class CoveringTests:
    """The tests of one file, from the record of its run.

    Parameters
    ----------
    data, times : Path
        Files that `record` wrote.
    """

    def __init__(self, data, times):
        self.data = coverage.CoverageData(str(data))
        self.data.read()
        self.measured = self.data.measured_files()
        self.lines = {}
        kept = json.loads(times.read_text(encoding="utf-8"))
        self.seconds, self.users = kept["seconds"], kept["users"]

    @cached_property
    def tests(self):
        """Return the tests by name."""
        n_lines = Counter(name for file in self.measured for names in self.names(file).values() for name in names)
        return {name: TimedTest(name, seconds, n_lines[name]) for name, seconds in self.seconds.items()}

    def names(self, file):
        """Return, for each line, the names of the tests that run it."""
        if file not in self.lines:
            contexts = self.data.contexts_by_lineno(file) if file in self.measured else {}
            self.lines[file] = {line: self.tests_of(found) for line, found in contexts.items()}
        return self.lines[file]

    def tests_of(self, contexts):
        names = set()
        for context in contexts:
            if context.startswith(FIXTURE):
                names.update(self.users.get(context.removeprefix(FIXTURE), ()))
            elif context in self.seconds:
                names.add(context)
        return names

    def covering(self, file, first=None, last=None):
        """Return the tests that run one of the lines of a source file; any line without bounds."""
        lines = self.names(file)
        wanted = lines if first is None else range(first, last + 1)
        found = set().union(*(lines.get(line, ()) for line in wanted))
        return [self.tests[name] for name in sorted(found)]


def in_order(tests, package, module):
    """Sort the tests: those that should detect a change soonest and cheapest come first.

    Nearest first: of the same module, then of the same package, by the names in the test's path. Then one case of each
    test function before the second of any, since cases of one function see much the same; of these the quickest, and
    those that pass the fewest lines.

    Parameters
    ----------
    tests : list of TimedTest
    package, module : str
        Names of the folder and of the file, without its ending, that is changed.

    Returns
    -------
    list of TimedTest
    """
    seen, keyed = Counter(), []
    for test in sorted(tests, key=lambda test: (round(test.seconds, 1), test.n_lines, test.name)):
        keyed.append((_distance(test, package, module), seen[test.function], len(keyed), test))
        seen[test.function] += 1
    return [test for *_, test in sorted(keyed, key=lambda key: key[:3])]


def _distance(test, package, module):
    path = Path(test.file)
    names = {*path.parts[:-1], path.stem.removeprefix("test_")}
    return 0 if module.strip("_") in names else 1 if package.strip("_") in names else 2


def limited(tests, most, seconds):
    """Return the first tests: at most `most`, with at most `seconds` in total, but at least one."""
    chosen, total = [], 0.0
    for test in tests[:most]:
        if not chosen or total + test.seconds <= seconds:
            chosen.append(test)
            total += test.seconds
    return chosen


def record(tests, source, data, times):
    """Run a file of tests under coverage, keep the record, and return the exit code of pytest."""
    os.environ["COVERAGE_CORE"] = "ctrace"  # the newer way of measuring does not know which test runs
    measured = coverage.Coverage(data_file=data, source=[source], omit=["*/_loops/*"], config_file=False)
    measured.set_option("run:relative_files", True)
    measured.start()
    recorder = Recorder(measured)
    code = pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:randomly", tests], plugins=[recorder])
    measured.stop()
    measured.save()
    # The times are written last and at once: their file marks a complete run.
    unfinished = Path(f"{times}.part")
    unfinished.write_text(json.dumps(recorder.times()), encoding="utf-8")
    unfinished.replace(times)
    return code


def is_test_file(name):
    return Path(name).name.startswith("test_") and name.endswith(".py")


def files_of_tests(files, wanted):
    """Return the files of tests at or below the given paths."""
    chosen = [(ROOT / path).resolve().relative_to(ROOT).as_posix() for path in wanted]
    for path in chosen:
        if not (ROOT / path).exists():
            sys.exit(f"There are no tests at {path}.")
    return [name for name in files if is_test_file(name) and any(name == p or name.startswith(f"{p}/") for p in chosen)]


def map_tests(files, tests, source, store, copies, jobs):
    """Run the files of tests that were not run yet, and read all records.

    Parameters
    ----------
    files : dict of str to bytes
        Content of the repository.
    tests : list of str
        The files of tests.
    source : str
        Folder to measure, relative to the repository.
    store : Path
        Folder to keep the results in.
    copies : SimpleQueue of Copy
        Folders of the runs, one for each job.
    jobs : int

    Returns
    -------
    list of CoveringTests
    """
    store.mkdir(parents=True, exist_ok=True)
    base = digest(helpers_of_tests(files)).encode()
    kept = {name: store / digest({name: files[name], "base": base}) for name in tests}
    waiting = [name for name in tests if not kept[name].with_suffix(".json").exists()]
    if waiting:
        print(f"Recording the lines of the tests: {len(waiting)} of {len(tests)} files to run.", flush=True)

    def run(name):
        copy = copies.get()
        try:
            record_apart(copy, name, source, kept[name])
        finally:
            copies.put(copy)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(run, waiting))
    return [CoveringTests(path.with_suffix(".coverage"), path.with_suffix(".json")) for path in kept.values()]


def helpers_of_tests(files):
    """Return the files that all tests depend on: the source, and the helpers beside the tests."""
    used = ("src/", "tests/", "examples/", "pyproject.toml")
    return {name: content for name, content in files.items() if name.startswith(used) and not is_test_file(name)}


def record_apart(copy, tests, source, kept):
    """Record a file of tests in a process of its own, in a copy of the repository."""
    started = time.perf_counter()
    data, times = kept.with_suffix(".coverage"), kept.with_suffix(".json")
    data.unlink(missing_ok=True)
    code, printed = copy.run([__file__, tests, source, str(data), str(times)])
    if code not in COMPLETE:
        raise RuntimeError(f"pytest ended with {code} on {tests}:\n{printed[-3000:]}")
    print(f"{tests}: {printed.splitlines()[-1].strip('= ')} ({time.perf_counter() - started:.0f} s)", flush=True)


if __name__ == "__main__":
    sys.exit(record(*sys.argv[1:]))
