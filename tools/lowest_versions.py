"""Print the lowest versions of the requirements in pyproject.toml, as constraints for pip or uv."""

import re
import sys
import tomllib
from pathlib import Path

NAME, EXTRAS, BOUND = r"([A-Za-z0-9_.-]+)", r"(?:\[[^\]]*\])?", r">=([0-9.]+)"


def lowest(requirement):
    """Return "numpy>=2.2" as "numpy==2.2"; a requirement of another form is refused, since its bound would stay untested."""
    match = re.fullmatch(NAME + EXTRAS + BOUND, requirement.replace(" ", ""))
    if match is None:
        sys.exit(f"A requirement in pyproject.toml must be NAME>=VERSION. Got {requirement!r} instead.")
    return f"{match[1]}=={match[2]}"


project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
extras = project["optional-dependencies"].values()
named = [*project["dependencies"], *(name for extra in extras for name in extra)]
requirements = [name for name in named if not name.startswith(f"{project['name']}[")]
sys.stdout.write("".join(f"{line}\n" for line in dict.fromkeys(map(lowest, requirements))))
