"""LibMultiLabel's one-vs-rest, for a Python that has it and not rbrl: ``python libmultilabel_fit.py FOLDER``.

Reads X, Y and X_test of the folder, writes scores.npy there, and prints the figures.
"""

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
from libmultilabel.linear import train_1vsrest
from scipy import sparse

OPTIONS = "-s 1 -c 0.5 -B 1 -m 1"

folder = Path(sys.argv[1])
X, Y, X_test = (sparse.csr_matrix(sparse.load_npz(folder / f"{name}.npz")) for name in ("X", "Y", "X_test"))
started, wall = time.process_time(), time.perf_counter()
model = train_1vsrest(Y, X, options=OPTIONS, verbose=False)
seconds, wall = time.process_time() - started, time.perf_counter() - wall
started = time.process_time()
np.save(folder / "scores.npy", model.predict_values(X_test))
predicted = time.process_time() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps({"seconds": seconds, "wall": wall, "predicted": predicted, "peak": peak}))
