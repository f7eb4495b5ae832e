# SPDX-License-Identifier: MIT
"""What a step of `mlff md` costs beside one evaluation of its model through the C interface: benzene and boxes of water, constant energy from 300 K, and
with a Langevin bath. Runs of md and evaluations take turns. Prints JSON.

  python md_steps.py COMMAND LIBRARY [--model builtin] [--device cuda] [--precision mixed] [--atoms 12,192,1536] [--seconds 1] [--repeats 5]"""
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

HERE = pathlib.Path(__file__).resolve().parent
SYSTEMS = HERE.parents[1] / "src" / "tools" / "validate" / "systems"
sys.path.insert(0, str(HERE.parent))
import native

SYMBOLS = {1: "H", 6: "C", 8: "O"}
NUMBERS = {symbol: number for number, symbol in SYMBOLS.items()}
TIME_STEP = 0.5  # fs


def system_of(atoms):
    if atoms != 12:
        return native.water(atoms)
    lines = [line.split() for line in (SYSTEMS / "benzene.xyz").read_text().splitlines()[2:]]
    return np.array([NUMBERS[line[0]] for line in lines]), np.array([[float(x) for x in line[1:4]] for line in lines]), None


def write(path, system):
    numbers, positions, cell = system
    lattice = "" if cell is None else 'Lattice="' + " ".join(f"{x:.17g}" for x in np.asarray(cell).ravel()) + '" pbc="T T T" '
    with open(path, "w") as file:
        file.write(f"{len(numbers)}\n{lattice}Properties=species:S:1:pos:R:3\n")
        for number, x in zip(numbers, positions):
            file.write(f"{SYMBOLS[int(number)]} {x[0]:.17g} {x[1]:.17g} {x[2]:.17g}\n")


def step_ms(arguments, folder, steps, bath):
    """Milliseconds of a step, as the command counts them: without loading and the first forces."""
    ensemble = ["--ensemble", "nvt", "--thermostat", "langevin"] if bath else ["--ensemble", "nve"]
    command = [arguments.command, "md", "start.xyz", "--model", arguments.model, "--device", arguments.device, "--precision", arguments.precision, *ensemble,
               "--temperature", "300", "--dt", str(TIME_STEP), "--steps", str(steps), "--checkpoint-every", "0", "--overwrite"]
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    speed = re.search(r"([0-9.]+) ns/day", found.stdout)
    if found.returncode != 0 or not speed:
        raise RuntimeError(found.stderr or found.stdout)
    return 86400e3 * TIME_STEP * 1e-6 / float(speed.group(1))


def evaluation_ms(session, places, seconds):
    times, end, i = [], time.perf_counter() + seconds, 0
    while len(times) < 5 or time.perf_counter() < end:
        session.place(places[i % len(places)])
        begin = time.perf_counter()
        session.evaluate()
        times.append(1e3 * (time.perf_counter() - begin))
        i += 1
    return statistics.median(times)


def spread(numbers):
    return {"median_ms": statistics.median(numbers), "min_ms": min(numbers), "max_ms": max(numbers), "runs": len(numbers)}


def measure(arguments, atoms):
    system = system_of(atoms)
    session = native.Session(arguments.library, arguments.model, system, arguments.device, arguments.precision, 1.0)
    places = session.shaken()
    evaluation_ms(session, places, 0.2)
    steps = max(100, min(100_000, int(1e3 * arguments.seconds / evaluation_ms(session, places, 0.2))))
    figures = {"evaluation": [], "nve": [], "nvt": []}
    with tempfile.TemporaryDirectory() as folder:
        write(os.path.join(folder, "start.xyz"), system)
        for _ in range(arguments.repeats):
            figures["evaluation"].append(evaluation_ms(session, places, 0.3 * arguments.seconds))
            figures["nve"].append(step_ms(arguments, folder, steps, False))
            figures["nvt"].append(step_ms(arguments, folder, steps, True))
    session.free()
    return {"atoms": atoms, "steps": steps, **{name: spread(numbers) for name, numbers in figures.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", type=os.path.abspath)
    parser.add_argument("library", type=os.path.abspath)
    parser.add_argument("--model", default="builtin")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", default="mixed")
    parser.add_argument("--atoms", default="12,192,1536")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    results = [measure(arguments, int(atoms)) for atoms in arguments.atoms.split(",")]
    print(json.dumps({"what": "measurements/dynamics/md_steps.py", "model": os.path.basename(arguments.model), "device": arguments.device, "precision": arguments.precision,
                      "time_step_fs": TIME_STEP, "gpu": native.gpu_state() if arguments.device.startswith("cuda") else {}, "results": results}, indent=1))


if __name__ == "__main__":
    main()
