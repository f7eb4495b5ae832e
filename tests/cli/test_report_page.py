# SPDX-License-Identifier: MIT
"""The report of mlff validate in a browser: no error, no request, plots that can be seen. Usage: test_report_page.py MLFF

Needs Chromium, which scripts/test installs; without it the test fails."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

MLFF = sys.argv[1]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

# What the page shows, asked in the page.
LOOK = """JSON.stringify({
    verdict: document.getElementById('verdict').innerText,
    is_visible: document.getElementById('verdict').getBoundingClientRect().height > 0,
    plots: [...document.querySelectorAll('figure')].map(figure => ({
        title: figure.querySelector('figcaption').innerText,
        width: figure.querySelector('svg').getBoundingClientRect().width,
        height: figure.querySelector('svg').getBoundingClientRect().height,
        line: Math.max(0, ...[...figure.querySelectorAll('path.curve')].map(path => path.getTotalLength())),
        points: figure.querySelectorAll('circle').length,
        labels: [...figure.querySelectorAll('svg text')].map(text => text.textContent)})),
    rows: document.querySelectorAll('td.pass, td.fail').length})"""


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

    def close(self):
        try:
            self.call("Browser.close")
        except (OSError, RuntimeError):
            self.process.kill()
        self.process.wait(timeout=20)
        os.close(self.to_browser)
        os.close(self.from_browser)


class ReportPage(unittest.TestCase):
    def test_page(self):
        self.assertIsNotNone(CHROMIUM, "no Chromium found: as root, scripts/test installs the package chromium")
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            run = subprocess.run([MLFF, "validate", "--systems", "water", "--steps", "100", "--device", "cpu", "--report", folder], capture_output=True, text=True, timeout=60)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            browser = Browser(os.path.join(folder, "profile"))
            try:
                target = browser.call("Target.createTarget", url="about:blank")["targetId"]
                session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
                for domain in ("Page", "Runtime", "Log", "Network"):
                    browser.call(domain + ".enable", session)
                browser.messages.clear()
                url = "file://" + os.path.join(folder, "report.html")
                browser.call("Page.navigate", session, url=url)
                browser.wait_for("Page.loadEventFired")
                page = json.loads(browser.call("Runtime.evaluate", session, expression=LOOK)["result"]["value"])
                browser.call("Log.disable", session)  # what was logged has been received by now
            finally:
                browser.close()
        troubles = [m for m in browser.messages if m.get("method") in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Network.loadingFailed")]
        self.assertEqual(troubles, [])
        requests = {m["params"]["request"]["url"] for m in browser.messages if m.get("method") == "Network.requestWillBeSent"}
        self.assertEqual({request for request in requests if not request.startswith("data:")}, {url}, "nothing but the page is loaded")
        self.assertTrue(page["is_visible"])
        self.assertRegex(page["verdict"], r"^PASS: \d+ checks of 1 system$")
        self.assertGreaterEqual(page["rows"], 12)
        plots = {plot["title"]: plot for plot in page["plots"]}
        self.assertEqual(list(plots), ["Total energy without a thermostat", "Temperature", "Forces beside those of the fp64 reference", "Distances of pairs"])
        for title, plot in plots.items():
            with self.subTest(title):
                self.assertGreater(plot["width"], 300)
                self.assertGreater(plot["height"], 150)
                self.assertGreater(len(plot["labels"]), 6)
                if title.startswith("Forces"):
                    self.assertGreater(plot["points"], 100)
                else:
                    self.assertGreater(plot["line"], 200)  # a curve that goes across, in units of the plot


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
