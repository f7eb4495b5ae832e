# SPDX-License-Identifier: MIT
"""How good the trust meter of the built-in student is, and what it costs.

  python measure.py MLFF LIBRARY FITTED.xyz NAME=TEST.xyz... --json OUT [--picture OUT.svg]

FITTED.xyz has frames with split=train and split=valid, each TEST.xyz frames with split=test (models/student/data/to_xyz.py writes them).
The cost is that of an evaluation of 192 atoms of water, with and without expected errors, in turns, in processor time of one thread."""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native

STYLE = """<style> text { font: 12px system-ui, sans-serif; fill: #59636e; } .grid { stroke: #e3e8ed; } .guide { fill: none; stroke: #818b98; stroke-dasharray: 5 4; }
.curve { fill: none; stroke-width: 1.5; } .points { fill-opacity: .8; } </style>"""


def judged(mlff, files, folder):
    """The report of `mlff trust fit`, and its picture."""
    subprocess.run([mlff, "trust", "fit", "builtin", *files, "--output", f"{folder}/meter", "--json", f"{folder}/card.json", "--report", folder],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    page = pathlib.Path(folder, "calibration.html").read_text()
    return json.loads(pathlib.Path(folder, "card.json").read_text()), re.search(r"<svg.*?</svg>", page, re.S).group(0)


def cost(library, rounds=40):
    session = native.Session(library, "builtin", native.water(192), "cpu", "mixed", threads=1)
    errors, novelties = np.zeros(192), np.zeros(192)
    seconds = {False: [], True: []}
    for round in range(rounds + 4):
        for measures in (False, True):
            session.result.expected_errors = errors.ctypes.data if measures else None
            session.result.novelties = novelties.ctypes.data if measures else None
            begin = time.process_time()
            session.evaluate()
            if round >= 4:
                seconds[measures].append(time.process_time() - begin)
    ratios = [with_it / without for with_it, without in zip(seconds[True], seconds[False])]
    return {"median_ratio": statistics.median(ratios), "quartiles": statistics.quantiles(ratios, n=4), "rounds": rounds,
            "median_ms_without": 1e3 * statistics.median(seconds[False])}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mlff")
    parser.add_argument("library")
    parser.add_argument("fitted")
    parser.add_argument("tests", nargs="+", metavar="NAME=TEST.xyz")
    parser.add_argument("--json", required=True)
    parser.add_argument("--picture")
    options = parser.parse_args()
    tests = dict(text.split("=", 1) for text in options.tests)
    found = {"cost": cost(options.library)}
    with tempfile.TemporaryDirectory() as folder:
        for name, files in {"all": list(tests.values()), **{name: [file] for name, file in tests.items()}}.items():
            found[name], picture = judged(options.mlff, [options.fitted, *files], folder)
            if name == "all" and options.picture:
                drawn = picture.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" width="560" ', 1).replace(">", ">" + STYLE, 1)
                pathlib.Path(options.picture).write_text(drawn + "\n")
    pathlib.Path(options.json).write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found["cost"]))


if __name__ == "__main__":
    main()
