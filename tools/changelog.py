"""Put the fragments of changes/ into CHANGELOG.md, as the section of the version of src/rbrl/_version.py, and remove them.

    python tools/changelog.py            write, remove the fragments, date the citation
    python tools/changelog.py --draft    print the section

Each fragment becomes a part under its topic, its name; in alphabetical order.
"""

import argparse
import re
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WHAT = "What users of rbrl can notice, newest first."
HEAD = f"# Changelog\n\n{WHAT} What is not yet released stands in [changes/](changes/README.md), a file per topic.\n"
NONE_YET = "\nNo version is released yet.\n"


def main(arguments, root=ROOT):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draft", action="store_true", help="print the section, and change nothing")
    options = parser.parse_args(arguments)
    version = re.search(r'__version__ = "(.+)"', (root / "src/rbrl/_version.py").read_text(encoding="utf-8"))[1]
    fragments = sorted(path for path in (root / "changes").glob("*.md") if path.name != "README.md")
    if not fragments:
        sys.exit("changes/ must have a fragment for each change that users can notice. Got none.")
    new = section(version, date.today(), fragments)
    if options.draft:
        print(new)
        return
    write(root, version, new)
    for path in fragments:
        path.unlink()


def section(version, day, fragments):
    """Return the part of the changelog for a version: its points under the topics of their fragments."""
    parts = [f"## {version} ({day.isoformat()})"]
    for path in fragments:
        topic = path.stem.replace("-", " ").replace("_", " ")
        # Links of a fragment start in its folder, those of the changelog in the one above.
        points = path.read_text(encoding="utf-8").strip().replace("](../", "](")
        parts.append(f"### {topic[0].upper()}{topic[1:]}\n\n{points}")
    return "\n\n".join(parts) + "\n"


def write(root, version, new):
    """Put the section above those of earlier versions, and the day of the release into the citation."""
    changelog, citation = root / "CHANGELOG.md", root / "CITATION.cff"
    text, cited = changelog.read_text(encoding="utf-8"), citation.read_text(encoding="utf-8")
    if f"\n## {version} (" in text:
        sys.exit(
            f"CHANGELOG.md must not have the version of src/rbrl/_version.py yet. Got {version}; name the next one there, "
            "or undo the section (git checkout CHANGELOG.md changes CITATION.cff) and call this again."
        )
    earlier = text.removeprefix(HEAD).removeprefix(NONE_YET)
    if text == earlier:
        sys.exit(f"CHANGELOG.md must begin with:\n{HEAD}")
    changelog.write_text(f"{HEAD}\n{new}{earlier}", encoding="utf-8")
    day = re.search(r"\((.+)\)", new)[1]
    cited = re.sub(r"^date-released: .*\n", "", cited, flags=re.MULTILINE)
    cited = re.sub(r"^version: .*$", f"version: {version}\ndate-released: {day}", cited, flags=re.MULTILINE)
    citation.write_text(cited, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
