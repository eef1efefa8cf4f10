"""Make the screenshots of docs/report.md: python docs/images/screenshots.py PAGE.html (needs Chromium)."""

import sys
from pathlib import Path

from PIL import Image

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "report"))

import chromium  # noqa: E402

DESKTOP = {"width": 1440, "height": 1280}
PHONE = {"width": 360, "height": 720, "scale": 2}
# Name: what the window is like, and the part of the page that it shows.
PICTURES = {
    "page-desktop": (DESKTOP, "header"),
    "page-phone": (PHONE, "header"),
    "page-phone-dark": ({**PHONE, "dark": True}, "#ranks"),
}
COLOURS = 128  # a page has few, and a file with a palette is a third as large


def main(page):
    with chromium.browser() as tab:
        tab.send("Emulation.setScrollbarsHidden", hidden=True)
        for name, (window, part) in PICTURES.items():
            path = HERE / f"{name}.png"
            tab.open(page, **window)
            tab.run(f"document.querySelector('{part}').scrollIntoView()")
            tab.picture(path)
            Image.open(path).convert("RGB").quantize(COLOURS).save(path, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1])
