# SPDX-License-Identifier: MIT
"""Geometries: RDKit conformers, Langevin dynamics with force fields or xTB, harmonic displacements, and packing of clusters.

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
MASSES = {1: 1.008, 5: 10.81, 6: 12.011, 7: 14.007, 8: 15.999, 9: 18.998, 14: 28.085, 15: 30.974, 16: 32.06, 17: 35.45, 35: 79.904, 53: 126.904}
COVALENT = {1: .31, 5: .84, 6: .76, 7: .71, 8: .66, 9: .57, 14: 1.11, 15: 1.07, 16: 1.05, 17: 1.02, 35: 1.20, 53: 1.39}


SOFTEST = 1.0  # eV/angstrom^2; at 300 K an atom that nothing else holds moves by 0.16 angstrom


class System:
    """One molecule or several, with hydrogens, and the forces of MMFF94, or of UFF where MMFF94 has no parameters."""

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

    def field_of_force(self):
        if self.field is None:
            self.molecule.RemoveAllConformers()
            self.molecule.AddConformer(Chem.Conformer(len(self.numbers)))
            properties = rdForceFieldHelpers.MMFFGetMoleculeProperties(self.molecule)
            if properties is not None:
                self.field = rdForceFieldHelpers.MMFFGetMoleculeForceField(
                    self.molecule, properties, nonBondedThresh=1000.0, ignoreInterfragInteractions=False)
            elif rdForceFieldHelpers.UFFHasAllMoleculeParams(self.molecule):
                self.field = rdForceFieldHelpers.UFFGetMoleculeForceField(self.molecule, vdwThresh=1000.0, ignoreInterfragInteractions=False)
            if self.field is None:
                raise Rejected("no force field")
            self.field.Initialize()
        return self.field

    def has_field(self):
        try:
            return self.field_of_force() is not None
        except (Rejected, RuntimeError):
            return False

    def field_forces(self, positions):
        field, coordinates = self.field_of_force(), positions.ravel().tolist()
        field.CalcEnergy(coordinates)  # RDKit keeps the distances of the last energy, and CalcGrad alone would use those
        return -np.array(field.CalcGrad(coordinates)).reshape(-1, 3) * KCAL_PER_MOL

    def relax_with_field(self, positions, steps=60):
        """Damped descent with a bounded step; enough to take out clashes before dynamics."""
        positions, speed = positions.copy(), 0.004
        velocity = np.zeros_like(positions)
        for _ in range(steps):
            force = self.field_forces(positions)
            velocity = np.where(velocity * force > 0, 0.9 * velocity, 0) + speed * force
            length = np.sqrt((velocity * velocity).sum(-1, keepdims=True))
            velocity *= np.minimum(1, 0.1 / np.maximum(length, 1e-12))
            positions += velocity
        return positions

    def springs(self, positions):
        """Stiffness matrix (eV/angstrom^2, [3n][3n]) of springs between atoms one, two and three bonds apart, and of a weak one
        of each atom to its place. Close enough to that of a real surface to give steps towards its minimum, and displacements
        with about the energy of a temperature."""
        n = len(positions)
        matrix = SOFTEST * np.eye(3 * n)
        hops = Chem.GetDistanceMatrix(self.molecule)
        for a in range(n):
            for b in range(a):
                if hops[a, b] > 3:
                    continue
                gap = positions[a] - positions[b]
                distance = max(np.linalg.norm(gap), 0.5)
                if hops[a, b] == 1:
                    order = self.molecule.GetBondBetweenAtoms(a, b).GetBondTypeAsDouble()
                    stiffness = 30 * order * ((COVALENT[self.numbers[a]] + COVALENT[self.numbers[b]]) / 1.4) ** -2
                    stiffness = min(max(stiffness, 10), 90)
                else:
                    stiffness = 4.0 if hops[a, b] == 2 else 0.4
                block = stiffness * np.outer(gap, gap) / distance**2
                one, two = slice(3 * a, 3 * a + 3), slice(3 * b, 3 * b + 3)
                matrix[one, one] += block
                matrix[two, two] += block
                matrix[one, two] -= block
                matrix[two, one] -= block
        return matrix

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


def displaced(positions, stiffness, temperature, rng):
    """Positions about a minimum, as harmonic springs with this stiffness matrix have them at a temperature."""
    values, modes = np.linalg.eigh(stiffness)
    steps = modes @ (np.sqrt(BOLTZMANN * temperature / values) * rng.normal(size=len(values)))
    return positions + steps.reshape(-1, 3)


def minimise(evaluate, positions, stiffness, most, small=0.03, largest_step=0.12):
    """Quasi-Newton steps (BFGS from a stiffness matrix): yields each evaluated (positions, energy, forces), the minimum last.

    Ends after `most` evaluations, or where all forces (eV/angstrom) are small. Steps that lead up in energy are shortened.
    """
    inverse = np.linalg.inv(stiffness)
    energy, forces = evaluate(positions)
    yield positions, energy, forces
    for _ in range(most - 1):
        if np.abs(forces).max() < small:
            return
        step = (inverse @ forces.ravel()).reshape(-1, 3)
        step *= min(1, largest_step / np.sqrt((step * step).sum(-1)).max())
        trial = positions + step
        trial_energy, trial_forces = evaluate(trial)
        s, y = (trial - positions).ravel(), (forces - trial_forces).ravel()
        if s @ y > 1e-4 * np.sqrt((s @ s) * (y @ y)):
            rho, product = 1 / (s @ y), inverse @ y
            inverse = inverse + np.outer(s, s) * (rho + rho * rho * (y @ product)) - rho * (np.outer(product, s) + np.outer(s, product))
        if trial_energy > energy + 0.02:
            largest_step *= 0.5
            if largest_step < 0.01:
                return
            continue
        positions, energy, forces = trial, trial_energy, trial_forces
        yield positions, energy, forces


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


def place_beside(numbers_a, positions_a, numbers_b, positions_b, wanted, rng, start=None, direction=None):
    """Turns b at random and puts it in a direction from a (by default a random one from its centroid), so that the closest contact is `wanted`."""
    turned = positions_b @ rotation(rng).T
    if direction is None:
        direction = rng.normal(size=3)
        start = positions_a.mean(0)
    direction = direction / np.linalg.norm(direction)
    near, far = 0.0, 60.0
    for _ in range(40):
        middle = 0.5 * (near + far)
        if contact(numbers_a, positions_a, numbers_b, turned + start + middle * direction) < wanted:
            near = middle
        else:
            far = middle
    return turned + start + far * direction


def halogen_axis(member, positions, rng):
    """A place and direction beyond a bond to Cl, Br or I, where a halogen bond may form; None where there is no such bond."""
    halogens = [atom for atom in member.GetAtoms() if atom.GetAtomicNum() in (17, 35, 53) and atom.GetDegree() == 1]
    if not halogens:
        return None, None
    atom = halogens[rng.integers(len(halogens))]
    end = positions[atom.GetIdx()]
    return end, end - positions[atom.GetNeighbors()[0].GetIdx()]


def assemble(system, wanted_contacts, rng, on_halogen=False):
    """Places the members one after the other; positions about the centroid. `on_halogen`: the second on the axis of a bond to a halogen of the first."""
    numbers, positions = None, None
    for index, member in enumerate(system.members):
        z = np.array([atom.GetAtomicNum() for atom in member.GetAtoms()])
        x = conformer(member, rng)
        if numbers is None:
            numbers, positions = z, x
        else:
            start, direction = halogen_axis(system.members[0], positions, rng) if on_halogen and index == 1 else (None, None)
            x = place_beside(numbers, positions, z, x, wanted_contacts[index - 1], rng, start, direction)
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
