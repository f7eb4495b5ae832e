# SPDX-License-Identifier: MIT
"""How far mlff is from the package sevenn: energies, forces and stress of every checkpoint inside the package, by every way that mlff computes them (`mlff eval`), against the package's network
in fp64 with the same numbers. Beside it the package's calculator itself, which computes in fp32. Writes JSON.

  python errors.py PROGRAM [--threads 2] [--models NAME...] [--output FILE]

PROGRAM is the command mlff. Needs sevenn, ase and numpy. Exits with 1 if fp64 without tables is off by more than 1e-10 of the largest force."""
import argparse
import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "mace_cpu")]
import package
import report
import systems

HEADS = {"SevenNet-MF-0": ["PBE", "R2SCAN"]}
SYSTEMS = ["ethanol", "ala2", "water24", "si64"]
WAYS = {"reference": ["--device", "reference"], "cpu, fp64 without tables": ["--device", "cpu", "--precision", "fp64", "--exact-radial"],
        "cpu, fp64 with tables": ["--device", "cpu", "--precision", "fp64"], "cpu, mixed": ["--device", "cpu", "--precision", "mixed"]}
PEER = "sevenn, fp32"
SYMBOLS = {1: "H", 6: "C", 7: "N", 8: "O", 14: "Si"}
MOST_ERROR = 1e-10


def write_structure(path, system):
    numbers, positions, cell = system
    lattice = "" if cell is None else 'Lattice="' + " ".join(repr(float(value)) for value in cell.ravel()) + '" '
    rows = [" ".join([SYMBOLS[int(number)], *(repr(float(value)) for value in place)]) for number, place in zip(numbers, positions)]
    path.write_text(f"{len(numbers)}\n{lattice}Properties=species:S:1:pos:R:3\n" + "\n".join(rows) + "\n")


def package_results(path, head, precision, threads):
    """Energy, forces and stress (xx yy zz yz xz xy, None for a molecule) of all systems."""
    from ase import Atoms
    calculator, found = package.calculator(path, head, precision, threads), []
    for name in SYSTEMS:
        numbers, positions, cell = systems.SYSTEMS[name]()
        calculator.calculate(Atoms(numbers, positions=positions, cell=cell, pbc=cell is not None))
        results = calculator.results
        found.append((results["energy"], np.array(results["forces"], dtype=float), None if cell is None else np.array(results["stress"], dtype=float)))
    return found


def mlff_results(arguments, structures, path, head, way):
    command = [arguments.program, "eval", str(structures), "--model", path, "--threads", str(arguments.threads), "--json", "-", *WAYS[way], *(["--head", head] if head else [])]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    found = []
    for frame in json.loads(done.stdout)["frames"]:
        stress = frame.get("stress")
        found.append((frame["energy"], np.array(frame["forces"], dtype=float), None if stress is None else np.array(stress, dtype=float).ravel()))
    return found


def errors(found, true):
    """The largest of all systems; forces and stress also divided by the largest of the system, forces at least by 1 eV/A"""
    worst = {"energy_ev_per_atom": 0.0, "forces_ev_per_a": 0.0, "forces_relative": 0.0, "stress_ev_per_a3": 0.0}
    for (energy, forces, stress), (true_energy, true_forces, true_stress) in zip(found, true, strict=True):
        error = float(np.abs(forces - true_forces).max())
        ours = {"energy_ev_per_atom": abs(energy - true_energy) / len(forces), "forces_ev_per_a": error, "forces_relative": error / max(1.0, float(np.abs(true_forces).max()))}
        if true_stress is not None:
            if stress.size == 9:
                stress = stress[[0, 4, 8, 5, 2, 1]]
            ours["stress_ev_per_a3"] = float(np.abs(stress - true_stress).max())
        worst = {key: float(np.maximum(value, ours.get(key, 0.0))) for key, value in worst.items()}  # NaN stays
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--models", nargs="+", choices=package.CHECKPOINTS, default=list(package.CHECKPOINTS))
    parser.add_argument("--output")
    arguments = parser.parse_args()
    arguments.program = os.path.abspath(arguments.program)
    cases = [(name, head, package.checkpoint(name)) for name in arguments.models for head in HEADS.get(name, [None])]
    single = [package_results(path, head, "fp32", arguments.threads) for _, head, path in cases]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        structures = pathlib.Path(folder) / "structures.xyz"
        texts = []
        for name in SYSTEMS:
            write_structure(structures, systems.SYSTEMS[name]())
            texts.append(structures.read_text())
        structures.write_text("".join(texts))
        for (name, head, path), in_single in zip(cases, single):
            in_double = package_results(path, head, "fp64", arguments.threads)
            ways = {way: errors(mlff_results(arguments, structures, path, head, way), in_double) for way in WAYS}
            rows.append({"model": name, "head": head, "model_sha256": report.sha256(path), "largest_force_ev_per_a": max(float(np.abs(forces).max()) for _, forces, _ in in_double),
                         "ways": {**ways, PEER: errors(in_single, in_double)}})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    content = {"what": "measurements/sevennet/errors.py", "machine": f"{report.processor()[0]} ({platform.machine()})", "systems": SYSTEMS,
               "peers": {name: importlib.metadata.version(name) for name in ("sevenn", "torch", "e3nn")}, **report.stamp(), "rows": rows}
    text = json.dumps(content, indent=1) + "\n"
    if arguments.output:
        pathlib.Path(arguments.output).write_text(text)
    else:
        print(text, end="")
    return 0 if all(row["ways"]["cpu, fp64 without tables"]["forces_relative"] < MOST_ERROR for row in rows) else 1  # NaN fails


if __name__ == "__main__":
    sys.exit(main())
