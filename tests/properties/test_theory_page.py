"""docs/theory.md points at tests that exist, and at every test of the theory."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_named_test_exists():
    page = (ROOT / "docs" / "theory.md").read_text()
    assert set(re.findall(r"`(tests/[\w/]+\.py)", page)) <= {
        str(p.relative_to(ROOT)) for p in ROOT.rglob("tests/**/*.py")
    }
    defined = {
        name for p in ROOT.rglob("tests/**/*.py") for name in re.findall(r"^def (test_\w+)", p.read_text(), re.M)
    }
    named = set(re.findall(r"(?<![\w/])(test_\w+)`", page))
    assert named <= defined, named - defined
    theory = re.findall(r"^def (test_\w+)", (ROOT / "tests/properties/test_theory.py").read_text(), re.M)
    assert set(theory) <= named, set(theory) - named
