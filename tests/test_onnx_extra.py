"""The extra `onnx` is apart: nothing else of the package needs it, and without it one line says what to install."""

import subprocess
import sys

FIT = "from rbrl import BRLClassifier, to_onnx; model = BRLClassifier().fit([[0.0], [1.0]], [[0, 1], [1, 0]])"


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_the_package_never_imports_onnx():
    code = "import sys, rbrl; [getattr(rbrl, name) for name in rbrl.__all__]; print('onnx' in sys.modules)"
    answer = python(code)
    assert answer.stdout == "False\n", answer.stderr


def test_without_the_extra_one_line_names_it():
    answer = python(f"import sys; sys.modules['onnx'] = None; {FIT}; to_onnx(model)")
    assert answer.returncode == 1
    assert answer.stderr.splitlines()[-1].startswith("ImportError: rbrl.to_onnx needs the package onnx (")
    assert answer.stderr.splitlines()[-1].endswith("pip install 'rbrl[onnx]'.")
