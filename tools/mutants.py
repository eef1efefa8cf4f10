"""Mutation test: does a test fail when a line of the source is wrong?

Draws small changes of the source (`mutation_sites.py`), and for each runs the tests that pass the changed line
(`covering_tests.py`), nearest and quickest first, until one fails. A mutant is

- killed: a test failed that passes, alone, on the unchanged source; or the source could not even be imported;
- timed out: the tests took more than five times their usual time and 20 seconds; counts as killed;
- survived: the tests that were run all passed;
- uncovered: no test passes the line; counts as survived.

Everything happens in copies of the repository, in `.mutants/`: the source itself is never changed. There are also the
lines that each test passes, and the results, a line of `results.csv` for each mutant as soon as it is done: the same
command goes on where it was interrupted. A change of the source begins new results; a new test does not, and `--again`
tries the survivors once more.

A mutant that means the same as the original cannot be killed. List it in `tools/mutants_equivalent.toml`:

    [[mutant]]
    file = "src/rbrl/solvers/base.py"
    original = "if step <= 0:"
    mutated = "if step < 0:"
    reason = "a step of 0 takes the other branch to the same point"

    python tools/mutants.py                                           80 mutants of the default packages
    python tools/mutants.py --packages decision --count 10            10 of one
    python tools/mutants.py --tests tests/decision tests/search       look at these tests only
    python tools/mutants.py --again --most 500 --seconds 600          the survivors again, with more of their tests
"""

import argparse
import csv
import sys
import time
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from covering_tests import files_of_tests, in_order, limited, map_tests
from mutation_sites import draw, mutants_of, one_line
from repository_copy import PASSED, ROOT, Copy, digest, repository_files

STORE = ROOT / ".mutants"
EQUIVALENT = ROOT / "tools" / "mutants_equivalent.toml"
PACKAGES = ["kernels.py", "losses", "scales.py", "problem", "solvers", "decision", "search", "metrics"]
NOT_TRACED = "_loops"  # compiled, and compared with their plain twins by the tests
FIELDS = ["source", "package", "file", "start", "end", "text", "line", "kind", "original", "mutated"]
FIELDS += ["status", "tests_run", "tests_covering", "seconds", "killed_by"]
DEAD, ALIVE = ("killed", "timed out"), ("survived", "uncovered")


@dataclass(frozen=True)
class Outcome:
    """Result of the tests for a mutant."""

    status: str
    tests_run: int = 0
    tests_covering: int = 0
    seconds: float = 0.0
    killed_by: str = ""


class Judge:
    """A runner of the tests of mutants, which ignores tests that fail on the unchanged source."""

    def __init__(self, maps, most, seconds):
        self.maps, self.most, self.seconds = maps, most, seconds
        self.sound, self.unsound = set(), set()

    def judge(self, copy, package, mutant):
        """Return the outcome of one mutant, and restore the copy."""
        covering = self.covering(package, mutant)
        if not covering:
            return Outcome("uncovered")
        started = time.perf_counter()
        while True:
            tests = limited([test for test in covering if test.name not in self.unsound], self.most, self.seconds)
            if not tests:
                return Outcome("uncovered", 0, len(covering), time.perf_counter() - started)
            status, test = self.attempt(copy, mutant, tests)
            if status is not None:
                return Outcome(status, len(tests), len(covering), time.perf_counter() - started, test)

    def attempt(self, copy, mutant, tests):
        """Return (status, killing test); no status if the failed test fails on the unchanged source, too."""
        names = [test.name for test in tests]
        path = copy.folder / mutant.file
        source = path.read_text(encoding="utf-8")
        path.write_text(mutant.apply(source), encoding="utf-8")
        try:
            code, failed = copy.test(names, 5 * sum(test.seconds for test in tests) + 20)
        finally:
            path.write_text(source, encoding="utf-8")
        if code is None:
            return "timed out", ""
        if code == PASSED:
            return "survived", ""
        suspects = [failed] if failed else names
        return ("killed", failed or "import") if self.believe(copy, suspects) else (None, "")

    def believe(self, copy, names):
        """Return True if tests pass on the unchanged source without the others of their file."""
        unknown = [name for name in names if name not in self.sound]
        if unknown:
            code, failed = copy.test(unknown)
            if code != PASSED:
                self.unsound.update([failed] if failed else unknown)
                return False
            self.sound.update(unknown)
        return True

    def covering(self, package, mutant):
        """Return the tests of a mutant in the order to run them; for a line that runs at import, those of its file."""
        lines = (mutant.first, mutant.last) if mutant.in_function else ()
        tests = [test for covering in self.maps for test in covering.covering(mutant.file, *lines)]
        return in_order(tests, Path(package).stem, Path(mutant.file).stem)


class Results:
    """The file of results; each mutant's line is written as soon as it is done.

    Parameters
    ----------
    path : Path
    source : str
        Name of the content of the source: lines of another one are kept, and not looked at.
    """

    def __init__(self, path, source):
        self.path, self.source = path, source

    def read(self):
        """Return the lines of this source by the key of their mutant; the last one counts."""
        if not self.path.exists():
            return {}
        with self.path.open(encoding="utf-8", newline="") as file:
            lines = [
                line for line in csv.DictReader(file) if line["source"] == self.source and line["killed_by"] is not None
            ]
        return {tuple(line[name] for name in ("file", "start", "end", "text")): line for line in lines}

    def append(self, package, mutant, outcome):
        line = {name: getattr(mutant, name, None) for name in FIELDS} | vars(outcome)
        line |= {"source": self.source, "package": package, "seconds": f"{outcome.seconds:.1f}"}
        new = not self.path.exists()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            if new:
                writer.writeheader()
            writer.writerow(line)


