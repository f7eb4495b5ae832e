# SPDX-License-Identifier: MIT
"""Small labelled frames for the tests of the trainer: shaken molecules with a pair potential that any force field must be able to learn.

The labels are a sum of Morse-like pair terms, smooth and short-ranged, so that energy and forces agree to machine precision.
"""
import math
import random

MOLECULES = {
    "water": [("O", 0, 0, 0), ("H", 0.96, 0, 0), ("H", -0.24, 0.93, 0)],
    "methane": [("C", 0, 0, 0), ("H", 0.63, 0.63, 0.63), ("H", -0.63, -0.63, 0.63), ("H", -0.63, 0.63, -0.63), ("H", 0.63, -0.63, -0.63)],
    "methanol": [("C", 0, 0, 0), ("O", 1.42, 0, 0), ("H", 1.7, 0.9, 0), ("H", -0.4, 1.0, 0.2), ("H", -0.4, -0.6, 0.9), ("H", -0.4, -0.5, -0.95)],
}
RADIUS = {"H": 0.45, "C": 0.75, "O": 0.65}
ATOM_ENERGY = {"H": -13.0, "C": -1030.0, "O": -2040.0}


def label(symbols, positions):
    energy = sum(ATOM_ENERGY[symbol] for symbol in symbols)
    forces = [[0.0, 0.0, 0.0] for _ in symbols]
    for i in range(len(symbols)):
        for j in range(i):
            r = [positions[i][k] - positions[j][k] for k in range(3)]
            d = math.sqrt(sum(x * x for x in r))
            rest = RADIUS[symbols[i]] + RADIUS[symbols[j]]
            decay = math.exp(-1.8 * (d - rest))
            energy += 1.2 * (decay * decay - 2 * decay)
            slope = 1.2 * -3.6 * (decay * decay - decay)
            for k in range(3):
                forces[i][k] -= slope * r[k] / d
                forces[j][k] += slope * r[k] / d
    return energy, forces


def write(path, per_molecule, seed=1):
    shake = random.Random(seed)
    with open(path, "w") as file:
        for name, atoms in MOLECULES.items():
            for index in range(per_molecule):
                split = "train" if index % 5 < 3 else "valid" if index % 5 == 3 else "test"
                symbols = [atom[0] for atom in atoms]
                positions = [[x + shake.gauss(0, 0.08) for x in atom[1:]] for atom in atoms]
                energy, forces = label(symbols, positions)
                file.write(f"{len(atoms)}\nProperties=species:S:1:pos:R:3:forces:R:3 energy={energy!r} molecule={name} split={split} kind=shaken\n")
                for symbol, r, f in zip(symbols, positions, forces):
                    file.write(" ".join([symbol] + [repr(x) for x in r + f]) + "\n")
