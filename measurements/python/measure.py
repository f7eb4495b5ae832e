#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a call of a Python model costs through libmlff, in its process and in one of its own, beside the same call by Python itself.

    measurements/python/measure.py BUILD_DIRECTORY ENVIRONMENT MODEL [--rounds N] [--json OUT]

ENVIRONMENT is one with mace-torch, MODEL a .model file that knows H and O. The three ways take turns, so that a busy machine is the same for all;
medians over all calls. The calculators time themselves (timed.py), so that a call is split into what is inside the calculator and what is added
around it: by ASE's get_potential_energy() and get_forces() in Python, or by libmlff."""
import argparse
import datetime
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def write_water(path, atoms):
    """Water molecules on a lattice, turned at random."""
    random.seed(1)
    molecules = atoms // 3
    edge = 1
    while edge**3 < molecules:
        edge += 1
    rows = []
    for i in range(molecules):
        x, y, z = (3.105 * c for c in (i % edge, i // edge % edge, i // edge**2))
        s = random.choice((-1, 1))
        rows += [(8, x, y, z), (1, x + 0.9572 * s, y, z), (1, x - 0.239987 * s, y + 0.926627, z)]
    with open(path, "w") as file:
        file.write("%d %s\n" % (len(rows), " ".join(str(3.105 * edge if k % 4 == 0 else 0) for k in range(9))))
        file.writelines("%d %.6f %.6f %.6f\n" % row for row in rows)
    return len(rows)


def seconds(command, environment):
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    if result.returncode != 0:
        sys.exit("%s: %s" % (" ".join(command), result.stderr.strip()[-800:]))
    return [[float(word) for word in line.split()[1:]] for line in result.stdout.split("\n") if line.startswith("seconds ")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("environment")
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    options.environment, options.model = os.path.abspath(options.environment), os.path.abspath(options.model)
    python = os.path.join(options.environment, "bin", "python3")
    folder = tempfile.mkdtemp()
    program = os.path.join(folder, "time_calls")
    library = os.path.join(os.path.abspath(options.build), "src")
    subprocess.run(["cc", "-O2", "-std=c11", "-D_GNU_SOURCE", os.path.join(HERE, "time_calls.c"), "-I", os.path.join(ROOT, "include"), "-L", library, "-lmlff", "-Wl,-rpath," + library, "-o", program], check=True)
    variables = dict(os.environ, OMP_NUM_THREADS="1", MLFF_PYTHON_LIBRARY=os.path.join(os.path.abspath(options.build), "apps", "mlff", "libmlff_python.so"), PYTHONDONTWRITEBYTECODE="1")

    cases = []
    for factory, atoms, calls in (("Nothing", 999, 200), ("mace", 3, 40), ("mace", 192, 10), ("mace", 999, 4)):
        system = os.path.join(folder, "water%d.txt" % atoms)
        count = write_water(system, atoms)
        name = "python:%s:%s?env=%s%s" % (os.path.join(HERE, "timed.py"), factory, options.environment, "&model=" + options.model if factory == "mace" else "")
        ways = {
            "direct": [python, os.path.join(HERE, "time_direct.py"), factory, options.model, system, str(calls)],
            "inprocess": [program, name + "&host=inprocess", system, str(calls)],
            "process": [program, name + "&host=process", system, str(calls)],
        }
        times = {way: [] for way in ways}
        for _ in range(options.rounds):
            for way, command in ways.items():
                times[way] += seconds(command, variables)
        case = {"calculator": factory, "atoms": count, "calls": calls * options.rounds}
        for way, values in times.items():
            added = statistics.median(total - inside for total, inside in values)
            case[way] = {"call_ms": 1e3 * statistics.median(total for total, _ in values), "inside_ms": 1e3 * statistics.median(inside for _, inside in values), "added_ms": 1e3 * added}
        cases.append(case)
        print("%-8s %5d atoms: " % (factory, count) + ", ".join("%s %.3f ms, of which added %.3f" % (way, case[way]["call_ms"], case[way]["added_ms"]) for way in ways), flush=True)
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    versions = subprocess.run([python, "-c", "import torch, mace, ase; print(torch.__version__, mace.__version__, ase.__version__)"], capture_output=True, text=True).stdout.split()
    result = {
        "what": "measurements/python/measure.py: one call of a Python model, by Python itself and through libmlff; fp64, one thread; medians",
        "date": datetime.date.today().isoformat(),
        "commit": commit,
        "machine": {"architecture": platform.machine(), "cores": os.cpu_count()},
        "versions": dict(zip(("torch", "mace-torch", "ase"), versions)),
        "model": os.path.basename(options.model),
        "cases": cases,
    }
    if options.json:
        with open(options.json, "w") as file:
            json.dump(result, file, indent=1)
            file.write("\n")


main()
