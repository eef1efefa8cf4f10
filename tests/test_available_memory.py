"""The memory that a process may still allocate, from the limits that the system states."""

import subprocess
import sys

import pytest

from rbrl._common.environment import available_bytes


def test_the_tightest_group_counts_and_cached_files_do_not(tmp_path):
    own = tmp_path / "own"
    group = tmp_path / "root" / "outer" / "inner"
    group.mkdir(parents=True)
    own.write_text("0::/outer/inner\n", encoding="utf-8")
    assert available_bytes(tmp_path / "root", own) > 5000
    for place, most in ((group, "max"), (group.parent, "5000")):
        (place / "memory.max").write_text(most + "\n", encoding="utf-8")
        (place / "memory.current").write_text("3000\n", encoding="utf-8")
        (place / "memory.stat").write_text("anon 2500\nfile 500\n", encoding="utf-8")
    assert available_bytes(tmp_path / "root", own) == 2500


def test_a_group_of_version_1_that_is_over_its_limit_leaves_nothing(tmp_path):
    own = tmp_path / "own"
    group = tmp_path / "root" / "memory" / "jobs"
    group.mkdir(parents=True)
    own.write_text("4:memory:/jobs\n3:cpu:/jobs\n", encoding="utf-8")
    (group / "memory.limit_in_bytes").write_text("9000\n", encoding="utf-8")
    (group / "memory.usage_in_bytes").write_text("10000\n", encoding="utf-8")
    assert available_bytes(tmp_path / "root", own) == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="address space is limited on Linux alone")
def test_a_limited_address_space_counts():
    program = (
        "import resource; from rbrl._common.environment import available_bytes; "
        "pages = int(open('/proc/self/statm').read().split()[0]); most = pages * resource.getpagesize() + 2**29; "
        "resource.setrlimit(resource.RLIMIT_AS, (most, most)); size = available_bytes(); "
        "block = bytearray(2**28); print(size - available_bytes() >= 2**28, size <= 2**29)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["True", "True"]
