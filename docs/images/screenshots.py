"""Make the screenshots of docs/report.md: python docs/images/screenshots.py PAGE.html (needs Chromium)."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "report"))

import chromium  # noqa: E402

SIZES = {"page-desktop": (1440, 1350, False), "page-phone": (360, 780, False), "page-phone-dark": (360, 780, True)}


def main(page):
    with chromium.browser() as tab:
        tab.send("Emulation.setScrollbarsHidden", hidden=True)
        for name, (width, height, dark) in SIZES.items():
            tab.open(page, width, height, dark)
            if width < 600:
                tab.run("document.querySelector('#ranks').scrollIntoView()" if dark else "scrollTo(0, 0)")
            tab.picture(HERE / f"{name}.png")


if __name__ == "__main__":
    main(sys.argv[1])
