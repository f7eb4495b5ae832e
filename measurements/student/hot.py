# SPDX-License-Identifier: MIT
"""Forces of a student hotter than its training data: Langevin dynamics with the student of molecules that it has not seen, frames of it labelled with
GFN2-xTB. Needs rdkit and tblite (models/student/data/requirements.txt) and the molecules that make_molecules.py writes. Prints JSON.

  python hot.py LIBRARY MOLECULES.jsonl [--model builtin] [--molecules 40] [--temperatures 300,1000,1500] [--fs 300] [--frames 5] [--seed 1]

Energies are compared after the mean difference of each run: what a molecule's energies are measured from is not what is asked here."""
import argparse
import json
import os
import pathlib
import sys
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "models" / "student" / "data")]
import native
from labelling import Labeller, Rejected
from sampling import System, conformer, langevin
from split import molecule_split

SETTLE_FS = 100  # before the first frame


class Student:
    """Energies and forces of one molecule."""

    def __init__(self, arguments, numbers, positions):
        self.session = native.Session(arguments.library, arguments.model, (numbers, positions, None), "cpu", "mixed", 1.0, 1)
        self.positions = self.session.positions

    def __call__(self, positions):
        self.positions[:] = positions
        self.session.evaluate()
        return float(self.session.energy[0]), self.session.forces.copy()

    def relax(self, positions, steps=150):
        """Steepest descent with short moves."""
        positions = positions.copy()
        for _ in range(steps):
            moves = 0.005 * self(positions)[1]
            positions += moves * np.minimum(1, 0.05 / np.maximum(np.linalg.norm(moves, axis=1, keepdims=True), 1e-12))
        return positions


def held_out(path, count, seed):
    """Molecules of the test split with at least three heavy atoms, at random."""
    smiles = [record["smiles"] for record in map(json.loads, open(path)) if record["heavy"] >= 3]
    smiles = [text for text in smiles if molecule_split(text) == "test"]
    return [smiles[i] for i in np.random.default_rng(seed).permutation(len(smiles))[:count]]


def shortest_distance(positions):
    gap = positions[:, None] - positions[None]
    return float(np.sqrt((gap * gap).sum(-1) + 1e9 * np.eye(len(positions))).min())


def run(arguments, smiles, temperature, random):
    """One run. What went wrong is the text `end`; frames before that count."""
    result = {"smiles": smiles, "frames": [], "end": "whole"}
    system = System([smiles])
    positions = conformer(system.members[0], random)
    student, label = Student(arguments, system.numbers, positions), Labeller(system.numbers)
    positions = student.relax(positions)
    between = int(arguments.fs / arguments.step_fs / arguments.frames)
    try:
        for frame in langevin(lambda x: student(x)[1], positions, system.masses, temperature, between, arguments.frames, random, step=arguments.step_fs,
                              settle=int(SETTLE_FS / arguments.step_fs)):
            energy, forces = student(frame)
            expected_energy, expected = label(frame)
            broken = False
            try:
                system.check_bonds(frame)
            except Rejected:
                broken = True
            result["frames"].append({"energy_error": (energy - expected_energy) / len(frame), "errors": forces - expected, "expected": expected, "broken": broken,
                                     "shortest": shortest_distance(frame)})
    except Rejected as reason:
        result["end"] = str(reason)
    finally:
        student.session.free()
    return result


def summary(runs, temperature, seconds):
    frames = [frame for one in runs for frame in one["frames"]]
    errors, expected = np.concatenate([frame["errors"] for frame in frames]), np.concatenate([frame["expected"] for frame in frames])
    rms = np.sqrt((expected**2).mean())
    energies, offsets = [], []
    for one in runs:
        if len(one["frames"]) > 1:
            of_run = np.array([frame["energy_error"] for frame in one["frames"]])
            energies.append(of_run - of_run.mean())
            offsets.append(of_run.mean())
    energies = np.concatenate(energies)
    ends = {}
    for one in runs:
        ends[one["end"]] = ends.get(one["end"], 0) + 1
    return {"temperature_K": temperature, "runs": len(runs), "ends": ends, "frames": len(frames), "frames_with_a_broken_bond": sum(frame["broken"] for frame in frames),
            "force_mae_meV_per_A": 1e3 * float(np.abs(errors).mean()), "force_rmse_meV_per_A": 1e3 * float(np.sqrt((errors**2).mean())),
            "rms_force_meV_per_A": 1e3 * float(rms), "force_rmse_relative": float(np.sqrt((errors**2).mean()) / rms),
            "largest_force_error_eV_per_A": float(np.abs(errors).max()), "largest_force_eV_per_A": float(np.abs(expected).max()),
            "energy_mae_within_a_run_meV_per_atom": 1e3 * float(np.abs(energies).mean()), "energy_mean_error_of_a_run_meV_per_atom": 1e3 * float(np.abs(offsets).mean()),
            "shortest_distance_A": min(frame["shortest"] for frame in frames), "seconds": seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("molecule_file")
    parser.add_argument("--model", default="builtin")
    parser.add_argument("--molecules", type=int, default=40)
    parser.add_argument("--temperatures", default="300,1000,1500")
    parser.add_argument("--fs", type=float, default=300, help="of dynamics after the first 100 fs")
    parser.add_argument("--step-fs", type=float, default=0.5)
    parser.add_argument("--frames", type=int, default=5, help="labelled per run")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chosen = held_out(arguments.molecule_file, arguments.molecules, arguments.seed)
    temperatures = []
    for temperature in [float(text) for text in arguments.temperatures.split(",")]:
        begin = time.perf_counter()
        runs = []
        for number, smiles in enumerate(chosen):
            try:
                runs.append(run(arguments, smiles, temperature, np.random.default_rng([arguments.seed, number])))
            except Rejected as reason:  # before there was any dynamics
                runs.append({"smiles": smiles, "frames": [], "end": str(reason)})
        temperatures.append(summary(runs, temperature, time.perf_counter() - begin))
        print(json.dumps(temperatures[-1]), file=sys.stderr)
    print(json.dumps({"what": "measurements/student/hot.py", "model": os.path.basename(arguments.model), "molecules": len(chosen), "fs": arguments.fs, "step_fs": arguments.step_fs,
                      "seed": arguments.seed, "temperatures": temperatures}, indent=1))


if __name__ == "__main__":
    main()
