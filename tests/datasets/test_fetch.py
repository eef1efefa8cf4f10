"""Downloads from a local server, which can also fail."""

import json
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from rbrl import datasets
from rbrl.datasets.catalogue import CARDS, Address, DownloadError, fetch
from rbrl.datasets.dataset import content_hash, row_digests
from rbrl.exceptions import DataFormatError, DatasetNotFoundError

from .examples import assert_same, small

DATA = small(n_samples=40)


def arff_bytes(data, tmp_path):
    """Return `data` as an ARFF file that does not say where its labels are."""
    datasets.save_file(data, tmp_path / "served.arff")
    text = (tmp_path / "served.arff").read_text(encoding="utf-8")
    return text.replace(f": -C -{data.n_labels}", "").encode()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        manner, _, name = self.path.strip("/").partition("/")
        body = self.server.files.get(name)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        getattr(self, manner)(body)

    def well(self, body):
        self.wfile.write(body)

    def cut(self, body):
        self.wfile.write(body[: len(body) // 2])

    def slow(self, body):
        for start in range(0, len(body), len(body) // 5):
            self.wfile.write(body[start : start + len(body) // 5])
            time.sleep(0.05)

    def hang(self, body):
        self.wfile.write(body[:10])
        self.wfile.flush()
        self.server.stopped.wait(5)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("RBRL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("RBRL_DATA", raising=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.stopped = [], threading.Event()
    (tmp_path / "made").mkdir()
    server.files = {"data.arff": arff_bytes(DATA, tmp_path / "made"), "wrong.arff": b"<html>Sorry</html>"}
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.stopped.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def put_card(server, monkeypatch):
    def put(*paths, openml=False, **changes):
        urls = tuple(f"http://127.0.0.1:{server.server_port}/{path}" for path in paths)
        card = replace(
            CARDS["scene"],
            name="test-set",
            n_samples=DATA.n_samples,
            n_features=DATA.n_features,
            n_labels=DATA.n_labels,
            sha256=content_hash(row_digests(DATA.X, DATA.Y), DATA.n_features, DATA.n_labels),
            address=Address(urls=urls, labels=-DATA.n_labels, openml=openml),
        )
        monkeypatch.setitem(CARDS, card.name, replace(card, **changes))
        return card

    return put


@pytest.mark.parametrize("manner", ["well", "slow"])
def test_a_download_is_checked_and_kept(server, put_card, tmp_path, manner):
    put_card(f"{manner}/data.arff")
    first = datasets.load("test-set")
    second = datasets.load("test-set")
    assert_same(first, DATA.canonical())
    assert_same(first, second)
    assert server.asked == [f"/{manner}/data.arff"]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["test-set.npz"]


def test_openml_names_the_file_in_its_description(server, put_card):
    url = f"http://127.0.0.1:{server.server_port}/well/data.arff"
    server.files["40595"] = json.dumps({"data_set_description": {"url": url}}).encode()
    put_card("well/40595", openml=True)
    assert datasets.load("test-set").n_samples == DATA.n_samples


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b'{"data_set_description": {"url": "file:///etc/passwd"}}'])
def test_openml_answers_with_something_else(server, put_card, answer):
    server.files["40595"] = answer
    put_card("well/40595", openml=True)
    with pytest.raises(DatasetNotFoundError, match=r"OpenML|not a web address"):
        datasets.load("test-set")


def test_two_parts_become_the_split_source(server, put_card, tmp_path):
    parts = (datasets.Dataset(*DATA.take(rows)) for rows in (slice(0, 25), slice(25, None)))
    server.files |= {f"{i}.arff": arff_bytes(part, tmp_path / "made") for i, part in enumerate(parts)}
    put_card("well/0.arff", "well/1.arff")
    train, test = datasets.load("test-set").split("source")
    np.testing.assert_array_equal(train.X, DATA.X[:25])
    np.testing.assert_array_equal(test.Y, DATA.Y[25:])


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("cut/data.arff", DatasetNotFoundError, "download from http://127.0.0.1"),
        ("well/none.arff", DatasetNotFoundError, "404"),
        ("well/wrong.arff", DataFormatError, "<html>"),
    ],
)
def test_failed_downloads_leave_nothing(server, put_card, tmp_path, path, error, message):
    put_card(path)
    with pytest.raises(error, match=message):
        datasets.load("test-set")
    assert not list(tmp_path.glob("cache/*"))


def test_another_data_set_is_refused(server, put_card, tmp_path):
    put_card("well/data.arff", sha256="0" * 64)
    with pytest.raises(DataFormatError, match="the content is not"):
        datasets.load("test-set")
    assert not list(tmp_path.glob("cache/*"))


def test_a_server_that_hangs_is_an_error(server, put_card):
    card = put_card("hang/data.arff")
    with pytest.raises(DownloadError, match="failed"):
        fetch(card, timeout=0.2)


def test_a_download_has_a_deadline_and_a_largest_size(server, put_card):
    with pytest.raises(DownloadError, match="within the time allowed"):
        fetch(put_card("slow/data.arff"), deadline=0)
    with pytest.raises(DownloadError, match="larger than 100 bytes"):
        fetch(put_card("well/data.arff"), max_bytes=100)


def test_offline_says_what_to_put_where(server, put_card, tmp_path):
    server.files.clear()
    put_card("well/data.arff")
    with pytest.raises(DatasetNotFoundError) as caught:
        datasets.load("test-set", tmp_path / "home")
    message = str(caught.value)
    assert f"Put test-set.npz, or test-set.arff with test-set.xml, or test-set.mat into {tmp_path / 'home'}" in message
    assert "404" in message


def test_downloads_can_be_forbidden(server, put_card):
    put_card("well/data.arff")
    with pytest.raises(DatasetNotFoundError, match="downloads were not allowed"):
        datasets.load("test-set", download=False)
    assert not server.asked


def test_sets_without_an_address_say_so(server):
    with pytest.raises(DatasetNotFoundError, match=r"no stable public address.*Mulan's sets of the same name"):
        datasets.load("arts")


def test_parts_in_a_folder(tmp_path, put_card):
    put_card("well/none")
    for name, rows in (("train", slice(0, 25)), ("test", slice(25, None))):
        datasets.save_file(datasets.Dataset(*DATA.take(rows)), tmp_path / f"Test-Set-{name}.arff")
    (tmp_path / "Test-Set-train.xml").rename(tmp_path / "Test-Set.xml")
    assert len(datasets.load("test-set", tmp_path).train_index) == 25
