"""Build the source archive and the wheel, each in an environment of its own, and check what is in them.

    python tools/distributions.py [FOLDER]           build into FOLDER (dist), check, and state the sizes
    python tools/distributions.py --check FOLDER     check what is there

The wheel is built from the source archive, so that it needs nothing that the archive lacks. The archive holds every file
that git has but the hidden ones (.github is not hidden); the wheel holds the package without its C++ sources, and nothing
else. It needs `build` and `twine`: the extra `release`, which `make dist` installs.
"""

import argparse
import re
import subprocess
import sys
import tarfile
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

from index_readme import FENCE, LINK

ROOT = Path(__file__).resolve().parents[1]
SOURCES = "rbrl/_loops/core/"
# Largest sizes in bytes, about twice the present sizes.
LARGEST = {"sdist": 6_000_000, "wheel": 2_000_000}


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist")
    parser.add_argument("--check", action="store_true", help="build nothing")
    options = parser.parse_args(arguments)
    if not options.check:
        build(options.folder)
    sdists, wheels = sorted(options.folder.glob("*.tar.gz")), sorted(options.folder.glob("*.whl"))
    complaints = [] if sdists and wheels else [f"{options.folder} must hold a source archive and a wheel."]
    complaints += [complaint for path in sdists for complaint in complaints_of_sdist(path)]
    complaints += [complaint for path in wheels for complaint in complaints_of_wheel(path)]
    print("\n".join([*complaints, *map(describe, [*sdists, *wheels])]))
    return 1 if complaints or rendering([*sdists, *wheels]) else 0


def build(folder):
    """Build a source archive and a wheel of it, and remove those of other versions."""
    for path in [*folder.glob("rbrl-*.tar.gz"), *folder.glob("rbrl-*.whl")]:
        path.unlink()
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=True)


def rendering(paths):
    """Return the exit code of twine's check of the metadata, with its warnings as errors."""
    return subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, paths)]).returncode


def describe(path):
    return f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, {len(members(path))} files"


def members(path):
    """Return the names of the files in an archive; for a source archive without its own folder."""
    if path.suffix == ".whl":
        with ZipFile(path) as wheel:
            return {name for name in wheel.namelist() if not name.endswith("/")}
    with tarfile.open(path) as archive:
        return {member.name.partition("/")[2] for member in archive if member.isfile()}


def tracked():
    """Return the files of the repository that belong into a source archive."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = [name for name in listed.split("\0") if name and (ROOT / name).is_file()]
    return {name for name in names if name.startswith(".github/") or not re.search(r"(^|/)\.", name)}


def complaints_of_sdist(path, expected=None):
    """Yield the problems of a source archive; `expected` are its files, by default those that git has."""
    expected, found = tracked() if expected is None else expected, members(path) - {"PKG-INFO"}
    yield from _differences(path, expected, found)
    yield from _common_complaints(path, "sdist", _read(path, f"{path.name.removesuffix('.tar.gz')}/PKG-INFO"))


def complaints_of_wheel(path, package=ROOT / "src"):
    """Yield the problems of a wheel of the package in a folder."""
    files = (file for file in package.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    names = {file.relative_to(package).as_posix() for file in files}
    expected = {
        name for name in names if not name.startswith((SOURCES, "rbrl/_loops/_core.")) and ".egg-info/" not in name
    }
    about = f"{'-'.join(path.name.split('-')[:2])}.dist-info/"
    found = {name for name in members(path) if not name.startswith(about)}
    cores = {name for name in found if re.fullmatch(r"rbrl/_loops/_core\.[\w.-]*(so|pyd)", name)}
    if len(cores) != (0 if path.stem.endswith("-none-any") else 1):
        yield f"{path.name}: a compiled core goes with a wheel of a platform, and with no other. Got {sorted(cores)}."
    yield from _differences(path, expected, found - cores)
    missing = {f"{about}{name}" for name in ("METADATA", "entry_points.txt", "licenses/LICENSE")} - members(path)
    yield from (f"{path.name} lacks {name}" for name in sorted(missing))
    yield from _common_complaints(path, "wheel", _read(path, f"{about}METADATA"))


def _differences(path, expected, found):
    yield from (f"{path.name} lacks {name}" for name in sorted(expected - found))
    yield from (f"{path.name} must not have {name}" for name in sorted(found - expected))


def _common_complaints(path, kind, metadata):
    if (size := path.stat().st_size) > LARGEST[kind]:
        yield f"{path.name} must not be larger than {LARGEST[kind]} bytes. Got {size}."
    text = "".join(FENCE.split(HeaderParser().parsestr(metadata).get_payload())[::2])
    relative = [match["target"] for match in LINK.finditer(text) if not re.match(r"[a-z]+:", match["target"])]
    yield from (f"{path.name}: the readme has a link that dies on an index: {target}" for target in relative)


def _read(path, name):
    if path.suffix == ".whl":
        with ZipFile(path) as wheel:
            return wheel.read(name).decode()
    with tarfile.open(path) as archive:
        return archive.extractfile(name).read().decode()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
