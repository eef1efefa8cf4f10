"""Trace the functions and files that a fit passes through.

Traces four calls on yeast: the fit of a linear model, of a kernel model, of a linear model over shards, and a
comparison of two methods. For each call it counts

- the *functions*: the distinct pieces of code of a `def` or a `lambda` that run. A comprehension belongs to the function
  around it. Compiled functions, generated ones (the `__init__` of a dataclass) and the bodies of modules and classes do
  not count;
- the *files* that these functions are in;
- the *mutual pairs*: the pairs of files of which each one calls the other. The caller is the nearest frame of the
  package, so a call that SciPy passes on is a call of the file that called SciPy. Two files that call each other are
  one concept in two homes.

Every call runs twice and the second run is traced, so that imports and caches do not count.

    python tools/way_of_a_fit.py                    print the totals and the table of each call
    python tools/way_of_a_fit.py --write            write the same to tools/way_of_a_fit.md
    python tools/way_of_a_fit.py --check            exit with code 1 if a bound is exceeded
    python tools/way_of_a_fit.py --only kernel      trace one of the calls
"""

import argparse
import inspect
import os
import sys
import tempfile
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent / "src" / "rbrl"
TABLE = HERE / "way_of_a_fit.md"
# Largest number of functions of each call, from the design of the package. A comparison has no bound.
MOST_FUNCTIONS = {"linear": 110, "kernel": 130, "shards": 160, "comparison": None}
COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


@dataclass
class CallPath:
    """The functions and files that a call passed through.

    Attributes
    ----------
    functions : dict of str to list of str
        Functions of each file, in the order of their first call. Files are relative to the folder of the package.
    calls : dict of (str, str) to set of (str, str)
        Pairs of functions for each pair (calling file, called file): (calling function, called function).
    """

    functions: dict = field(default_factory=dict)
    calls: dict = field(default_factory=lambda: defaultdict(set))

    @property
    def n_functions(self):
        """Number of functions."""
        return sum(map(len, self.functions.values()))

    def mutual_pairs(self):
        """Return the pairs of files of which each one calls the other, in alphabetical order."""
        return sorted((a, b) for a, b in self.calls if a < b and (b, a) in self.calls)

    def complaints(self, most_functions):
        """Return a sentence for each bound that is exceeded."""
        found = []
        if most_functions is not None and self.n_functions > most_functions:
            found.append(f"{self.n_functions} functions, more than {most_functions}")
        found += [f"{a} and {b} call each other" for a, b in self.mutual_pairs()]
        return found


class Tracer:
    """A profile function that records the calls in the files of one folder."""

    def __init__(self, folder):
        self.prefix = os.path.join(os.path.realpath(folder), "")
        self.path = CallPath()
        self.files = {}

    def __call__(self, frame, event, argument):
        if event != "call" or (called := self.place(frame)) is None:
            return
        if frame.f_code.co_name in COMPREHENSIONS:
            return
        file, function = called
        functions = self.path.functions.setdefault(file, [])
        if function not in functions:
            functions.append(function)
        caller = self.caller(frame)
        if caller is not None and caller[0] != file:
            self.path.calls[caller[0], file].add((caller[1], function))

    def caller(self, frame):
        """Return (file, function) of the nearest frame below that belongs to the folder, or None."""
        while (frame := frame.f_back) is not None:
            if (place := self.place(frame)) is not None:
                return place
        return None

    def place(self, frame):
        """Return (file, function) of a frame that runs a function of the folder, and None for any other frame."""
        code = frame.f_code
        file = self.file(code.co_filename)
        if file is None or not code.co_flags & inspect.CO_OPTIMIZED:
            return None
        return file, function_around(code)

    def file(self, name):
        """Return the path of a file relative to the folder, or None if it is elsewhere."""
        if name not in self.files:
            path = os.path.realpath(name)
            inside = path.startswith(self.prefix)
            self.files[name] = Path(path[len(self.prefix) :]).as_posix() if inside else None
        return self.files[name]


