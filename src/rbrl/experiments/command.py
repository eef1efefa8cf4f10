"""`CommandClassifier`: a method that is a command, which runs in its own process and environment.

The command is started once. It reads the paths of folders from its standard input, line by line, and answers each with
a line on its standard output. A folder holds a split, and the command writes scores into it. A command that ends after
an answer is started again for the next folder.
"""

from __future__ import annotations

import atexit
import json
import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from rbrl._common.bases import ClassifierMixin, Estimator
from rbrl._common.typing import Array, FloatArray, IntArray, Matrix
from rbrl.decision import relevant_labels
from rbrl.exceptions import CommandError

# Number of characters of a command's standard error that an error message quotes.
QUOTED_CHARACTERS = 2000


class CommandClassifier(ClassifierMixin, Estimator):
    """Classifier that is a command: it reads a split and writes scores.

    `fit` keeps the training rows. The first prediction for other rows sends both to the command, in
    a folder with

    - `X_train.npz` and `X_test.npz`: sparse matrices as `scipy.sparse.save_npz` writes them, or
      dense ones under the key `dense`;
    - `Y_train.npy`: 0/1, a column for each label;
    - `parameters.json`: all parameters except those that are named below, and `random_state`.

    The command writes `scores.npy`, a row for each test row and a column for each label. It writes
    `labels.npy`, 0/1, if its decision rule is not positive scores or probabilities of at least one
    half. Then it prints a JSON object in one line, with `fit_seconds` and `predict_seconds` of
    processor time, or with an `error`, which this class raises. Messages belong on standard error.

    Parameters
    ----------
    command : str or sequence of str
        Program and arguments; a string is split as in a shell.
    probabilities : bool, default=False
        If True, the scores are probabilities.
    folder : str, optional
        Folder in which the command is started: by default the folder of the plan, or the working
        directory.
    random_state : int, optional
        Seed for the command.
    **parameters
        Parameters for the command, of any type that JSON has. A plan may set them in `params` and
        `grid`.

    Attributes
    ----------
    answer_ : dict
        Last answer of the command, such as `fit_seconds` and `predict_seconds`; empty before the
        first one.

    Examples
    --------
    >>> import numpy as np
    >>> import sys
    >>> from rbrl.experiments import CommandClassifier
    >>> program = '''
    ... import sys, numpy
    ... for line in sys.stdin:
    ...     folder = line.strip()
    ...     Y = numpy.load(folder + "/Y_train.npy")
    ...     n_rows = len(numpy.load(folder + "/X_test.npz")["dense"])
    ...     numpy.save(folder + "/scores.npy", numpy.tile(Y.mean(axis=0), (n_rows, 1)))
    ...     print("{}", flush=True)
    ... '''
    >>> model = CommandClassifier([sys.executable, "-c", program], probabilities=True)
    >>> model.fit(np.ones((4, 2)), np.array([[1, 0], [1, 0], [1, 1], [0, 1]])).predict_proba(np.ones((1, 2)))
    array([[0.75, 0.5 ]])
    """

    takes_any_parameter = True
    X_train_: Matrix
    Y_train_: IntArray
    _predictions: tuple[FloatArray, IntArray]

    def __init__(
        self, command: str | Sequence[str], probabilities: bool = False, folder: str | None = None,
        random_state: int | None = None, **parameters: Any,
    ) -> None:  # fmt: skip
        self.command = command
        self.probabilities = probabilities
        self.folder = folder
        self.random_state = random_state
        self.parameters = parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of this classifier and of the command.

        Parameters
        ----------
        deep : bool, default=True
            Ignored; scikit-learn passes it.

        Returns
        -------
        dict
        """
        return {**super().get_params(deep=False), **self.parameters}

    def set_params(self, **params: Any) -> Self:
        """Change parameters of this classifier or of the command.

        Parameters
        ----------
        **params
            New values by name.

        Returns
        -------
        self
        """
        own = {name: params.pop(name) for name in super().get_params(deep=False) if name in params}
        super().set_params(**own)
        self.parameters = {**self.parameters, **params}
        return self

    def fit(self, X: Matrix, y: Any) -> Self:
        """Keep the training rows for the command.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array of 0/1, shape (n_samples, n_labels)
            Labels.

        Returns
        -------
        self
        """
        Y = np.asarray(y.toarray() if sparse.issparse(y) else y)
        if Y.ndim != 2 or not np.isin(Y, (0, 1)).all():
            raise ValueError(
                f"a command takes 0/1 labels of shape (n_samples, n_labels). Got {Y.dtype} of shape {Y.shape}."
            )
        self.X_train_ = X
        self.Y_train_ = Y.astype(np.int64)
        self.classes_ = [np.array([0, 1])] * Y.shape[1]
        self._predicted_digest = ""
        self.answer_: dict[str, Any] = {}
        return self

    @available_if(lambda self: not self.probabilities)
    def decision_function(self, X: Matrix) -> FloatArray:
        """Return the scores of the command.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        array of shape (n_samples, n_labels)
        """
        return self._predict_both(X)[0]

    @available_if(lambda self: self.probabilities)
    def predict_proba(self, X: Matrix) -> FloatArray:
        """Return the probabilities of the command.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        array of shape (n_samples, n_labels)
        """
        return self._predict_both(X)[0]

    def predict(self, X: Matrix) -> IntArray:
        """Return the 0/1 labels of the command.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        array of shape (n_samples, n_labels)
        """
        return self._predict_both(X)[1]

    def _predict_both(self, X: Matrix) -> tuple[FloatArray, IntArray]:
        """Return (scores, labels); the last predictions are kept for another call with the same rows."""
        check_is_fitted(self, "X_train_")
        digest = _digest(X)
        if digest != self._predicted_digest:
            with tempfile.TemporaryDirectory(prefix="rbrl-split-") as place:
                folder = Path(place)
                self._write_split(folder, X)
                self.answer_ = _ask_command(split_command(self.command), self.folder, folder)
                self._predictions = self._read_predictions(folder, X.shape[0])
                self._predicted_digest = digest
        return self._predictions

    def _write_split(self, folder: Path, X: Matrix) -> None:
        """Write the training and test rows into the files that the command reads."""
        for name, rows in (("X_train", self.X_train_), ("X_test", X)):
            if sparse.issparse(rows):
                sparse.save_npz(folder / f"{name}.npz", sparse.csr_matrix(rows), compressed=False)
            else:
                np.savez(folder / f"{name}.npz", dense=np.asarray(rows))
        np.save(folder / "Y_train.npy", self.Y_train_)
        parameters = {"random_state": self.random_state, **self.parameters}
        (folder / "parameters.json").write_text(json.dumps(parameters), encoding="utf-8")

    def _read_predictions(self, folder: Path, n_rows: int) -> tuple[FloatArray, IntArray]:
        """Return the checked scores and labels (n_rows, n_labels) that the command wrote."""
        scores = _read_array(folder / "scores.npy", (n_rows, self.Y_train_.shape[1])).astype(np.float64)
        if not np.isfinite(scores).all():
            raise CommandError(f"the command {self.command!r} wrote scores that are NaN or infinite.")
        if (folder / "labels.npy").is_file():
            return scores, _read_array(folder / "labels.npy", scores.shape).astype(np.int64)
        is_relevant = scores >= 0.5 if self.probabilities else relevant_labels(scores)
        return scores, is_relevant.astype(np.int64)


def split_command(command: str | Sequence[str]) -> tuple[str, ...]:
    """Return the program and its arguments.

    Examples
    --------
    >>> split_command("python 'my method.py' --fast")
    ('python', 'my method.py', '--fast')
    """
    words = shlex.split(command) if isinstance(command, str) else command
    if not words:
        raise ValueError(f"command must be a program and its arguments. Got {command!r} instead.")
    return tuple(map(str, words))


def _read_array(path: Path, shape: tuple[int, ...]) -> Array:
    """Return an array that a command wrote; raise CommandError if it is absent or has another shape."""
    if not path.is_file():
        raise CommandError(f"the command answered, but wrote no {path.name} into the folder of the split.")
    array = np.load(path, allow_pickle=False)
    if array.shape != shape:
        raise CommandError(f"the command's {path.name} must have the shape {shape}, rows by labels. Got {array.shape}.")
    return array


def _digest(X: Any) -> str:
    """Return a hash of the shape and the entries of a dense or CSR matrix."""
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (np.asarray(X),)
    digest = sha256(repr(X.shape).encode())
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


class _Process:
    """Running command that waits for folders."""

    # Processor time that all commands of this process have reported.
    reported_seconds = 0.0

    def __init__(self, words: tuple[str, ...], folder: str | None) -> None:
        self.n_answers = 0
        self.words = words
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the process
        try:
            self.process = subprocess.Popen(
                words, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True
            )
        except OSError as error:
            raise CommandError(f"the command {shlex.join(words)!r} cannot be started: {error}.") from error
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.requests = self.process.stdin
        self.answers = self.process.stdout

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def ask(self, folder: Path) -> dict[str, Any]:
        """Send a folder to the command, and return its answer."""
        try:
            self.requests.write(f"{folder}\n")
            self.requests.flush()
            line = self.answers.readline()
        except BrokenPipeError:
            line = ""
        self.n_answers += bool(line)
        if not line:
            code = self.process.wait()
            raise CommandError(f"the command {shlex.join(self.words)!r} ended with code {code}. {self._quote_errors()}")
        try:
            answer = json.loads(line)
        except json.JSONDecodeError:
            answer = None
        if not isinstance(answer, dict):
            self.close()  # its next line would be taken for the answer to the next folder
            raise CommandError(
                f"the command {shlex.join(self.words)!r} must answer with a JSON object in one line, such as {{}}. "
                f"Got {line.strip()[:200]!r} instead; messages belong on its standard error."
            )
        if answer.get("error"):
            raise CommandError(f"{shlex.join(self.words)}: {answer['error']}")
        seconds = (float(answer.get(f"{name}_seconds", 0.0)) for name in ("fit", "predict"))
        _Process.reported_seconds += sum(seconds)
        return answer

    def close(self) -> None:
        """End the process."""
        self.requests.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.answers.close()
        self.errors.close()

    def _quote_errors(self) -> str:
        self.errors.seek(0)
        text = self.errors.read().decode(errors="replace").strip()
        return f"Its standard error ends: {text[-QUOTED_CHARACTERS:]}" if text else "Its standard error is empty."


# Running commands by (id of our process, command, folder): a forked or spawned process starts its own.
_processes: dict[tuple[int, tuple[str, ...], str | None], _Process] = {}


def _start_or_reuse(words: tuple[str, ...], folder: str | None) -> _Process:
    """Return the running process of a command; start one if there is none or it has ended."""
    key = (os.getpid(), words, folder)
    if key not in _processes or not _processes[key].is_alive:
        _processes[key] = _Process(words, folder)
    return _processes[key]


def _ask_command(words: tuple[str, ...], folder: str | None, split: Path) -> dict[str, Any]:
    """Return the answer of a command to a split; start it again if it ended with code 0 after an answer."""
    process = _start_or_reuse(words, folder)
    has_answered = process.n_answers > 0
    try:
        return process.ask(split)
    except CommandError:
        if has_answered and process.process.poll() == 0:
            return _start_or_reuse(words, folder).ask(split)
        raise


def processor_seconds() -> float:
    """Return the processor time of this process and of its commands, as far as they report it."""
    return time.process_time() + _Process.reported_seconds


@atexit.register
def _close_all() -> None:
    for (owner, *_), process in _processes.items():
        if owner == os.getpid() and process.is_alive:
            process.close()
