"""Downloads: from a card's address into a folder, bounded in size and time."""

import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pooch
import requests

from rbrl.datasets.places import read_files
from rbrl.exceptions import DatasetNotFoundError

MAX_DOWNLOAD = 512 << 20
MAX_DESCRIPTION = 1 << 20
READ_TIMEOUT = 30
DEADLINE = 1800


class DownloadError(DatasetNotFoundError):
    """A download failed; the message has the address and the reason."""


def fetch(card, *, timeout=READ_TIMEOUT, deadline=DEADLINE, max_bytes=MAX_DOWNLOAD, progress=True):
    """Download a data set and return it as read; nothing is kept.

    Parameters
    ----------
    card : Card
        With an address.
    timeout : float
        Seconds to wait for the server's next bytes.
    deadline : float
        Seconds for each file as a whole.
    max_bytes : int
        Larger files are refused.
    progress : bool
        Show a progress bar on terminals.

    Raises
    ------
    DownloadError
    """
    limits = {"timeout": timeout, "deadline": deadline, "progress": progress}
    with TemporaryDirectory(prefix="rbrl-") as folder:
        urls = card.address.urls
        if card.address.openml:
            description = _download(urls[0], Path(folder, "description.json"), MAX_DESCRIPTION, **limits)
            urls = [_file_url(urls[0], description)]
        paths = [
            _download(url, Path(folder, f"{card.name}-{i}.arff"), max_bytes, **limits) for i, url in enumerate(urls)
        ]
        return read_files(paths, None, card.address.labels)


def _download(url, path, max_bytes, *, timeout, deadline, progress):
    bar = _Bar(url, max_bytes, time.monotonic() + deadline, progress)
    downloader = pooch.HTTPDownloader(progressbar=bar, timeout=timeout, chunk_size=1 << 16)
    try:
        downloader(url, str(path), None)
    except (requests.RequestException, ValueError, OSError) as error:
        raise DownloadError(f"download from {url} failed: {error}") from error
    finally:
        bar.close()
    return path


def _file_url(url, description):
    """Return the address of the file that OpenML's description names."""
    try:
        found = json.loads(description.read_bytes())["data_set_description"]["url"]
    except (ValueError, KeyError, TypeError) as error:
        raise DownloadError(f"{url} did not answer with OpenML's description of a data set: {error!r}") from error
    if not str(found).startswith(("https://", "http://")):
        raise DownloadError(f"{url} names the file {found!r}, which is not a web address")
    return str(found)


class _Bar:
    """A progress bar as pooch takes it, which also stops downloads that are too large or too slow."""

    def __init__(self, url, max_bytes, end, visible):
        from rich.console import Console
        from rich.progress import Progress

        self.url, self.max_bytes, self.end, self.done, self._total = url, max_bytes, end, 0, 0
        console = Console(stderr=True)
        self.progress = Progress(console=console, transient=True, disable=not (visible and console.is_terminal))
        self.task = self.progress.add_task(url.rpartition("/")[2], total=None)
        self.progress.start()

    @property
    def total(self):
        return self._total

    @total.setter
    def total(self, size):
        self._total = size
        self.progress.update(self.task, total=size)

    def update(self, n_bytes):
        self.done += n_bytes
        if self.done > self.max_bytes:
            raise DownloadError(f"{self.url} is larger than {self.max_bytes} bytes")
        if time.monotonic() > self.end:
            raise DownloadError(f"{self.url} sent only {self.done} bytes within the time allowed")
        self.progress.update(self.task, completed=self.done)

    def reset(self):
        self.done = 0

    def close(self):
        self.progress.stop()
