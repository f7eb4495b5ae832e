# SPDX-License-Identifier: MIT
"""Energy conservation: velocity Verlet without a thermostat on a box of water, after a short relaxation. Two runs that conserve alike (one in
mixed precision on a GPU, one in double precision on the CPU, say) have drifts and fluctuations of the same size, although the
trajectories part. Prints JSON.

  python nve.py LIBRARY MODEL_FILE --device cuda --precision mixed [--steps 10000] [--step-fs 0.5] [--temperature 300]"""
import argparse
import json
import os
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native

FS = 1 / 10.180505710774743  # in angstrom sqrt(amu / eV)
BOLTZMANN = 8.617333262e-5   # eV / K
MASSES = {1: 1.008, 6: 12.011, 7: 14.007, 8: 15.999}


def relax(session, steps):
    """Steepest descent with short moves: takes the worst contacts out of a box made of rigid molecules."""
    for _ in range(steps):
        session.evaluate()
        moves = 0.005 * session.forces
        session.positions += moves * np.minimum(1, 0.05 / np.maximum(np.linalg.norm(moves, axis=1, keepdims=True), 1e-12))


def run(session, steps, step_fs, temperature):
    masses = np.array([MASSES[int(z)] for z in session.numbers])[:, None]
    random = np.random.default_rng(7)
    velocities = random.normal(size=session.positions.shape) * np.sqrt(BOLTZMANN * temperature / masses)
    velocities -= (masses * velocities).sum(axis=0) / masses.sum()
    dt = step_fs * FS
    positions = session.positions
    session.evaluate()
    energies, temperatures = [], []
    for _ in range(steps):
        velocities += 0.5 * dt * session.forces / masses
        positions += dt * velocities
        session.evaluate()
        velocities += 0.5 * dt * session.forces / masses
        kinetic = 0.5 * float((masses * velocities**2).sum())
        energies.append(float(session.energy[0]) + kinetic)
        temperatures.append(2 * kinetic / (3 * len(masses) * BOLTZMANN))
    return np.array(energies), np.array(temperatures)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("model")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", default="mixed")
    parser.add_argument("--atoms", type=int, default=192)
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--step-fs", type=float, default=0.5)
    parser.add_argument("--temperature", type=float, default=300)
    arguments = parser.parse_args()
    session = native.Session(arguments.library, arguments.model, native.water(arguments.atoms), arguments.device, arguments.precision, 1.0)
    relax(session, 200)
    begin = time.perf_counter()
    energies, temperatures = run(session, arguments.steps, arguments.step_fs, arguments.temperature)
    seconds = time.perf_counter() - begin
    if not np.isfinite(energies).all():
        sys.exit("the energy is not a number")
    picoseconds = np.arange(1, len(energies) + 1) * arguments.step_fs / 1000
    slope, offset = np.polyfit(picoseconds, energies, 1)
    residual = energies - (slope * picoseconds + offset)
    print(json.dumps({"model": os.path.basename(arguments.model), "device": arguments.device, "precision": arguments.precision, "atoms": arguments.atoms,
                      "steps": arguments.steps, "step_fs": arguments.step_fs, "mean_temperature_K": float(temperatures.mean()),
                      "drift_meV_per_atom_per_ps": 1e3 * slope / arguments.atoms, "fluctuation_meV_per_atom": 1e3 * float(residual.std()) / arguments.atoms,
                      "ms_per_step": 1e3 * seconds / arguments.steps}, indent=1))


if __name__ == "__main__":
    main()
