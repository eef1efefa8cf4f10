"""The extra `torch` is apart: nothing of the package needs it, and without it one line says what to install."""

import subprocess
import sys

import pytest


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_the_package_never_imports_torch():
    # Model files need skops, which walks through scikit-learn's modules; one of those takes torch along where it is there.
    names = "(name for name in rbrl.__all__ if name not in ('load', 'save'))"
    answer = python(f"import sys, rbrl; [getattr(rbrl, name) for name in {names}]; print('torch' in sys.modules)")
    assert answer.stdout == "False\n", answer.stderr


@pytest.mark.parametrize("statement", ["import rbrl.interop.torch", "from rbrl.interop.torch import RBRLLoss"])
def test_without_the_extra_one_line_names_it(statement):
    answer = python(f"import sys; sys.modules['torch'] = None; {statement}")
    assert answer.returncode == 1
    assert answer.stderr.splitlines()[-1].startswith("ImportError: rbrl.interop.torch needs PyTorch (")
    assert answer.stderr.splitlines()[-1].endswith("pip install 'rbrl[torch]'.")
