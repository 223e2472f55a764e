# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, spoken to over a pipe in its own protocol (Chrome DevTools Protocol): what it takes to look at
a page, and no more."""
import base64
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PATIENCE = 60  # seconds for an answer: machines may be busy


def find():
    """The program's path, or None."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One page. Everything that it asks of the network, and everything that it complains of, is kept."""

    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (*os.pipe(), *os.pipe())]
        # The browser reads commands from 3 and answers on 4.
        actions = [(os.POSIX_SPAWN_DUP2, ends[0], 3), (os.POSIX_SPAWN_DUP2, ends[3], 4),
                   *((os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (1, 2))]
        arguments = [program, "--headless", "--remote-debugging-pipe", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                     f"--user-data-dir={self.folder.name}"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")  # which root cannot have
        self.process = os.posix_spawn(program, arguments, os.environ, file_actions=actions, setpgroup=0)
        os.close(ends[0]), os.close(ends[3])
        # ends is (read, write) of each pipe: commands go into the first, answers come out of the second.
        self.commands, self.answers = ends[1], ends[2]
        self.number, self.buffer, self.session = 0, b"", None
        self.requests, self.complaints, self.events = [], [], set()
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def close(self):
        os.killpg(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.answers), os.close(self.commands)
        self.folder.cleanup()

    def _receive(self, deadline):
        while b"\0" not in self.buffer:
            if not select.select([self.answers], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("Chromium does not answer")
            got = os.read(self.answers, 1 << 20)
            if not got:
                raise ConnectionError("Chromium has ended")
            self.buffer += got
        message, _, self.buffer = self.buffer.partition(b"\0")
        message = json.loads(message)
        name, said = message.get("method"), message.get("params", {})
        self.events.add(name)
        if name == "Network.requestWillBeSent":
            self.requests.append(said["request"]["url"])
        elif name == "Runtime.exceptionThrown" or (name == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning")):
            self.complaints.append(said)
        elif name == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
            self.complaints.append(said["entry"])
        return message

    def ask(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, address, width, height=800, dark=False):
        """Opens it at a width in pixels; below 500 as on a phone."""
        phone = width < 500
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.events.discard("Page.loadEventFired")
        self.ask("Page.navigate", url=address)
        deadline = time.monotonic() + PATIENCE
        while "Page.loadEventFired" not in self.events:
            self._receive(deadline)

    def run(self, expression):
        """What an expression of JavaScript comes to."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def press(self, key):
        for kind in ("rawKeyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode={"Tab": 9, "ArrowRight": 39}[key])

    def screenshot(self, path, whole=True, clip=None):
        options = {"clip": {**clip, "scale": 1}} if clip else {}
        picture = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **options)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture))
