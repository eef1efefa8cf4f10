#!/bin/sh
# Run the numerical tests as other processors would compute them: kernels.sh PYTHON [options of pytest]
# OPENBLAS_CORETYPE chooses the kernels of NumPy's and SciPy's linear algebra, NPY_DISABLE_CPU_FEATURES takes from NumPy's
# loops what newer processors have. KERNELS names some of them only.
set -u
python=$1 && shift
failed=""

has() { grep -qw -e "$1" /proc/cpuinfo 2>/dev/null; }
# A kernel of instructions that this processor has not would end in a crash, which says nothing.
runs_here() {
    case $1 in
        Haswell | Zen) has avx2 ;;
        SkylakeX) has avx512f ;;
        *) true ;;
    esac
}
dispatched() {
    "$python" -c 'from numpy._core._multiarray_umath import __cpu_dispatch__ as known, __cpu_features__ as has
print(*(name for name in known if has[name]))'
}

for kernel in ${KERNELS:-Nehalem Haswell Zen SkylakeX baseline}; do
    if ! runs_here "$kernel"; then
        echo "$kernel: left out, this processor cannot run it" >&2
        continue
    fi
    echo "== $kernel" >&2
    (
        case $kernel in
            baseline) export NPY_DISABLE_CPU_FEATURES="$(dispatched)" ;;
            *) export OPENBLAS_CORETYPE="$kernel" ;;
        esac
        exec "$python" -m pytest -q -n auto --dist loadfile --ignore tests/cli --ignore tests/datasets \
            --ignore tests/experiments --ignore tests/report --ignore tests/test_docs.py "$@"
    ) || failed="$failed $kernel"
done
[ -z "$failed" ] || { echo "failed under:$failed" >&2 && exit 1; }
