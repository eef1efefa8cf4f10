"""Fit one method in a process of its own: ``python worker.py METHOD SETTING DATA FOLDER``.

DATA is the file that the study wrote, and FOLDER is for the model and the best labels of the rows to
measure. The facts of the fit are printed as JSON. Each method imports its own library only: the
Python of a peer needs NumPy and SciPy, and no rbrl.
"""

import gc
import json
import pickle
import resource
import statistics
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy import sparse

K = 5
# Largest number of rows that are predicted one at a time, and seconds after which no more of them are.
SINGLE_ROWS = 20
SINGLE_SECONDS = 5


def read(path):
    """Return the matrices X, Y and X_test that the study wrote, with indices of 32 bits."""
    parts = np.load(path)
    return [read_matrix(parts, name) for name in ("X", "Y", "X_test")]


def read_matrix(parts, name):
    """Return one matrix in the class that all libraries accept."""
    entries = parts[f"{name}_data"], parts[f"{name}_indices"], parts[f"{name}_indptr"]
    return sparse.csr_matrix(entries, shape=tuple(parts[f"{name}_shape"]))


def processor_time():
    """Return the seconds of processor time of this process and of its finished children."""
    parts = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in parts)


def peak_gigabytes():
    """Return the peak memory of this process so far, Python, libraries and data included."""
    # Unlike ru_maxrss, this peak does not include the memory of the process that started this one.
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(kilobytes) * 1024 / 1e9


def size_of(path):
    """Return the size of a file or of all files of a folder in GB."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e9


def best_columns(scores, k):
    """Return the columns of the k largest scores of each row, the largest first."""
    best = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
    return np.take_along_axis(best, order, axis=1)


class Rbrl:
    """RBRLClassifier without a nuclear norm; the setting is the ridge."""

    distribution = "rbrl"

    def __init__(self, ranking, compress=None):
        self.parameters = {"nuclear": 0, "ranking": ranking, "compress": compress}

    def fit(self, X, Y, setting):
        """Fit to a certified gap of 1e-3."""
        from rbrl import RBRLClassifier

        self.model = RBRLClassifier(**self.parameters, ridge=setting, tol=1e-3)
        X = sparse.csr_array(X)
        Y = sparse.csr_array(Y)
        estimate = self.model.problem(X, Y).estimate_memory().usual / 1e9
        self.model.fit(X, Y)
        return {"gap": self.model.gap_, "passes": self.model.n_iter_, "estimate_gb": estimate}

    def save(self, home):
        """Write the model file."""
        from rbrl import persistence

        path = home / "model.rbrl"
        persistence.save(self.model, path)
        return path

    def top(self, X):
        """Return the best columns of each row."""
        return self.model.predict_top(sparse.csr_array(X), K)[0]


class Omikuji:
    """Omikuji: three trees with linear models, as its defaults are; the setting is C."""

    distribution = "omikuji"

    def fit(self, X, Y, setting):
        """Train from the text file that the library reads; its time counts, as it cannot be left out."""
        import omikuji

        settings = omikuji.Model.default_hyper_param()
        settings.linear_c = setting
        self.model = omikuji.Model.train_on_data(str(self.text), settings, n_threads=1)
        return {}

    def prepare(self, X, Y, home):
        """Write the text file of the training rows, before the time starts."""
        self.text = home / "train.txt"
        with self.text.open("w") as out:
            print(X.shape[0], X.shape[1], Y.shape[1], file=out)
            for i in range(X.shape[0]):
                labels = ",".join(map(str, Y.indices[Y.indptr[i] : Y.indptr[i + 1]]))
                part = slice(X.indptr[i], X.indptr[i + 1])
                pairs = zip(X.indices[part], X.data[part])
                print(labels, *(f"{j}:{x:.8g}" for j, x in pairs), file=out)

    def save(self, home):
        """Write the folder of the model."""
        path = home / "omikuji"
        self.model.save(str(path))
        return path

    def top(self, X):
        """Return the best columns of each row, which the library predicts one row at a time."""
        found = np.full((X.shape[0], K), -1)
        for i in range(X.shape[0]):
            part = slice(X.indptr[i], X.indptr[i + 1])
            pairs = list(zip(X.indices[part].tolist(), X.data[part].tolist()))
            labels = [label for label, _ in self.model.predict(pairs, top_k=K)]
            found[i, : len(labels)] = labels
        return found


class Napkin:
    """NapkinXC, a tree (PLT) or one-vs-rest (BR), with its defaults; the setting is C."""

    distribution = "napkinxc"

    def __init__(self, name):
        self.name = name

    def prepare(self, X, Y, home):
        """Keep the folder into which the library writes while it trains."""
        self.home = home / "napkinxc"

    def fit(self, X, Y, setting):
        """Train and write the model, which cannot be separated."""
        from napkinxc import models

        options = {"seed": 0} if self.name == "PLT" else {}
        make = getattr(models, self.name)
        self.model = make(str(self.home), threads=1, liblinear_c=setting, **options)
        self.model.fit(X, Y.astype(np.float32))
        return {}

    def save(self, home):
        """Return the folder of the model, and load it for prediction."""
        self.model.load()
        return self.home

    def top(self, X):
        """Return the best columns of each row; rows without features have none."""
        found = np.full((X.shape[0], K), -1)
        for i, labels in enumerate(self.model.predict(X, top_k=K)):
            found[i, : len(labels)] = labels[:K]
        return found


class LibMultiLabel:
    """LibMultiLabel's linear tree or one-vs-rest, dual coordinate descent; the setting is C."""

    distribution = "libmultilabel"

    def __init__(self, name):
        self.name = name

    def fit(self, X, Y, setting):
        """Train; the library reads double precision."""
        from libmultilabel import linear

        train = getattr(linear, self.name)
        X = X.astype(np.float64)
        Y = Y.astype(np.float64)
        self.model = train(Y, X, options=f"-s 1 -c {setting} -B 1 -m 1", verbose=False)
        return {}

    def save(self, home):
        """Write the pickle, which is how the library stores models."""
        path = home / "model.pickle"
        with path.open("wb") as out:
            pickle.dump(self.model, out, protocol=4)
        return path

    def top(self, X):
        """Return the best columns of each row, a thousand rows at a time."""
        parts = [X[start : start + 1000].astype(np.float64) for start in range(0, X.shape[0], 1000)]
        return np.vstack([best_columns(np.asarray(self.model.predict_values(part)), K) for part in parts])