def equivalents(path):
    """Return the listed mutants that are equivalent to the original: (file, original, mutated) and the reason."""
    if not path.exists():
        return {}
    listed = tomllib.loads(path.read_text(encoding="utf-8")).get("mutant", [])
    return {(m["file"], one_line(m["original"]), one_line(m["mutated"])): m["reason"] for m in listed}


def outdated(reasons, files):
    """Return the listed mutants whose original line is no longer in the source."""
    return [key for key in reasons if key[1] not in one_line(files.get(key[0], b"").decode())]


def mutants_by_package(packages, source, files):
    """Return all mutants of each package, which is a folder or file of the source or of the repository."""
    found = {}
    for package in packages:
        inside = next((p for p in (f"{source}/{package}".rstrip("/"), package) if (ROOT / p).exists()), None)
        if inside is None:
            sys.exit(f"There is no {package} in {source}, nor in the repository.")
        names = [name for name in files if name.endswith(".py") and (name == inside or name.startswith(f"{inside}/"))]
        traced = [name for name in names if NOT_TRACED not in Path(name).parts]
        found[package] = [mutant for name in traced for mutant in mutants_of(files[name].decode(), name)]
    return found


def to_judge(line, again):
    """Return True if a mutant has to be tested according to its line of results; one without tests may have one now."""
    return line is None or line["status"] == "uncovered" or (again and line["status"] in ALIVE)


def judge_all(waiting, judge, results, copies, jobs):
    """Test (package, mutant) pairs, several at a time."""
    writing, numbers = Lock(), count(1)

    def run(pair):
        package, mutant = pair
        copy = copies.get()
        try:
            outcome = judge.judge(copy, package, mutant)
        finally:
            copies.put(copy)
        with writing:
            results.append(package, mutant, outcome)
            place = f"{mutant.file}:{mutant.line} ({outcome.seconds:.0f} s)"
            print(f"{next(numbers)}/{len(waiting)} {outcome.status}: {place}", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        try:
            list(pool.map(run, waiting))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def summary(drawn, lines, reasons):
    """Return the final text: the share killed in each package, the survivors, and the equivalent ones apart."""
    texts = ["| package | mutants | killed | share |", "|---|---|---|---|"]
    survivors, same, total = [], [], Counter()
    for package, mutants in drawn.items():
        statuses = Counter()
        for mutant in mutants:
            place = f"{mutant.file}:{mutant.line}  {mutant.original}  ->  {mutant.mutated}"
            line = lines.get(mutant.key)
            if (reason := reasons.get((mutant.file, mutant.original, mutant.mutated))) is not None:
                same.append(f"{place}\n    {reason}")
            elif line is not None:
                statuses[line["status"]] += 1
                if line["status"] in ALIVE:
                    survivors.append(
                        f"{place}\n    {line['status']}, {line['tests_run']} of {line['tests_covering']} tests run"
                    )
        texts.append(_row(package, statuses))
        total += statuses
    texts.append(_row("all", total))
    for title, found in (("Survivors", survivors), ("Equivalent, not counted", same)):
        if found:
            texts += ["", f"{title}: {len(found)}", *found]
    return "\n".join(texts)


def _row(name, statuses):
    dead, n = sum(statuses[status] for status in DEAD), sum(statuses.values())
    return f"| {name} | {n} | {dead} | {f'{dead / n:.0%}' if n else '-'} |"


def parsed(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage="mutants.py [options]"
    )
    parser.add_argument("--count", type=int, default=80, help="mutants to draw (80)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw (0)")
    parser.add_argument("--packages", nargs="+", default=PACKAGES, help=f"folders or files ({' '.join(PACKAGES)})")
    parser.add_argument("--source", default="src/rbrl", help="folder of the package (src/rbrl)")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="files or folders of tests (tests)")
    parser.add_argument("--most", type=int, default=40, help="most tests of a mutant (40)")
    parser.add_argument("--seconds", type=float, default=120, help="most seconds of the tests of a mutant (120)")
    parser.add_argument("--again", action="store_true", help="test surviving mutants again")
    parser.add_argument("--jobs", type=int, default=1, help="tests to run at a time (1)")
    parser.add_argument("--results", type=Path, default=STORE / "results.csv", help="file (.mutants/results.csv)")
    return parser.parse_args(arguments)


def main(arguments=None):
    options = parsed(arguments)
    files = repository_files()
    source = digest({name: content for name, content in files.items() if name.startswith(f"{options.source}/")})
    drawn = draw(mutants_by_package(options.packages, options.source, files), options.count, options.seed)
    reasons = equivalents(EQUIVALENT)
    results = Results(options.results, source)
    lines = results.read()
    waiting = [
        (package, mutant)
        for package, mutants in drawn.items()
        for mutant in mutants
        if (mutant.file, mutant.original, mutant.mutated) not in reasons
        and to_judge(lines.get(mutant.key), options.again)
    ]
    if waiting:
        copies = SimpleQueue()
        for number in range(options.jobs):
            copies.put(Copy(STORE / f"copy-{number}", files))
        maps = map_tests(
            files, files_of_tests(files, options.tests), options.source, STORE / "tests", copies, options.jobs
        )
        judge_all(waiting, Judge(maps, options.most, options.seconds), results, copies, options.jobs)
    print(summary(drawn, results.read(), reasons))
    for file, original, _ in outdated(reasons, files):
        print(f"{EQUIVALENT.name} lists a line that {file} does not have: {original}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("Interrupted; the same command goes on from here.")
