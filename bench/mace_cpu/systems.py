# SPDX-License-Identifier: MIT
"""Structures that every engine is given, from fixed seeds: (numbers, positions, cell)."""
import numpy as np


def water(side, seed=7):
    """side^3 molecules on a cubic lattice at 1 g/cm^3, turned at random, a little rattled."""
    random = np.random.default_rng(seed)
    spacing, bond, half = 3.1043, 0.9572, np.deg2rad(104.52 / 2)
    molecule = np.array([[0, 0, 0], [bond * np.sin(half), 0, bond * np.cos(half)], [-bond * np.sin(half), 0, bond * np.cos(half)]])
    molecule -= molecule.mean(axis=0)
    positions = []
    for index in np.ndindex(side, side, side):
        rotation, _ = np.linalg.qr(random.normal(size=(3, 3)))
        positions.append(molecule @ rotation.T + (np.array(index) + 0.5) * spacing)
    positions = np.concatenate(positions) + random.normal(scale=0.02, size=(3 * side**3, 3))
    return np.array([8, 1, 1] * side**3), positions, np.eye(3) * side * spacing


def silicon(side, seed=11):
    """side^3 cubic diamond cells, rattled."""
    random = np.random.default_rng(seed)
    basis = np.array([[0, 0, 0], [0, 2, 2], [2, 0, 2], [2, 2, 0], [1, 1, 1], [1, 3, 3], [3, 1, 3], [3, 3, 1]]) / 4
    positions = np.concatenate([basis + np.array(index) for index in np.ndindex(side, side, side)]) * 5.43
    return np.full(8 * side**3, 14), positions + random.normal(scale=0.05, size=positions.shape), np.eye(3) * side * 5.43


SYSTEMS = {"water24": lambda: water(2), "water192": lambda: water(4), "water648": lambda: water(6), "water1536": lambda: water(8),
           "si64": lambda: silicon(2), "si512": lambda: silicon(4)}
