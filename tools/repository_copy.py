"""Copies of the repository, to change the source and run tests in without touching the work tree."""

import hashlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PASSED = 0  # exit code of pytest


class Copy:
    """A copy of the repository, to be changed and tested in.

    Parameters
    ----------
    folder : Path
    files : dict of str to bytes
        Files that it holds: names relative to the repository, and their content.
    """

    def __init__(self, folder, files):
        self.folder, self.files = folder, files
        self.restore()

    def restore(self):
        """Make it equal to the repository; equal files keep their time, so their compiled files stay valid."""
        for path in [path for path in self.folder.rglob("*.py") if path.is_file()]:
            if path.relative_to(self.folder).as_posix() not in self.files:
                path.unlink()
        for name, content in self.files.items():
            path = self.folder / name
            if not path.is_file() or path.read_bytes() != content:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)

    def run(self, command, seconds=None):
        """Run a Python command in the copy; return (exit code, or None after the time limit; its output)."""
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            printed, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, ""
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return process.returncode, printed

    def environment(self):
        """Return an environment with one thread and this copy's package first.

        Python writes no bytecode, which would hide a change within a second.
        """
        given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        others = [path for path in given if path and Path(path).resolve() != ROOT / "src"]
        paths = os.pathsep.join([str(self.folder / "src"), *others])
        threads = dict.fromkeys(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"], "1")
        return os.environ | threads | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}

    def test(self, names, seconds=None):
        """Run tests until one fails; return (exit code or None, name of the failed test or "")."""
        options = ["-q", "-x", "--tb=no", "-rfE", "-p", "no:cacheprovider"]
        code, printed = self.run(["-m", "pytest", *options, *names], seconds)
        return code, failed_test(printed, names)


def failed_test(printed, names):
    """Return the failed test in pytest's summary, or "" if it is none of these."""
    for line in printed.splitlines():
        if match := re.match(r"(?:FAILED|ERROR) (.*)", line):
            fits = [name for name in names if match[1] == name or match[1].startswith(f"{name} - ")]
            if fits:
                return max(fits, key=len)
    return ""


def repository_files():
    """Return the content of the files that git knows or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    names = [name for name in listed.stdout.split("\0") if name]
    return {name: (ROOT / name).read_bytes() for name in sorted(names) if (ROOT / name).is_file()}


def digest(files):
    """Return a name made from the content of files."""
    found = hashlib.sha256()
    for name, content in sorted(files.items()):
        found.update(f"{name} {len(content)}\n".encode() + content)
    return found.hexdigest()[:16]
