# SPDX-License-Identifier: MIT
"""Structures that every engine is given, the same on every machine: (numbers, positions, cell), lengths in angstrom. The cell is
None where nothing is periodic."""
import numpy as np

# Gas-phase geometries: water as measured, the others the lowest minimum of the MMFF94 force field.
WATER = """
8  0.0000  0.0000  0.1173
1  0.0000  0.7569 -0.4686
1  0.0000 -0.7569 -0.4686
"""
ETHANOL = """
6 -0.9715  0.3021  0.1238
6  0.3868 -0.3650  0.0866
8  1.2865  0.4581 -0.6405
1 -1.6908 -0.3073  0.6781
1 -0.9046  1.2875  0.5966
1 -1.3510  0.4615 -0.8909
1  0.3227 -1.3392 -0.4073
1  0.7752 -0.5020  1.1002
1  2.1466  0.0045 -0.6468
"""
# N-acetyl-L-alanine N'-methylamide, with the hydrogen bond across seven atoms (phi -81, psi 78 degrees)
ALANINE_DIPEPTIDE = """
6 -2.4499 -0.2196  1.8488
6 -1.6844 -0.2280  0.5543
8 -1.7815 -1.1380 -0.2643
7 -0.8407  0.8441  0.3871
6  0.0374  0.9392 -0.7796
6  0.4276  2.3914 -1.0223
6  1.2836  0.0617 -0.5362
8  2.3578  0.5116 -0.1461
7  1.0515 -1.2865 -0.7307
6  2.0456 -2.2721 -0.3996
1 -3.4869 -0.5066  1.6537
1 -2.4502  0.7739  2.3060
1 -1.9925 -0.9320  2.5402
1 -0.5483  1.3449  1.2178
1 -0.4921  0.5571 -1.6608
1  0.9385  2.8219 -0.1535
1 -0.4593  3.0030 -1.2200
1  1.1014  2.4756 -1.8815
1  0.0736 -1.5794 -0.7761
1  2.0569 -2.4072  0.6852
1  3.0326 -1.9424 -0.7351
1  1.7794 -3.2125 -0.8874
"""


def molecule(table):
    """A molecule in vacuum, of lines with an atomic number and a position."""
    values = np.array(table.split(), dtype=float).reshape(-1, 4)
    return values[:, 0].astype(int), values[:, 1:].copy(), None


def water(side, seed=7):
    """side^3 molecules on a cubic lattice at 1 g/cm^3, or as many along each axis as `side` says, turned at random, a little rattled."""
    sides = (side,) * 3 if isinstance(side, int) else side
    random = np.random.default_rng(seed)
    spacing, bond, half = 3.1043, 0.9572, np.deg2rad(104.52 / 2)
    molecule = np.array([[0, 0, 0], [bond * np.sin(half), 0, bond * np.cos(half)], [-bond * np.sin(half), 0, bond * np.cos(half)]])
    molecule -= molecule.mean(axis=0)
    positions = []
    for index in np.ndindex(*sides):
        rotation, _ = np.linalg.qr(random.normal(size=(3, 3)))
        positions.append(molecule @ rotation.T + (np.array(index) + 0.5) * spacing)
    positions = np.concatenate(positions) + random.normal(scale=0.02, size=(3 * len(positions), 3))
    return np.array([8, 1, 1] * (len(positions) // 3)), positions, np.diag(sides) * spacing


def silicon(side, seed=11):
    """side^3 cubic diamond cells, rattled."""
    random = np.random.default_rng(seed)
    basis = np.array([[0, 0, 0], [0, 2, 2], [2, 0, 2], [2, 2, 0], [1, 1, 1], [1, 3, 3], [3, 1, 3], [3, 3, 1]]) / 4
    positions = np.concatenate([basis + np.array(index) for index in np.ndindex(side, side, side)]) * 5.43
    return np.full(8 * side**3, 14), positions + random.normal(scale=0.05, size=positions.shape), np.eye(3) * side * 5.43


SYSTEMS = {"water3": lambda: molecule(WATER), "ethanol": lambda: molecule(ETHANOL), "ala2": lambda: molecule(ALANINE_DIPEPTIDE),
           "water24": lambda: water(2), "water192": lambda: water(4), "water648": lambda: water(6), "water1536": lambda: water(8),
           "si64": lambda: silicon(2), "si512": lambda: silicon(4)}
