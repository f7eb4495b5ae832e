# SPDX-License-Identifier: MIT
"""Headless Chromium, for tests of report pages and for docs/images/make_gallery.py."""
import json
import os
import shutil
import subprocess

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """Headless Chromium, spoken to over two pipes (--remote-debugging-pipe): JSON messages, each ended by a zero byte."""

    def __init__(self, profile):
        to_read, self.to_browser = os.pipe()
        self.from_browser, to_write = os.pipe()

        def connect():  # the browser reads from 3 and writes to 4
            first, second = os.dup(to_read), os.dup(to_write)
            os.dup2(first, 3)
            os.dup2(second, 4)

        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions", "--user-data-dir=" + profile]
        self.process = subprocess.Popen([CHROMIUM, *options, "--remote-debugging-pipe", "about:blank"], preexec_fn=connect, close_fds=False,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.messages, self.buffer, self.count = [], b"", 0

    def receive(self):
        while b"\0" not in self.buffer:
            data = os.read(self.from_browser, 65536)
            if not data:
                raise RuntimeError(f"{CHROMIUM} ended")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        self.messages.append(json.loads(message))
        return self.messages[-1]

    def call(self, method, session=None, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def wait_for(self, method):
        while not any(message.get("method") == method for message in self.messages):
            self.receive()

    def open_tab(self):
        """The session of a new empty tab."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        return self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def load(self, session, url):
        self.call("Page.enable", session)
        self.messages.clear()
        self.call("Page.navigate", session, url=url)
        self.wait_for("Page.loadEventFired")

    def close(self):
        try:
            self.call("Browser.close")
        except (OSError, RuntimeError):
            self.process.kill()
        self.process.wait(timeout=20)
        os.close(self.to_browser)
        os.close(self.from_browser)
