"""Build backend for pip, uv and build: scikit-build-core, with the compiled core of an editable install in the source tree.

There the package itself and every copy of it find the core, without a finder of imports between Python and the sources. It
is compiled anew by every install, and by nothing else: importing rbrl builds and writes nothing.
"""

from base64 import urlsafe_b64encode
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from scikit_build_core.build import (
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

__all__ = [
    "build_editable", "build_sdist", "build_wheel", "get_requires_for_build_editable", "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]  # fmt: skip

SOURCES = Path(__file__).parents[1] / "src"
get_requires_for_build_editable = get_requires_for_build_wheel


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Compile the core into the source tree, and make a wheel that has nothing but the path of that tree."""
    # Remove the old core first: otherwise it would stay if the new sources do not compile.
    for suffix in EXTENSION_SUFFIXES:
        (SOURCES / f"rbrl/_loops/_core{suffix}").unlink(missing_ok=True)
    with TemporaryDirectory() as folder:
        name = build_wheel(folder, config_settings)
        with ZipFile(Path(folder, name)) as built, ZipFile(Path(wheel_directory, name), "w") as wheel:
            built.extractall(
                SOURCES, [member for member in built.namelist() if member.startswith("rbrl/_loops/_core.")]
            )
            (record,) = (member for member in built.namelist() if member.endswith(".dist-info/RECORD"))
            about = [member for member in built.namelist() if ".dist-info/" in member and member != record]
            contents = {"rbrl.pth": f"{SOURCES}\n".encode()} | {member: built.read(member) for member in about}
            lines = [f"{member},{_digest(content)},{len(content)}\n" for member, content in contents.items()]
            for member, content in (contents | {record: "".join([*lines, f"{record},,\n"])}).items():
                wheel.writestr(member, content)
    return name


def _digest(content):
    return f"sha256={urlsafe_b64encode(sha256(content).digest()).rstrip(b'=').decode()}"
