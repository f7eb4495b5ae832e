# SPDX-License-Identifier: MIT
"""The reports of mlff validate and bench in a browser: no error, no request, plots that can be seen. Usage: test_report_page.py MLFF

Needs Chromium, which scripts/test --all installs; without it the test fails."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from browser import CHROMIUM, Browser

MLFF = sys.argv[1]

# What the page shows, asked in the page.
LOOK = """JSON.stringify({
    verdict: document.getElementById('verdict').innerText,
    is_visible: document.getElementById('verdict').getBoundingClientRect().height > 0,
    plots: [...document.querySelectorAll('figure')].map(figure => ({
        title: figure.querySelector('figcaption').innerText,
        width: figure.querySelector('svg').getBoundingClientRect().width,
        height: figure.querySelector('svg').getBoundingClientRect().height,
        line: Math.max(0, ...[...figure.querySelectorAll('path.curve')].map(path => path.getTotalLength())),
        curves: figure.querySelectorAll('path.curve').length,
        overlay: Math.max(0, ...[...figure.querySelectorAll('path.overlay')].map(path => path.getTotalLength())),
        legend: figure.querySelector('.legend')?.innerText ?? '',
        guide: Math.max(0, ...[...figure.querySelectorAll('path.guide')].map(path => path.getTotalLength())),
        points: figure.querySelectorAll('circle').length,
        bands: figure.querySelectorAll('path.band').length,
        bars: [...figure.querySelectorAll('rect.bar')].filter(bar => bar.getBBox().width > 1 && bar.getBBox().height > 0).length,
        outside: [...figure.querySelectorAll('svg :is(path, rect, circle, line)')].filter(part => {
            const box = part.getBBox(), view = part.ownerSVGElement.viewBox.baseVal;
            return box.x < 0 || box.y < 0 || box.x + box.width > view.width || box.y + box.height > view.height;}).length,
        labels: [...figure.querySelectorAll('svg text')].map(text => text.textContent)})),
    sections: [...document.querySelectorAll('section[id]')].map(section => section.id),
    recommendations: [...document.querySelectorAll('#recommendations li b')].map(about => about.innerText),
    verdicts: document.querySelectorAll('td.pass, td.fail, td.undecided').length})"""


class ReportPages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if CHROMIUM is None:
            raise RuntimeError("no Chromium found: as root, scripts/test --all installs the package chromium")
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.browser = Browser(os.path.join(cls.folder, "profile"))
        cls.addClassCleanup(cls.browser.close)

    def page_of(self, *command, codes=(0,)):
        """What the browser sees of the report that the command writes; checks that it complains of nothing and asks for nothing else."""
        folder = os.path.join(self.folder, self.id())
        run = subprocess.run([MLFF, *command, "--device", "cpu", "--report", folder], capture_output=True, text=True, timeout=60,
                             env={**os.environ, "MLFF_CALIBRATIONS": os.path.join(folder, "none")})  # those of the user would add a suite
        self.assertIn(run.returncode, codes, run.stdout + run.stderr)
        session = self.browser.open_tab()
        for domain in ("Runtime", "Log", "Network"):
            self.browser.call(domain + ".enable", session)
        url = "file://" + os.path.join(folder, "report.html")
        self.browser.load(session, url)
        page = json.loads(self.browser.call("Runtime.evaluate", session, expression=LOOK)["result"]["value"])
        self.browser.call("Log.disable", session)  # what was logged has been received by now
        troubles = [m for m in self.browser.messages if m.get("method") in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Network.loadingFailed")]
        self.assertEqual(troubles, [])
        requests = {m["params"]["request"]["url"] for m in self.browser.messages if m.get("method") == "Network.requestWillBeSent"}
        self.assertEqual({request for request in requests if not request.startswith("data:")}, {url}, "nothing but the page is loaded")
        self.assertTrue(page["is_visible"])
        for plot in page["plots"]:
            with self.subTest(plot["title"]):
                self.assertGreater(plot["width"], 300)
                self.assertGreater(plot["height"], 150)
                self.assertGreater(len(plot["labels"]), 4)
                self.assertFalse([label for label in plot["labels"] if "nan" in label or "inf" in label])
                self.assertEqual(plot["outside"], 0, "nothing is drawn outside of the plot")
        return page

    def test_validate(self):
        page = self.page_of("validate", "--systems", "water", "--steps", "100")
        self.assertRegex(page["verdict"], r"^PASS: \d+ checks of 1 system; \d undecided, ")
        self.assertGreaterEqual(page["verdicts"], 12)
        plots = {plot["title"]: plot for plot in page["plots"]}
        self.assertEqual(list(plots), ["Total energy without a thermostat", "Temperature", "Forces beside those of the fp64 reference", "Distances of pairs"])
        for title, plot in plots.items():
            if title.startswith("Forces"):
                self.assertGreater(plot["points"], 100)
            else:
                self.assertGreater(plot["line"], 200)  # a curve that goes across, in units of the plot

    def test_validate_against(self):
        page = self.page_of("validate", "--systems", "water", "--steps", "100", "--against", "self-test", codes=(1,))
        self.assertRegex(page["verdict"], r"^FAIL: 1 of 1 system; water: ")
        self.assertIn("precision", page["recommendations"])
        plots = {plot["title"]: plot for plot in page["plots"]}
        self.assertEqual(list(plots), ["Total energy without a thermostat", "Temperature", "Forces beside those of self-test", "Distances of pairs", "Distances of pairs in a bath"])
        energy = plots["Total energy without a thermostat"]
        self.assertEqual((energy["curves"], energy["legend"].split()), (2, "this model the other model".split()))
        for title in ("Temperature", "Distances of pairs in a bath"):
            self.assertGreater(plots[title]["overlay"], 100)
            self.assertIn("dashed: the other model", plots[title]["legend"])
        self.assertEqual(plots["Distances of pairs"]["overlay"], 0)

    def test_bench(self):
        page = self.page_of("bench", "--quick", "--steps", "20")
        self.assertRegex(page["verdict"], r"^PASS: \d+ lines measured, 7 checks passed$")
        self.assertEqual(page["verdicts"], 7)
        self.assertEqual(page["sections"], ["latency", "throughput", "md", "memory", "leaks", "neighbors", "load", "checks"])
        plots = {plot["title"]: plot for plot in page["plots"]}
        tails = ["%d atoms: samples by their time" % atoms for atoms in (9, 21, 51)]
        self.assertEqual(list(plots), ["Time of a call against size: median, band up to P95", *tails, "Systems in a second", "Time of a step along the run",
                                       "Memory of a session, and the line through it", "Time of a search against size: median, band up to P95"])
        for title, plot in plots.items():
            if title in tails:
                self.assertGreaterEqual(plot["bars"], 2)
                self.assertTrue({"median", "P95", "P99"} <= set(plot["labels"]), plot["labels"])
            elif title.startswith("Memory"):
                self.assertEqual((plot["points"], plot["line"]), (3, 0))
                self.assertGreater(plot["guide"], 200)
            else:
                self.assertGreaterEqual(plot["points"], 2)
                self.assertGreater(plot["line"], 200)
        self.assertEqual(plots["Time of a call against size: median, band up to P95"]["bands"], 1)

    def test_compare(self):
        page = self.page_of("bench", "--quick", "--sizes", "10,20", "--compare", "builtin", "--compare", "precision=fp64", "--compare", "device=reference")
        self.assertRegex(page["verdict"], r"^PASS: 3 implementations measured, 6 checks of forces$")
        self.assertEqual(page["verdicts"], 6)
        times, speed_ups = page["plots"]
        self.assertEqual((times["points"], times["bands"]), (6, 3))
        self.assertRegex(speed_ups["title"], "^Speed-up over builtin, cpu, mixed, ")
        self.assertEqual(speed_ups["bars"], 4)
        self.assertTrue({"9", "21"} <= set(speed_ups["labels"]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