class Pecos:
    """PECOS XR-Linear with its own clusters of labels; the setting is C."""

    distribution = "libpecos"

    def fit(self, X, Y, setting):
        """Train on one thread."""
        from pecos.xmc import Indexer, LabelEmbeddingFactory
        from pecos.xmc.xlinear.model import XLinearModel

        X = X.astype(np.float32)
        X.sort_indices()
        Y = Y.astype(np.float32)
        clusters = Indexer.gen(LabelEmbeddingFactory.create(Y, X, method="pifa"), threads=1)
        parameters = {"Cp": setting, "Cn": setting, "threads": 1}
        self.model = XLinearModel.train(X, Y, C=clusters, **parameters)
        return {}

    def save(self, home):
        """Write the folder of the model."""
        path = home / "pecos"
        self.model.save(str(path))
        return path

    def top(self, X):
        """Return the best columns of each row."""
        X = X.astype(np.float32)
        X.sort_indices()
        scores = self.model.predict(X, only_topk=K, threads=1)
        found = np.full((X.shape[0], K), -1)
        for i in range(X.shape[0]):
            part = slice(scores.indptr[i], scores.indptr[i + 1])
            labels = scores.indices[part][np.argsort(-scores.data[part], kind="stable")]
            found[i, : len(labels)] = labels
        return found


METHODS = {
    "rbrl, ranking=0": lambda: Rbrl(0),
    "rbrl, ranking=1": lambda: Rbrl(1),
    "rbrl, ranking=0, compress=0.01": lambda: Rbrl(0, 0.01),
    "rbrl, ranking=1, compress=0.01": lambda: Rbrl(1, 0.01),
    "Omikuji": Omikuji,
    "napkinXC, PLT": lambda: Napkin("PLT"),
    "napkinXC, BR": lambda: Napkin("BR"),
    "LibMultiLabel, tree": lambda: LibMultiLabel("train_tree"),
    "LibMultiLabel, one-vs-rest": lambda: LibMultiLabel("train_1vsrest"),
    "PECOS": Pecos,
}


def main(name, setting, data, home):
    """Fit the method and print the facts of the fit."""
    X, Y, X_test = read(data)
    home = Path(home)
    method = METHODS[name]()
    if hasattr(method, "prepare"):
        method.prepare(X, Y, home)
    before = peak_gigabytes()
    started = processor_time()
    facts = method.fit(X, Y, float(setting))
    facts |= {"seconds": processor_time() - started, "gb": peak_gigabytes()}
    facts["added_gb"] = facts["gb"] - before
    facts["version"] = f"{method.distribution} {version(method.distribution)}"
    print(json.dumps(facts), flush=True)
    del Y
    gc.collect()
    if X_test.shape[0]:
        facts |= measure_prediction(method, X_test, home)
    print(json.dumps(facts))


def measure_prediction(method, X_test, home):
    """Write the model and its best labels; return the size of the file and the times."""
    facts = {"file_gb": size_of(method.save(home))}
    started = processor_time()
    best = method.top(X_test)
    facts["all_rows"] = processor_time() - started
    np.save(home / "best.npy", best)
    single = []
    for i in range(SINGLE_ROWS):
        row = X_test[i : i + 1]
        started = processor_time()
        method.top(row)
        single.append(processor_time() - started)
        if sum(single) > SINGLE_SECONDS:
            break
    facts["one_row"] = statistics.fmean(single)
    return facts


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])
