"""Open every page of the site in Chromium, at the width of a phone and of a desktop, and report problems.

    make docs && python tools/look_at_site.py [PAGE...]         PAGE as in guide.html; without one, all of them

Content wider than the page, a failing script, a missing file and a request to another machine are reported, each
in a line; the exit code is then 1. With PICTURES=folder in the environment it also takes a picture of every page, at both
widths, light and dark.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "docs/_build/html"
sys.path.insert(0, str(ROOT / "tests/experiments"))

import chromium  # noqa: E402 - found by the line above

WIDTHS = {"phone": 390, "desk": 1280}
# Pages that Sphinx makes from the source, and templates of the theme.
SKIPPED = ("_modules", "_static", "_downloads")
# Pixels that the page, or content outside of scrolling boxes, reaches beyond the right edge; 0 if all fits.
TOO_WIDE = """(() => {
    const root = document.documentElement
    const scrolls = node => node && !node.matches('article') &&
        (getComputedStyle(node).overflowX != 'visible' || scrolls(node.parentElement))
    const texts = [...document.querySelectorAll('article :is(p, dt, dd, table, pre, img)')].filter(node => !scrolls(node))
    const right = Math.max(root.scrollWidth, ...texts.map(node => Math.round(node.getBoundingClientRect().right)))
    return right > root.clientWidth + 1 ? right : 0
})()"""


def pages():
    every = (path.relative_to(SITE).as_posix() for path in sorted(SITE.rglob("*.html")))
    return [name for name in every if not name.startswith(SKIPPED)]


def troubles(browser, name, width):
    """Return the problems of a page at a width, one line each."""
    browser.messages.clear()
    browser.open(SITE / name, width=width)
    if wide := browser.run(TOO_WIDE):
        yield f"wider than the page: {wide}"
    for message in browser.messages:
        # The theme prints its mode to the console.
        if message.get("type") != "log":
            yield str(message)[:200]


def take_pictures(browser, name, folder):
    for kind, width in WIDTHS.items():
        for dark in (False, True):
            browser.open(SITE / name, width=width, dark=dark)
            browser.settle()
            mode = "dark" if dark else "light"
            browser.picture(folder / f"{name.replace('/', '-').removesuffix('.html')}-{kind}-{mode}.png")


def main(names):
    found = 0
    with chromium.browser() as browser:
        for name in names or pages():
            for kind, width in WIDTHS.items():
                for trouble in troubles(browser, name, width):
                    found += 1
                    print(f"{name}, {kind}: {trouble}")
            if folder := os.environ.get("PICTURES"):
                take_pictures(browser, name, Path(folder))
    print(f"{len(names or pages())} pages, {found} troubles")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
