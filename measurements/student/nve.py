# SPDX-License-Identifier: MIT
"""Energy conservation of a student: NVE of three molecules and 64 waters, 10,000 steps of 0.5 fs from 300 K, after a short relaxation. Drift is the change
of the straight line through the total energy over the run. Prints JSON; exits with 1 if a run drifts by 1 meV/atom or more.

  python nve.py LIBRARY [MODEL] [--device cpu] [--precision mixed] [--steps 10000]"""
import argparse
import json
import os
import pathlib
import sys
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
SYSTEMS = HERE.parent.parent / "src" / "tools" / "validate" / "systems"
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "mace_gpu")]
import native
import nve

NUMBERS = {"H": 1, "C": 6, "N": 7, "O": 8}


def read_molecule(path):
    lines = [line.split() for line in path.read_text().splitlines()[2:]]
    return np.array([NUMBERS[line[0]] for line in lines]), np.array([[float(x) for x in line[1:4]] for line in lines]), None


def measure(arguments, name, system):
    session = native.Session(arguments.library, arguments.model, system, arguments.device, arguments.precision, 1.0)
    nve.relax(session, 200)
    begin = time.perf_counter()
    energies, temperatures = nve.run(session, arguments.steps, 0.5, 300)
    seconds = time.perf_counter() - begin
    atoms, steps = len(system[0]), np.arange(len(energies))
    slope, offset = np.polyfit(steps, energies, 1)
    return {"system": name, "atoms": atoms, "steps": arguments.steps, "mean_temperature_K": float(temperatures.mean()), "highest_temperature_K": float(temperatures.max()),
            "drift_meV_per_atom": 1e3 * float(slope) * len(energies) / atoms, "fluctuation_meV_per_atom": 1e3 * float((energies - slope * steps - offset).std()) / atoms,
            "ms_per_step": 1e3 * seconds / arguments.steps}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("model", nargs="?", default="builtin")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="mixed")
    parser.add_argument("--steps", type=int, default=10000)
    arguments = parser.parse_args()
    systems = {name: read_molecule(SYSTEMS / (name + ".xyz")) for name in ("alanine_dipeptide", "benzene", "ethanol")}
    systems["64 waters"] = native.water(192)
    runs = [measure(arguments, name, system) for name, system in systems.items()]
    print(json.dumps({"what": "measurements/student/nve.py", "model": os.path.basename(arguments.model), "device": arguments.device, "precision": arguments.precision, "runs": runs}, indent=1))
    return 0 if all(abs(run["drift_meV_per_atom"]) < 1 for run in runs) else 1  # NaN fails


if __name__ == "__main__":
    sys.exit(main())
