"""The ten figures that a release is compared by, in processor seconds where they are times; small, so that all take minutes.

Everything is measured in one thread, on yeast (1,450 rows, 103 features, 14 labels) or on data made with a seed.
"""

import os
import subprocess
import sys
import tempfile
import time

import numpy as np
from scipy import sparse
from sklearn.datasets import make_multilabel_classification

from rbrl import RBRLClassifier, RBRLClassifierCV, datasets

# Seconds, for a machine that others use too.
TIMEOUT = 600
IMPORT = "from rbrl import RBRLClassifier"
FIT = f"""
import numpy as np
rng = np.random.default_rng(0)
X, Y = rng.standard_normal((300, 20)), rng.random((300, 5)) < 0.3
{IMPORT}
RBRLClassifier().fit(X, Y.astype(int))
"""


def seconds_of_process(code):
    """Processor seconds of a new process, the least of three."""
    program = f"{code}\nimport time; print(time.process_time())"
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    run = [sys.executable, "-c", program]
    found = [subprocess.run(run, env=environment, capture_output=True, check=True, text=True) for _ in range(3)]
    return min(float(answer.stdout.split()[-1]) for answer in found)


class Processes:
    """Figures of a new process."""

    unit, timeout = "s", TIMEOUT

    def track_import(self):
        return seconds_of_process(IMPORT)

    def track_first_fit(self):
        return seconds_of_process(FIT)


class Timed:
    """Processor time, once a round."""

    timer = time.process_time
    number, repeat, rounds, warmup_time, timeout = 1, 5, 1, 0, TIMEOUT

    def setup(self):
        self.train, self.test = datasets.load("yeast").split(seed=0)


class Yeast(Timed):
    def time_fit_linear(self):
        RBRLClassifier().fit(*self.train)

    def time_fit_rbf(self):
        RBRLClassifier(kernel="rbf").fit(*self.train)


class Search(Timed):
    repeat = 1

    def time_search(self):
        RBRLClassifierCV(cv=2).fit(self.train.X[:500], self.train.Y[:500])


class Prediction(Timed):
    def setup(self):
        super().setup()
        self.model, self.rows = RBRLClassifier().fit(*self.train), [self.test.X[i : i + 1] for i in range(100)]

    def time_predict_single_rows(self):
        for row in self.rows:
            self.model.predict(row)


class ManyLabels(Timed):
    """2,000 sparse rows of 500 features with 1,000 labels."""

    repeat = 2

    def setup(self):
        X, Y = make_multilabel_classification(2000, 500, n_classes=1000, n_labels=5, sparse=True, random_state=0)
        self.X, self.Y = sparse.csr_array(X), sparse.csr_array(Y)

    def time_fit_many_labels(self):
        RBRLClassifier().fit(self.X, self.Y)


class OutOfCore:
    """20,000 rows of 50 features with 10 labels, in four files."""

    unit, timeout = "s", TIMEOUT

    def setup(self):
        X, Y = make_multilabel_classification(20_000, 50, n_classes=10, random_state=0)
        self.folder = tempfile.TemporaryDirectory()
        self.rows = datasets.write_shards((X.astype(float), Y), self.folder.name, rows_per_shard=5000)

    def teardown(self):
        self.folder.cleanup()

    def track_pass(self):
        """Processor seconds of a fit from files for each pass over them, proof and sums included."""
        before = time.process_time()
        model = RBRLClassifier().fit(self.rows)
        return (time.process_time() - before) / model.n_evaluations_


class Counted:
    """Figures that depend on the method and hardly on the machine."""

    unit, timeout = "evaluations", TIMEOUT

    def setup(self):
        self.train, _ = datasets.load("yeast").split(seed=0)

    def track_evaluations(self):
        return RBRLClassifier().fit(*self.train).n_evaluations_


class Memory:
    timeout = TIMEOUT

    def setup(self):
        rng = np.random.default_rng(0)
        self.X = rng.standard_normal((20_000, 200))
        self.Y = (self.X @ rng.standard_normal((200, 10)) > 5).astype(np.int8)

    def peakmem_fit(self):
        """Peak memory of the whole process; X itself is 32 MB."""
        RBRLClassifier().fit(self.X, self.Y)
