"""Chromium without a driver: the DevTools protocol over a pipe, with the standard library."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

OPTIONS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--remote-debugging-pipe",
]


def path():
    """Where Chromium is, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextmanager
def browser():
    """Yield a `Page` of a fresh browser, which is closed afterwards."""
    (to_browser, commands), (answers, from_browser) = os.pipe(), os.pipe()

    def connect():
        # The browser reads commands from descriptor 3 and answers on 4; they may be taken, so copies go first.
        a, b = os.dup(to_browser), os.dup(from_browser)
        os.dup2(a, 3)
        os.dup2(b, 4)

    with tempfile.TemporaryDirectory(prefix="rbrl-chromium-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [path(), *OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=connect,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        try:
            yield Page(commands, answers)
        finally:
            os.close(commands)
            process.terminate()
            process.wait(10)
            os.close(answers)


class Page:
    """One tab: open a file, set the width, run JavaScript, take a picture; messages collect what went wrong."""

    def __init__(self, commands, answers):
        self.commands, self.answers, self.buffer, self.n_sent = commands, answers, b"", 0
        self.session, self.messages = None, []
        (target,) = [t for t in self.send("Target.getTargets")["targetInfos"] if t["type"] == "page"][:1]
        attached = self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method, **params):
        """Send a command and return its answer; events on the way are kept if they tell of trouble."""
        self.n_sent += 1
        message = {"id": self.n_sent, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.n_sent:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _next(self):
        while b"\0" not in self.buffer:
            piece = os.read(self.answers, 1 << 20)
            if not piece:
                raise RuntimeError("Chromium has gone")
            self.buffer += piece
        text, _, self.buffer = self.buffer.partition(b"\0")
        event = json.loads(text)
        if event.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.messages.append(event["params"])
        if event.get("method") == "Network.requestWillBeSent":
            self.messages += [{"request": u} for u in [event["params"]["request"]["url"]] if u.startswith("http")]
        if event.get("method") == "Page.loadEventFired":
            self.loaded = True
        return event

    def open(self, file, width=1440, height=900, dark=False, scale=1):
        """Open a file at a width, light or dark, and wait until it is there."""
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=scheme)
        self.loaded = False
        self.send("Page.navigate", url=Path(file).resolve().as_uri())
        while not self.loaded:
            self._next()

    def run(self, script):
        """The value of a JavaScript expression."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def settle(self):
        """Wait until observers of the page have seen what changed: they are called between two frames."""
        two_frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        self.send("Runtime.evaluate", expression=two_frames, awaitPromise=True)

    def picture(self, file, whole=False):
        """Save a PNG of what is seen, or of the whole page."""
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self._clip(whole))
        Path(file).write_bytes(base64.b64decode(data["data"]))

    def _clip(self, whole):
        if not whole:
            return {}
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}

    def pdf(self, file):
        """Print to a PDF."""
        Path(file).write_bytes(base64.b64decode(self.send("Page.printToPDF")["data"]))
