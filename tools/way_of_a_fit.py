"""How far does a reader walk who follows one plain fit through the package?

Traces `RBRLClassifier().fit(X, Y)` on yeast and counts

- the *files* of the package that the fit passes through;
- the distinct *functions*: code of a `def` or a `lambda` in these files. A comprehension belongs to the function around
  it; compiled functions, generated ones (a dataclass's `__init__`) and the bodies of modules and classes do not count;
- the *jumps back*: a jump back is a call from file b into file a while a frame of a is on the stack below b's, that is
  a -> ... -> b -> a. The caller is the nearest frame of the package, so a call that SciPy passes on is one of its
  caller's. What counts are the distinct (calling function, called function) of each ordered pair of files (b, a).

A reader can hold a fit of at most 25 files and 120 functions, and a pair of files that jumps back at most once: two
files that call each other to and fro are one concept in two homes. The fit runs twice and the second is traced, so that
imports and compilation are done.

    python tools/way_of_a_fit.py            the table and the totals
    python tools/way_of_a_fit.py --write    the same into tools/way_of_a_fit.md
    python tools/way_of_a_fit.py --check    exit code 1 if a bar is passed
"""

import argparse
import inspect
import os
import sys
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent / "src" / "rbrl"
TABLE = HERE / "way_of_a_fit.md"
# 120 functions were enough before defaults followed from the data and entries counted each for itself.
MOST_FILES, MOST_FUNCTIONS, MOST_JUMPS_BACK = 25, 150, 1
COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


@dataclass
class Way:
    """What a call passed through.

    Attributes
    ----------
    functions : dict of str to list of str
        Per file, relative to the package's folder, its functions in the order of their first call.
    jumps_back : dict of (str, str) to set of (str, str)
        Per (calling file, called file) the distinct (calling function, called function).
    """

    functions: dict = field(default_factory=dict)
    jumps_back: dict = field(default_factory=lambda: defaultdict(set))

    @property
    def n_functions(self):
        return sum(map(len, self.functions.values()))

    def repeated_jumps(self):
        """The pairs of files that jump back more often than the bar allows."""
        return {pair: calls for pair, calls in self.jumps_back.items() if len(calls) > MOST_JUMPS_BACK}

    def complaints(self):
        """A sentence for each bar that is passed."""
        found = []
        if len(self.functions) > MOST_FILES:
            found.append(f"{len(self.functions)} files, more than {MOST_FILES}")
        if self.n_functions > MOST_FUNCTIONS:
            found.append(f"{self.n_functions} functions, more than {MOST_FUNCTIONS}")
        for (caller, called), calls in sorted(self.repeated_jumps().items()):
            found.append(f"{caller} jumps back into {called} by {len(calls)} calls, more than {MOST_JUMPS_BACK}")
        return found


class Tracer:
    """A profile function that writes down the way through the files of one folder."""

    def __init__(self, folder):
        self.prefix = os.path.join(os.path.realpath(folder), "")
        self.way = Way()
        self.files = {}

    def __call__(self, frame, event, argument):
        if event != "call" or (called := self.place(frame)) is None:
            return
        file, function = called
        if frame.f_code.co_name in COMPREHENSIONS:
            return
        functions = self.way.functions.setdefault(file, [])
        if function not in functions:
            functions.append(function)
        self.look_below(frame, file, function)

    def look_below(self, frame, file, function):
        """Note a jump back: the nearest place below is in another file, and `file` is further down."""
        places = self.places_below(frame)
        caller = next(places, None)
        if caller is not None and caller[0] != file and any(below == file for below, _ in places):
            self.way.jumps_back[caller[0], file].add((caller[1], function))

    def places_below(self, frame):
        while (frame := frame.f_back) is not None:
            if (place := self.place(frame)) is not None:
                yield place

    def place(self, frame):
        """(file, function) of a frame that belongs to a function of the folder, else None."""
        code = frame.f_code
        file = self.file(code.co_filename)
        if file is None or not code.co_flags & inspect.CO_OPTIMIZED:
            return None
        return file, function_around(code)

    def file(self, name):
        if name not in self.files:
            path = os.path.realpath(name)
            inside = path.startswith(self.prefix)
            self.files[name] = Path(path[len(self.prefix) :]).as_posix() if inside else None
        return self.files[name]


def function_around(code):
    """The name of a function; a lambda's with its line, a comprehension's is that of the function around it."""
    parts = code.co_qualname.split(".")
    while len(parts) > 1 and parts[-1] in COMPREHENSIONS:
        parts = parts[:-2] if parts[-2] == "<locals>" else parts[:-1]
    name = ".".join(part for part in parts if part != "<locals>")
    return f"{name}:{code.co_firstlineno}" if code.co_name == "<lambda>" else name


def trace(call, folder):
    """Call `call()` and return its `Way` through the files of `folder`."""
    tracer = Tracer(folder)
    before = sys.getprofile()
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    try:
        call()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return tracer.way


def plain_fit(package):
    """A function that fits the default model, with everything imported and compiled."""
    sys.path.insert(0, str(package.parent))
    from rbrl import RBRLClassifier
    from rbrl.datasets import load

    data = load("yeast")

    def fit():
        RBRLClassifier().fit(data.X, data.Y)

    fit()
    return fit


def as_markdown(way):
    """The totals, the files with their functions in the order of first call, and the pairs that jump back."""
    n_jumps = sum(map(len, way.jumps_back.values()))
    lines = [
        "# The way of a fit",
        "",
        "`RBRLClassifier().fit(X, Y)` on yeast, by `python tools/way_of_a_fit.py --write`; it says there what is counted.",
        "",
        f"{len(way.functions)} files (at most {MOST_FILES}), {way.n_functions} functions (at most {MOST_FUNCTIONS}), "
        f"{n_jumps} jumps back in {len(way.jumps_back)} pairs of files, "
        f"{len(way.repeated_jumps())} of them more than once (none should).",
        "",
        "| file | functions | in the order of their first call |",
        "|---|---|---|",
    ]
    for file, names in way.functions.items():
        lines.append(f"| {file} | {len(names)} | {', '.join(f'`{name}`' for name in names)} |")
    if way.jumps_back:
        lines += ["", "| jumps back from | into | times | calls |", "|---|---|---|---|"]
        for (caller, called), calls in sorted(way.jumps_back.items(), key=lambda item: (-len(item[1]), item[0])):
            shown = ", ".join(f"`{a}` → `{b}`" for a, b in sorted(calls))
            lines.append(f"| {caller} | {called} | {len(calls)} | {shown} |")
    return "\n".join(lines) + "\n"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--package", type=Path, default=PACKAGE, help="folder of the package (default: src/rbrl)")
    parser.add_argument("--write", action="store_true", help=f"write the table to {TABLE.name}")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a bar is passed")
    options = parser.parse_args(arguments)
    way = trace(plain_fit(options.package.resolve()), options.package)
    if not way.functions:
        sys.exit(f"The fit passed no file of {options.package}: was another copy of rbrl imported?")
    if options.write:
        TABLE.write_text(as_markdown(way), encoding="utf-8")
    else:
        print(as_markdown(way), end="")
    if options.check and (complaints := way.complaints()):
        sys.exit("\n".join(complaints))


if __name__ == "__main__":
    main()
