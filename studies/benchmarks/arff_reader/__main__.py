"""Compare the speed of the ARFF reader with SciPy's: ``python -m studies.benchmarks.arff_reader``."""

import platform
import tempfile
import time
from datetime import date
from pathlib import Path

import numpy as np
import scipy
from scipy.io.arff import loadarff

from rbrl.datasets import load_file

SIZE = 100_000_000
HERE = Path(__file__).parent


def write_dense(path, n_features=300, n_labels=14):
    """Write a dense file of about SIZE bytes: six decimals, then labels."""
    rng = np.random.default_rng(0)
    with open(path, "w") as stream:
        stream.write(f"@relation 'dense: -C -{n_labels}'\n")
        stream.writelines(f"@attribute x{j} numeric\n" for j in range(n_features))
        stream.writelines(f"@attribute y{j} {{0,1}}\n" for j in range(n_labels))
        stream.write("@data\n")
        while stream.tell() < SIZE:
            values = [f"{value:.6f}" for value in rng.standard_normal(n_features)]
            stream.write(",".join(values + rng.integers(0, 2, n_labels).astype(str).tolist()) + "\n")


def write_sparse(path, n_features=50_000, n_labels=100, n_values=100):
    """Write a sparse file of about SIZE bytes: three labels and `n_values` features a row."""
    rng = np.random.default_rng(0)
    with open(path, "w") as stream:
        stream.write(f"@relation 'sparse: -C {n_labels}'\n")
        stream.writelines(f"@attribute y{j} {{0,1}}\n" for j in range(n_labels))
        stream.writelines(f"@attribute x{j} numeric\n" for j in range(n_features))
        stream.write("@data\n")
        while stream.tell() < SIZE:
            labels = np.unique(rng.integers(0, n_labels, 3))
            features = np.unique(rng.integers(n_labels, n_labels + n_features, n_values))
            entries = [f"{j} 1" for j in labels] + [f"{j} {v:.6f}" for j, v in zip(features, rng.random(len(features)))]
            stream.write("{" + ",".join(entries) + "}\n")


def seconds(function, path, repeats=3):
    """Return the best of a few times: (by the clock, of the processor)."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter(), time.process_time()
        function(path)
        times.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    return [min(kind) for kind in zip(*times)]


def main():
    """Time the readers and rewrite results.md."""
    with tempfile.TemporaryDirectory() as folder:
        dense, sparse = Path(folder, "dense.arff"), Path(folder, "sparse.arff")
        write_dense(dense)
        write_sparse(sparse)
        rows = [
            ("dense", "rbrl", dense.stat().st_size, seconds(load_file, dense)),
            ("dense", "SciPy", dense.stat().st_size, seconds(loadarff, dense)),
            ("sparse", "rbrl", sparse.stat().st_size, seconds(load_file, sparse)),
        ]
    lines = [
        f"| {kind} | {reader} | {size / 1e6:.0f} | {clock:.2f} | {processor:.2f} |"
        for kind, reader, size, (clock, processor) in rows
    ]
    text = f"""# ARFF reader

`python -m studies.benchmarks.arff_reader`, {date.today()}, Python {platform.python_version()}, NumPy {np.__version__},
SciPy {scipy.__version__}; best of three, on two shared cores. SciPy does not read sparse files.

| file | reader | MB | seconds | processor seconds |
|---|---|---|---|---|
""" + "\n".join(lines)
    (HERE / "results.md").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
