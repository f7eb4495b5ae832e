#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the pictures of docs/gallery.md again: runs the commands of the page and photographs their reports. Needs Chromium and pngquant.

Usage: docs/images/make_gallery.py MLFF [NAME...]   (NAME: of a report; all without one)
"""
import base64
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent / "gallery.md"
sys.path.insert(0, str(HERE.parents[1] / "tests" / "cli"))
from browser import CHROMIUM, Browser  # noqa: E402

WIDTH = 900
COLORS = 48  # enough for text and lines; makes a picture four times smaller
MOST_BYTES = 150_000
# What is shown of the report NAME of a command `--report NAME`: gallery_NAME_PART.png is a picture from the first to the last of these elements.
PARTS = {
    "ethanol": {"checks": ("h1", "section table"), "plots": (".plots", ".plots")},
    "repulsion": {"both": ("section table + p", ".plots")},
    "step": {"verdict": ("h1", "#recommendations")},
    "latency": {"section": ("#latency", "#latency")},
    "compare": {"plots": (".plots", ".plots")},
}


def commands():
    """The commands of the page by the name of their report."""
    lines = re.findall(r"^\$ (mlff .*)$", PAGE.read_text(), re.MULTILINE)
    found = {}
    for words in map(lambda line: shlex.split(line, comments=True), lines):
        found[words[words.index("--report") + 1]] = words
    return found


def box(browser, session, first, last):
    """The rectangle from the top of the first element to the bottom of the last."""
    script = f"""JSON.stringify([document.querySelector({first!r}), document.querySelector({last!r})].map(
        e => e && [e.getBoundingClientRect().top + scrollY, e.getBoundingClientRect().bottom + scrollY]))"""
    answer = browser.call("Runtime.evaluate", session, expression=f"(() => {script})()")
    ends = json.loads(answer["result"]["value"])
    if None in ends:
        sys.exit(f"make_gallery.py: the report has no {first if ends[0] is None else last}")
    return {"x": 0, "y": ends[0][0], "width": WIDTH, "height": ends[1][1] + 2 - ends[0][0], "scale": 1}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if CHROMIUM is None or not shutil.which("pngquant"):
        sys.exit("make_gallery.py: no Chromium or no pngquant found; install the packages chromium and pngquant")
    program, wanted = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2:] or PARTS
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(folder + "/profile")
        for name, words in commands().items():
            if name not in wanted:
                continue
            print(shlex.join(words), flush=True)
            subprocess.run([program, *words[1:]], cwd=folder, stdout=subprocess.DEVNULL, check=True)
            session = browser.open_tab()
            browser.call("Emulation.setDeviceMetricsOverride", session, width=WIDTH, height=1000, deviceScaleFactor=1, mobile=False)
            browser.call("Emulation.setScrollbarsHidden", session, hidden=True)  # they change the layout
            browser.load(session, f"file://{folder}/{name}/report.html")
            for part, (first, last) in PARTS[name].items():
                clip = box(browser, session, first, last)
                picture = base64.b64decode(browser.call("Page.captureScreenshot", session, format="png", clip=clip, captureBeyondViewport=True)["data"])
                path = HERE / f"gallery_{name}_{part}.png"
                path.write_bytes(subprocess.run(["pngquant", "--nofs", "--strip", str(COLORS), "-"], input=picture, stdout=subprocess.PIPE, check=True).stdout)
                size = path.stat().st_size
                print(f"  {path.name}: {size} bytes", flush=True)
                if size > MOST_BYTES:
                    sys.exit(f"make_gallery.py: {path.name} has more than {MOST_BYTES} bytes: show less")
        browser.close()


if __name__ == "__main__":
    main()