def function_around(code):
    """Return the name of a function: a lambda has its line in it, a comprehension has the function around it."""
    parts = code.co_qualname.split(".")
    while len(parts) > 1 and parts[-1] in COMPREHENSIONS:
        parts = parts[:-2] if parts[-2] == "<locals>" else parts[:-1]
    name = ".".join(part for part in parts if part != "<locals>")
    return f"{name}:{code.co_firstlineno}" if code.co_name == "<lambda>" else name


def trace(call, folder):
    """Call `call()` and return its `CallPath` through the files of `folder`."""
    tracer = Tracer(folder)
    before = sys.getprofile()
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    try:
        call()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return tracer.path


def prepare_calls(package, scratch):
    """Return the calls by name."""
    sys.path.insert(0, str(package.parent))
    from rbrl import RBRLClassifier
    from rbrl.datasets import load, write_shards
    from rbrl.experiments import Plan, execute

    data = load("yeast")
    part = data.X[:300], data.Y[:300]
    shards = write_shards(part, scratch / "shards", rows_per_shard=100)
    plan = Plan.from_dict({"datasets": ["yeast"], "methods": {"br": {}, "ml-knn": {}}, "splits": {"number": 1}})
    stores = iter(("first", "second"))

    return {
        "linear": lambda: RBRLClassifier().fit(data.X, data.Y),
        "kernel": lambda: RBRLClassifier(kernel="rbf").fit(*part),
        "shards": lambda: RBRLClassifier().fit(shards),
        "comparison": lambda: execute(plan, scratch / next(stores)),
    }


def summarise(name, path):
    """Return the line of totals of a call."""
    most = MOST_FUNCTIONS[name]
    bound = "" if most is None else f" (at most {most})"
    pairs = len(path.mutual_pairs())
    return f"{name}: {path.n_functions} functions{bound} in {len(path.functions)} files, {pairs} mutual pairs (none allowed)"


def as_markdown(paths):
    """Return the totals, and for each call its files with their functions and its mutual pairs."""
    lines = [
        "# Call paths of a fit",
        "",
        "By `python tools/way_of_a_fit.py --write`; the script says what is counted.",
        "",
    ]
    lines += [f"- {summarise(name, path)}" for name, path in paths.items()]
    for name, path in paths.items():
        lines += ["", f"## {name}", "", "| file | functions | in the order of their first call |", "|---|---|---|"]
        for file, names in path.functions.items():
            lines.append(f"| {file} | {len(names)} | {', '.join(f'`{function}`' for function in names)} |")
        if path.mutual_pairs():
            lines += ["", "| from | to | calls |", "|---|---|---|"]
        for first, second in path.mutual_pairs():
            for pair in ((first, second), (second, first)):
                shown = ", ".join(f"`{a}` → `{b}`" for a, b in sorted(path.calls[pair]))
                lines.append(f"| {pair[0]} | {pair[1]} | {shown} |")
    return "\n".join(lines) + "\n"


def main(arguments=None):
    """Trace the calls and print, write or check what they pass through."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--package", type=Path, default=PACKAGE, help="folder of the package (default: src/rbrl)")
    parser.add_argument("--only", choices=tuple(MOST_FUNCTIONS), help="trace this call alone")
    parser.add_argument("--write", action="store_true", help=f"write the tables to {TABLE.name}")
    parser.add_argument("--check", action="store_true", help="exit with code 1 if a bound is exceeded")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        paths = {}
        for name, call in prepare_calls(options.package.resolve(), Path(scratch)).items():
            if options.only in (None, name):
                call()
                paths[name] = trace(call, options.package)
    if not all(path.functions for path in paths.values()):
        sys.exit(f"A call passed no file of {options.package}: was another copy of rbrl imported?")
    if options.write:
        TABLE.write_text(as_markdown(paths), encoding="utf-8")
    elif options.check:
        print("\n".join(summarise(name, path) for name, path in paths.items()))
    else:
        print(as_markdown(paths), end="")
    exceeded = [f"{name}: {text}" for name, path in paths.items() for text in path.complaints(MOST_FUNCTIONS[name])]
    if options.check and exceeded:
        sys.exit("\n".join(exceeded))


if __name__ == "__main__":
    main()
