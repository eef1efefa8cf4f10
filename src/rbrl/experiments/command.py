"""`CommandClassifier`: a method that is a command, in a process and an environment of its own.

The command is started once and asked over and over: it reads the path of a folder from its standard input, line by line,
and answers each with a line on its standard output. In the folder it finds a split, and leaves scores there. One that ends
after an answer is started again for the next question.
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
from typing import Any, Self, TextIO

import numpy as np
from scipy import sparse
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from rbrl._common.bases import ClassifierMixin, Estimator
from rbrl._common.typing import Array, FloatArray, IntArray, Matrix
from rbrl.decision import relevant_labels
from rbrl.exceptions import CommandError

# How much of what a command wrote to its standard error goes into a message.
LAST_CHARACTERS = 2000


class CommandClassifier(ClassifierMixin, Estimator):
    """A method that is a command: it reads a split and writes scores.

    `fit` keeps the training rows; the first question about other rows sends both to the command, in a folder with

    - `X_train.npz` and `X_test.npz`: sparse matrices as `scipy.sparse.save_npz` writes them, or dense ones under the key
      `dense`; `Y_train.npy`: 0/1, a column for each label;
    - `parameters.json`: all parameters beyond those named below, and `random_state`.

    The command writes `scores.npy` there, a row for each test row and a column for each label, and `labels.npy`, 0/1, if
    its own rule is another than positive scores, or probabilities of at least one half. Then it prints a line of JSON, a
    table, which is kept: `fit_seconds` and `predict_seconds` of the processor, or an `error`, which is raised here.
    Everything else that it has to say belongs on its standard error.

    Parameters
    ----------
    command : str or sequence of str
        Program and arguments; a text is taken apart as a shell does.
    probabilities : bool, default=False
        The scores are probabilities.
    folder : str, optional
        Where the command is started; a plan gives its own folder. Default: here.
    random_state : int, optional
        Handed on.
    **parameters
        Handed on; any that JSON can say. A plan may have them in `params` and `grid`.

    Attributes
    ----------
    answer_ : dict
        What the command said last, such as `fit_seconds` and `predict_seconds`; empty before it was asked.

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
    _found: tuple[FloatArray, IntArray]

    def __init__(
        self, command: str | Sequence[str], probabilities: bool = False, folder: str | None = None,
        random_state: int | None = None, **parameters: Any,
    ) -> None:  # fmt: skip
        self.command, self.probabilities, self.folder, self.random_state = command, probabilities, folder, random_state
        self.parameters = parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of this classifier and of the command.

        Parameters
        ----------
        deep : bool, default=True
            Without a meaning here.

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
        y : array of 0/1, shape (n_samples, n_labels)

        Returns
        -------
        self
        """
        Y = np.asarray(y.toarray() if sparse.issparse(y) else y)
        if Y.ndim != 2 or not np.isin(Y, (0, 1)).all():
            raise ValueError(
                f"a command takes 0/1 labels of shape (n_samples, n_labels). Got {Y.dtype} of shape {Y.shape}."
            )
        self.X_train_, self.Y_train_ = X, Y.astype(np.int64)
        self.classes_ = [np.array([0, 1])] * Y.shape[1]
        self._asked = ""
        self.answer_: dict[str, Any] = {}
        return self

    @available_if(lambda self: not self.probabilities)
    def decision_function(self, X: Matrix) -> FloatArray:
        """The command's scores.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_labels)
        """
        return self._ask(X)[0]

    @available_if(lambda self: self.probabilities)
    def predict_proba(self, X: Matrix) -> FloatArray:
        """The command's probabilities.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_labels)
        """
        return self._ask(X)[0]

    def predict(self, X: Matrix) -> IntArray:
        """The command's labels, 0/1.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_labels)
        """
        return self._ask(X)[1]

    def _ask(self, X: Matrix) -> tuple[FloatArray, IntArray]:
        """(scores, labels) of these rows; those of the last question are remembered."""
        check_is_fitted(self, "X_train_")
        asked = _digest(X)
        if asked != self._asked:
            with tempfile.TemporaryDirectory(prefix="rbrl-split-") as place:
                folder = Path(place)
                self._write(folder, X)
                self.answer_ = _asked(words_of(self.command), self.folder, folder)
                self._found, self._asked = self._read(folder, X.shape[0]), asked
        return self._found

    def _write(self, folder: Path, X: Matrix) -> None:
        for name, rows in (("X_train", self.X_train_), ("X_test", X)):
            if sparse.issparse(rows):
                sparse.save_npz(folder / f"{name}.npz", sparse.csr_matrix(rows), compressed=False)
            else:
                np.savez(folder / f"{name}.npz", dense=np.asarray(rows))
        np.save(folder / "Y_train.npy", self.Y_train_)
        said = {"random_state": self.random_state, **self.parameters}
        (folder / "parameters.json").write_text(json.dumps(said), encoding="utf-8")

    def _read(self, folder: Path, n_rows: int) -> tuple[FloatArray, IntArray]:
        scores = _read_array(folder / "scores.npy", (n_rows, self.Y_train_.shape[1])).astype(np.float64)
        if not np.isfinite(scores).all():
            raise CommandError(f"the command wrote scores that are no numbers: {self.command!r}.")
        if (folder / "labels.npy").is_file():
            return scores, _read_array(folder / "labels.npy", scores.shape).astype(np.int64)
        cut = scores >= 0.5 if self.probabilities else relevant_labels(scores)
        return scores, cut.astype(np.int64)


def words_of(command: str | Sequence[str]) -> tuple[str, ...]:
    """The program and its arguments.

    Parameters
    ----------
    command : str or sequence of str

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> words_of("python 'my method.py' --fast")
    ('python', 'my method.py', '--fast')
    """
    words = shlex.split(command) if isinstance(command, str) else command
    if not words:
        raise ValueError(f"command must be a program and its arguments. Got {command!r} instead.")
    return tuple(map(str, words))


def _read_array(path: Path, shape: tuple[int, ...]) -> Array:
    if not path.is_file():
        raise CommandError(f"the command answered, but left no {path.name} in the folder of the split.")
    found = np.load(path, allow_pickle=False)
    if found.shape != shape:
        raise CommandError(f"the command's {path.name} must have the shape {shape}, rows by labels. Got {found.shape}.")
    return found


def _digest(X: Any) -> str:
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (np.asarray(X),)
    digest = sha256(repr(X.shape).encode())
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


class _Process:
    """A command that runs and waits for questions."""

    def __init__(self, words: tuple[str, ...], folder: str | None) -> None:
        self.seconds, self.n_answers = 0.0, 0
        self.words, self.errors = words, tempfile.TemporaryFile()  # noqa: SIM115  # closed with the process
        try:
            self.process = subprocess.Popen(
                words, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True
            )
        except OSError as error:
            raise CommandError(f"the command {shlex.join(words)!r} cannot be started: {error}.") from error

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def ask(self, folder: Path) -> dict[str, Any]:
        """Send a folder, and return what the command says of it."""
        questions, answers = self._pipes()
        try:
            questions.write(f"{folder}\n")
            questions.flush()
            line = answers.readline()
        except BrokenPipeError:
            line = ""
        self.n_answers += bool(line)
        if not line:
            code = self.process.wait()
            raise CommandError(f"the command {shlex.join(self.words)!r} ended with code {code}. {self._last_words()}")
        try:
            said = json.loads(line)
        except json.JSONDecodeError:
            said = None
        if not isinstance(said, dict):
            self.close()  # whatever it says next would be taken for the answer to another question
            raise CommandError(
                f"the command {shlex.join(self.words)!r} must answer with a line of JSON, a table; {{}} will do. "
                f"Got {line.strip()[:200]!r} instead; messages belong on its standard error."
            )
        if said.get("error"):
            raise CommandError(f"{shlex.join(self.words)}: {said['error']}")
        self.seconds += sum(float(said.get(f"{name}_seconds", 0.0)) for name in ("fit", "predict"))
        return said

    def close(self) -> None:
        """End the process."""
        questions, answers = self._pipes()
        questions.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        answers.close()
        self.errors.close()

    def _pipes(self) -> tuple[TextIO, TextIO]:
        questions, answers = self.process.stdin, self.process.stdout
        assert questions is not None
        assert answers is not None
        return questions, answers  # type: ignore[return-value]

    def _last_words(self) -> str:
        self.errors.seek(0)
        text = self.errors.read().decode(errors="replace").strip()
        return f"Its standard error ends: {text[-LAST_CHARACTERS:]}" if text else "Its standard error is empty."


# One process for each command, folder and process of ours: what is forked or spawned has its own.
_processes: dict[tuple[int, tuple[str, ...], str | None], _Process] = {}


def _running(words: tuple[str, ...], folder: str | None) -> _Process:
    key = os.getpid(), words, folder
    if key not in _processes or not _processes[key].is_alive:
        before = _processes[key].seconds if key in _processes else 0.0
        _processes[key] = _Process(words, folder)
        _processes[key].seconds = before
    return _processes[key]


def _asked(words: tuple[str, ...], folder: str | None, split: Path) -> dict[str, Any]:
    """What a command says of a split; one that ended in peace after an answer is started again."""
    process = _running(words, folder)
    served = process.n_answers
    try:
        return process.ask(split)
    except CommandError:
        if served and process.process.poll() == 0:
            return _running(words, folder).ask(split)
        raise


def processor_seconds() -> float:
    """Processor time of this process, and what the commands that it asked say that they took.

    Returns
    -------
    float
    """
    return time.process_time() + sum(
        process.seconds for (owner, *_), process in _processes.items() if owner == os.getpid()
    )


@atexit.register
def _close_all() -> None:
    for (owner, *_), process in _processes.items():
        if owner == os.getpid() and process.is_alive:
            process.close()
