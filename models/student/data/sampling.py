# SPDX-License-Identifier: MIT
"""Geometries: RDKit conformers, Langevin dynamics with MMFF94 or xTB forces, and packing of clusters.

Units: angstrom, eV, fs, kelvin; masses in atomic mass units.
"""
import numpy as np
from rdkit import Chem, RDLogger
from rdkit.Chem import rdDistGeom, rdForceFieldHelpers

from labelling import Rejected

RDLogger.DisableLog("rdApp.*")
KCAL_PER_MOL = 0.04336410  # eV
BOLTZMANN = 8.617333262e-5  # eV/K
ACCELERATION = 9.648533212e-3  # angstrom/fs^2 for 1 eV/angstrom on 1 atomic mass unit
MASSES = {1: 1.008, 6: 12.011, 7: 14.007, 8: 15.999, 9: 18.998, 16: 32.06, 17: 35.45}
COVALENT = {1: .31, 6: .76, 7: .71, 8: .66, 9: .57, 16: 1.05, 17: 1.02}


class System:
    """One molecule or several, with hydrogens, and its MMFF94 forces."""

    def __init__(self, smiles_of_members):
        self.members = [Chem.AddHs(Chem.MolFromSmiles(smiles)) for smiles in smiles_of_members]
        combined = self.members[0]
        for member in self.members[1:]:
            combined = Chem.CombineMols(combined, member)
        combined.RemoveAllConformers()
        self.molecule = Chem.Mol(combined)
        Chem.SanitizeMol(self.molecule)
        self.numbers = np.array([atom.GetAtomicNum() for atom in self.molecule.GetAtoms()])
        self.masses = np.array([MASSES[z] for z in self.numbers])
        self.sizes = [member.GetNumAtoms() for member in self.members]
        self.bonds = np.array([(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in self.molecule.GetBonds()]).reshape(-1, 2)
        self.bond_limits = np.array([1.7 * (COVALENT[self.numbers[a]] + COVALENT[self.numbers[b]]) for a, b in self.bonds])
        self.field = None

    def mmff(self):
        if self.field is None:
            self.molecule.RemoveAllConformers()
            self.molecule.AddConformer(Chem.Conformer(len(self.numbers)))
            properties = rdForceFieldHelpers.MMFFGetMoleculeProperties(self.molecule)
            if properties is None:
                raise Rejected("no MMFF types")
            self.field = rdForceFieldHelpers.MMFFGetMoleculeForceField(
                self.molecule, properties, nonBondedThresh=1000.0, ignoreInterfragInteractions=False)
            self.field.Initialize()
        return self.field

    def mmff_forces(self, positions):
        field, coordinates = self.mmff(), positions.ravel().tolist()
        field.CalcEnergy(coordinates)  # RDKit keeps the distances of the last energy, and CalcGrad alone would use those
        return -np.array(field.CalcGrad(coordinates)).reshape(-1, 3) * KCAL_PER_MOL

    def relax_mmff(self, positions, steps=60):
        """Damped descent with a bounded step; enough to take out clashes before dynamics."""
        positions, speed = positions.copy(), 0.004
        velocity = np.zeros_like(positions)
        for _ in range(steps):
            force = self.mmff_forces(positions)
            velocity = np.where(velocity * force > 0, 0.9 * velocity, 0) + speed * force
            length = np.sqrt((velocity * velocity).sum(-1, keepdims=True))
            velocity *= np.minimum(1, 0.1 / np.maximum(length, 1e-12))
            positions += velocity
        return positions

    def check_bonds(self, positions):
        if len(self.bonds):
            gap = positions[self.bonds[:, 0]] - positions[self.bonds[:, 1]]
            if (np.sqrt((gap * gap).sum(-1)) > self.bond_limits).any():
                raise Rejected("bond broken")


def conformer(member, rng):
    """Positions of one ETKDG conformer."""
    parameters = rdDistGeom.ETKDGv3()
    parameters.randomSeed = int(rng.integers(1, 2**31 - 1))
    parameters.maxIterations = 10
    parameters.timeout = 10
    member.RemoveAllConformers()
    if rdDistGeom.EmbedMolecule(member, parameters) != 0:
        parameters.useRandomCoords = True
        if rdDistGeom.EmbedMolecule(member, parameters) != 0:
            raise Rejected("no conformer")
    positions = member.GetConformer().GetPositions()
    return positions - positions.mean(0)


def langevin(forces, positions, masses, temperature, steps_between, count, rng, step=1.0, friction=0.02, settle=0):
    """BAOAB Langevin dynamics: yields `count` positions, `steps_between` steps apart, after `settle` steps."""
    m = masses[:, None]
    kick = 0.5 * step * ACCELERATION / m
    keep = np.exp(-friction * step)
    noise = np.sqrt((1 - keep * keep) * BOLTZMANN * temperature * ACCELERATION / m)
    positions = positions.copy()
    velocity = rng.normal(size=positions.shape) * np.sqrt(BOLTZMANN * temperature * ACCELERATION / m)
    force = forces(positions)
    for index in range(count):
        for _ in range(steps_between + (settle if index == 0 else 0)):
            velocity += kick * force
            positions += 0.5 * step * velocity
            velocity = keep * velocity + noise * rng.normal(size=positions.shape)
            positions += 0.5 * step * velocity
            force = forces(positions)
            velocity += kick * force
            if not np.abs(positions).max() < 1e3:
                raise Rejected("dynamics ran away")
        yield positions.copy()


def with_wall(forces, radius, stiffness=1.0):
    """Adds a harmonic wall (eV/angstrom^2) at `radius` about the origin, to hold a cluster together while it is sampled."""
    def total(positions):
        distance = np.sqrt((positions * positions).sum(-1, keepdims=True))
        return forces(positions) - stiffness * np.maximum(distance - radius, 0) * positions / np.maximum(distance, 1e-9)
    return total


def rotation(rng):
    """A uniform random rotation matrix."""
    q = rng.normal(size=4)
    w, x, y, z = q / np.linalg.norm(q)
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                     [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                     [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])


def contact(numbers_a, positions_a, numbers_b, positions_b):
    """Closest distance between two sets of atoms; a pair of heavy atoms counts as 0.8 angstrom closer than it is."""
    gap = positions_a[:, None] - positions_b[None]
    excess = 0.8 * ((numbers_a[:, None] > 1) & (numbers_b[None] > 1))
    return (np.sqrt((gap * gap).sum(-1)) - excess).min()


def place_beside(numbers_a, positions_a, numbers_b, positions_b, wanted, rng):
    """Turns b at random and puts it in a random direction from a, so that the closest contact is `wanted`."""
    turned = positions_b @ rotation(rng).T
    direction = rng.normal(size=3)
    direction /= np.linalg.norm(direction)
    start = positions_a.mean(0)
    near, far = 0.0, 60.0
    for _ in range(40):
        middle = 0.5 * (near + far)
        if contact(numbers_a, positions_a, numbers_b, turned + start + middle * direction) < wanted:
            near = middle
        else:
            far = middle
    return turned + start + far * direction


def assemble(system, wanted_contacts, rng):
    """Places the members one after the other; positions about the centroid."""
    numbers, positions = None, None
    for index, member in enumerate(system.members):
        z = np.array([atom.GetAtomicNum() for atom in member.GetAtoms()])
        x = conformer(member, rng)
        if numbers is None:
            numbers, positions = z, x
        else:
            x = place_beside(numbers, positions, z, x, wanted_contacts[index - 1], rng)
            numbers, positions = np.concatenate([numbers, z]), np.concatenate([positions, x])
    return positions - positions.mean(0)


WATER_GEOMETRY = np.array([[0, 0, 0], [0.9690, 0, 0], [-0.2341, 0.9403, 0]])  # O, H, H


def water_sphere_radius(count, density):
    """Radius (angstrom) of a sphere that holds `count` waters at `density` (g/cm3)."""
    return (3 * count * 29.915 / density / (4 * np.pi)) ** (1 / 3)


def packed_waters(count, density, rng):
    """Waters at random in a sphere of the given density, O-O at least 2.5 angstrom where that can be had."""
    radius, spacing = water_sphere_radius(count, density), 2.5
    centres = []
    while len(centres) < count:
        for _ in range(400):
            x = rng.uniform(-radius, radius, 3)
            if x @ x <= radius * radius and all(((x - c) ** 2).sum() > spacing * spacing for c in centres):
                centres.append(x)
                break
        else:
            spacing *= 0.95
    return np.concatenate([WATER_GEOMETRY @ rotation(rng).T + c for c in centres])


def scale_centres(positions, sizes, factor):
    """Moves whole molecules apart or together about the centroid."""
    scaled, start = positions.copy(), 0
    centroid = positions.mean(0)
    for size in sizes:
        centre = positions[start:start + size].mean(0)
        scaled[start:start + size] += (factor - 1) * (centre - centroid)
        start += size
    return scaled
