"""Run the examples of the gallery without a screen, write their figures, and print the seconds of each.

    python tools/gallery.py FOLDER [NAME...]        NAME as in examples/plot_NAME.py; without one, all of them

Sphinx-Gallery shows the figures that pyplot knows. pyplot does not know the figures that rbrl returns, so that drawing one
has no global effect; with `image_scrapers = ("gallery",)` in the configuration of Sphinx all of them are shown.
"""

import contextlib
import io
import runpy
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakSet

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib._pylab_helpers import Gcf
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# Figures that were shown before: a variable of an earlier block is still there in the next.
SHOWN: WeakSet[Figure] = WeakSet()
EXAMPLES = {path.stem.removeprefix("plot_"): path for path in Path(__file__).parents[1].glob("examples/plot_*.py")}


@dataclass(frozen=True)
class Run:
    """Output and figures of an example, and the processor seconds that it took."""

    printed: str
    figures: list[Figure]
    seconds: float


def run(path):
    """Run an example as a script, with a backend that needs no screen."""
    plt.switch_backend("Agg")
    started = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()) as out, mpl.rc_context():
        variables = runpy.run_path(str(path), run_name="__main__")
    seconds = time.process_time() - started
    show(variables)
    figures = [plt.figure(number) for number in plt.get_fignums()]
    plt.close("all")
    return Run(out.getvalue(), figures, seconds)


def show(variables):
    """Register with pyplot the figures among variables that it does not know."""
    SHOWN.update(plt.figure(number) for number in plt.get_fignums())
    for value in variables.values():
        if isinstance(value, Figure) and value not in SHOWN:
            # pyplot has no public way to take a figure that it did not make (before matplotlib 3.11).
            Gcf._set_new_active_manager(FigureCanvasAgg.new_manager(value, max(plt.get_fignums(), default=0) + 1))
            SHOWN.add(value)


def show_and_scrape(block, block_vars, gallery_conf):
    """Return the figures of a code block to Sphinx-Gallery, pyplot's and others."""
    from sphinx_gallery.scrapers import matplotlib_scraper

    show(block_vars["example_globals"])
    return matplotlib_scraper(block, block_vars, gallery_conf)


def _get_sg_image_scraper():
    """Return the scraper; Sphinx-Gallery looks for this function in a module that is named among its scrapers."""
    return show_and_scrape


def main(folder, *names):
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in names or sorted(EXAMPLES):
        done = run(EXAMPLES[name])
        for number, figure in enumerate(done.figures):
            path = Path(folder, f"{name}-{number}.png" if number else f"{name}.png")
            figure.savefig(path, dpi=200)
        print(f"{name:20} {done.seconds:5.1f} s, {len(done.figures)} figures")
        print(done.printed)


if __name__ == "__main__":
    main(*sys.argv[1:])
