# SPDX-License-Identifier: MIT
"""Tasks: each draws molecules and a way to sample them from (seed, index) alone, and makes a handful of labelled frames."""
import collections
import json
import pathlib

import numpy as np

from labelling import MAX_FORCE, Labeller, Rejected
from sampling import System, assemble, conformer, displaced, langevin, minimise, packed_waters, scale_centres, water_sphere_radius, with_wall
from shards import KINDS
from split import SPLITS, WATER, system_split

# Share of tasks and frames a task aims at. Clusters are about a third of the frames.
TASKS = {"springs": (.545, 10), "xtb_md": (.10, 6), "mmff_md": (.03, 5), "strained": (.02, 5),
         "water": (.13, 6), "solvated": (.07, 5), "dimer": (.09, 5), "scan": (.015, 12)}
DIATOMICS = {"[H][H]": .74, "N#N": 1.10, "F": .92, "Cl": 1.28, "[C-]#[O+]": 1.13, "FF": 1.41, "ClCl": 1.99,
             "Br": 1.41, "I": 1.61, "BrBr": 2.28, "II": 2.67, "BrCl": 2.14, "ClI": 2.32, "P#P": 1.89}  # bond, angstrom
# How often a molecule comes up in the order of molecules, where not once: those that simulations will run, and known ones.
OFTEN = {"CCO": 40, "c1ccccc1": 30, "CNC(=O)C(C)NC(C)=O": 50, "O": 30, "N": 8, "C": 8, "CO": 10}
KNOWN_OFTEN = 4
WATER_SIZES = {1: .5, 2: 3, 3: 3, 4: 3, 5: 3, 6: 3, 7: 2.5, 8: 2.5, 9: 2, 10: 2, 11: 1.5, 12: 1.5, 14: .4, 16: .3, 18: .2, 20: .2}


class Molecules:
    """The order in which molecules come up: all of them, shuffled, again and again."""

    def __init__(self, path, seed):
        entries = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
        self.seed = seed
        self.heavy = {entry["smiles"]: entry["heavy"] for entry in entries}
        self.order = [entry["smiles"] for entry in entries if entry["smiles"] not in DIATOMICS
                      for _ in range(OFTEN.get(entry["smiles"], KNOWN_OFTEN if entry["source"] == "known" else 1))]
        self.small = [smiles for smiles in self.order if 1 <= self.heavy[smiles] <= 6]
        self.halogenated = [smiles for smiles in self.small if "Cl" in smiles or "Br" in smiles or "I" in smiles]
        self.shuffled = {}

    def at(self, index):
        turn, place = divmod(index, len(self.order))
        if turn not in self.shuffled:
            self.shuffled[turn] = np.random.default_rng([self.seed, 1, turn]).permutation(len(self.order))
        return self.order[self.shuffled[turn][place]]


def plan(index, molecules, seed):
    """Kind, members and temperature of a task, and its random numbers."""
    rng = np.random.default_rng([seed, 0, index])
    kind = rng.choice(list(TASKS), p=[share for share, _ in TASKS.values()])
    first = molecules.at(index)
    if kind in ("solvated", "dimer") and molecules.heavy[first] > 8:
        first = molecules.small[rng.integers(len(molecules.small))]
    if kind == "xtb_md" and molecules.heavy[first] > 9:
        first = molecules.small[rng.integers(len(molecules.small))]
    if kind == "water":
        sizes = np.array(list(WATER_SIZES.values()))
        members = [WATER] * int(rng.choice(list(WATER_SIZES), p=sizes / sizes.sum()))
    elif kind == "solvated":
        members = [first] + [WATER] * int(rng.choice([1, 2, 3, 4, 6], p=[.35, .25, .2, .12, .08]))
    elif kind == "dimer":
        second = first if rng.random() < .15 else molecules.small[rng.integers(len(molecules.small))]
        if rng.random() < .2:
            first = molecules.halogenated[rng.integers(len(molecules.halogenated))] if molecules.halogenated else first
        members = [first, second]
        if molecules.heavy[first] + molecules.heavy[second] <= 8 and rng.random() < .3:
            members.append(molecules.small[rng.integers(len(molecules.small))])
    elif kind == "scan":
        members = [str(rng.choice(list(DIATOMICS)))]
    else:
        members = [first]
    return str(kind), members, rng


def held_out(path, per_class, seed, most_heavy=20):
    """Entries of the list of molecules that are for validation or test: of each class and split up to `per_class`, of ordinary molecules eight times
    as many. In random order, so that what was made by any moment is balanced."""
    groups = collections.defaultdict(list)
    for entry in map(json.loads, pathlib.Path(path).read_text().splitlines()):
        if entry["split"] != "train" and 2 <= entry["heavy"] <= most_heavy and entry["smiles"] not in DIATOMICS:
            groups[entry["split"], entry["class"]].append(entry)
    rng = np.random.default_rng([seed, 2])
    chosen = []
    for (_, name), entries in sorted(groups.items()):
        count = 8 * per_class if name == "ordinary" else per_class
        chosen += [entries[i] for i in rng.permutation(len(entries))[:count]]
    return [chosen[i] for i in rng.permutation(len(chosen))]


class Task:
    """Runs one task: collects its frames, and the reasons of those rejected."""

    def __init__(self, index, kind, members, rng, seed):
        self.index, self.kind, self.rng = index, kind, rng
        self.name = ".".join(members)
        self.split = SPLITS.index(system_split(members, f"{seed}:{index}"))
        self.count = TASKS[kind][1] if kind in TASKS else None  # those for a test make their own number
        self.frames, self.rejected = [], collections.Counter()
        self.temperature = 0.0
        self.system = System(members)
        self.labeller = Labeller(self.system.numbers)

    def keep(self, positions, label, check=True, kind=None):
        if np.sqrt((label[1] * label[1]).sum(-1)).max() > MAX_FORCE:
            raise Rejected("force above 30 eV/A")
        if check:
            self.system.check_bonds(positions)
        self.frames.append({"numbers": self.system.numbers, "positions": positions, "forces": label[1], "energy": label[0], "system": self.name,
                            "split": self.split, "kind": KINDS.index(kind or self.kind), "temperature": self.temperature, "task": self.index})

    def add(self, positions, check=True, kind=None):
        """Labels positions, rounded as they will be stored, and keeps or counts the frame."""
        rounded = (positions - positions.mean(0)).astype(np.float32)
        try:
            self.keep(rounded, self.labeller(rounded.astype(float)), check, kind)
        except Rejected as reason:
            self.rejected[str(reason)] += 1

    def run(self):
        try:
            getattr(self, self.kind)()
        except Rejected as reason:
            self.rejected[f"task ended: {reason}"] += 1

    def sampled(self, low, high, count, apart, settle=100):
        """Force-field dynamics of one conformer."""
        self.temperature = float(self.rng.uniform(low, high))
        start = self.system.relax_with_field(conformer(self.system.members[0], self.rng), 30)
        return langevin(self.system.field_forces, start, self.system.masses, self.temperature, apart, count, self.rng, settle=settle)

    def minimum(self, most=25, kept=3):
        """A minimum of the xTB surface from a conformer, and its springs; points on the way are frames where they are far enough apart."""
        positions = conformer(self.system.members[0], self.rng)
        if self.system.has_field():
            positions = self.system.relax_with_field(positions, 40)
        springs = self.system.springs(positions)
        last = None

        def evaluate(x):
            return self.labeller(x.astype(np.float32).astype(float))

        for positions, energy, forces in minimise(evaluate, positions, springs, most, 0.05):
            if kept > 0 and np.abs(forces).max() < 8 and (last is None or np.sqrt(((positions - last) ** 2).sum(-1).mean()) > 0.02):
                self.keep(positions.astype(np.float32), (energy, forces), kind="xtb_relax")
                last, kept = positions, kept - 1
        self.system.check_bonds(positions)
        self.keep(positions.astype(np.float32), (energy, forces), kind="xtb_relax")
        return positions - positions.mean(0), self.system.springs(positions)

    def springs(self):
        """A minimum, and displacements from it: with springs at temperatures, and of each atom alone."""
        positions, springs = self.minimum()
        for _ in range(self.count - 4):
            self.temperature = float(self.rng.choice([300, self.rng.uniform(50, 1000)]))
            self.add(displaced(positions, springs, self.temperature, self.rng), kind="springs")
        self.temperature = 0.0
        for _ in range(2):
            noise = self.rng.choice([0.1, self.rng.uniform(0.03, 0.2)])
            self.add(positions + noise * self.rng.normal(size=positions.shape), kind="shaken", check=False)

    def mmff_md(self):
        for positions in self.sampled(300, 1000, self.count, int(self.rng.integers(60, 100))):
            self.add(positions)

    def strained(self):
        for positions in self.sampled(300, 600, self.count, 50, settle=60):
            scale, noise = self.rng.uniform(0.92, 1.12), self.rng.uniform(0.02, 0.15)
            self.add(positions * scale + noise * self.rng.normal(size=positions.shape))

    def xtb_forces(self, positions):
        return self.labeller.roughly(positions)

    def descend(self, positions, most, spacing=0.02):
        """Follows the xTB forces downhill; keeps each evaluated frame that is `spacing` (rms) from the last one kept."""
        last, velocity = None, np.zeros_like(positions)
        for _ in range(3 * most):
            positions = (positions - positions.mean(0)).astype(np.float32).astype(float)
            label = self.labeller(positions)
            if last is None or np.sqrt(((positions - last) ** 2).sum(-1).mean()) > spacing:
                self.keep(positions.astype(np.float32), label)
                last = positions
                most -= 1
                if most <= 0:
                    break
            velocity = np.where(velocity * label[1] > 0, 0.9 * velocity, 0) + 0.006 * label[1]
            length = np.sqrt((velocity * velocity).sum(-1, keepdims=True))
            velocity *= np.minimum(1, 0.1 / np.maximum(length, 1e-12))
            positions = positions + velocity

    def xtb_md(self):
        """Dynamics from a minimum, at 300 K in half of the tasks, else up to 1000 K."""
        positions, springs = self.minimum(kept=0)
        self.temperature = float(self.rng.choice([300, self.rng.uniform(300, 1000)]))
        start = displaced(positions, springs, 0.7 * self.temperature, self.rng)
        for snapshot in langevin(self.xtb_forces, start, self.system.masses, self.temperature, 12, self.count, self.rng, settle=30):
            self.add(snapshot)

    def held_out_300K(self):
        """For a test of a model, never for training: dynamics at 300 K, and shaken frames."""
        positions, springs = self.minimum(most=60, kept=0)
        self.frames.clear()
        self.temperature = 300.0
        start = displaced(positions, springs, 200, self.rng)
        for snapshot in langevin(self.xtb_forces, start, self.system.masses, 300, 30, 6, self.rng, settle=150):
            self.add(snapshot)
        for _ in range(3):
            self.add(positions + 0.1 * self.rng.normal(size=positions.shape), check=False, kind="held_out_shaken")

    def cluster_md(self, positions, count, apart, radius):
        forces = with_wall(self.system.field_forces, radius)
        return langevin(forces, positions, self.system.masses, self.temperature, apart, count, self.rng, friction=0.03)

    def water(self):
        rng, system = self.rng, self.system
        count = len(system.sizes)
        self.temperature = float(rng.uniform(250, 600))
        way = rng.choice(["packed", "cut", "xtb"], p=[.35, .2, .45])
        density = rng.uniform(0.85, 1.2) if rng.random() < .7 else rng.uniform(0.3, 0.85)
        wall = water_sphere_radius(count, density) + 0.3
        if way == "cut":
            droplet = System([WATER] * 32)
            forces = with_wall(droplet.field_forces, water_sphere_radius(32, 1.0) + 0.3)
            start = droplet.relax_with_field(packed_waters(32, 1.0, rng), 40)
            for snapshot in langevin(forces, start, droplet.masses, self.temperature, 50, 3, rng, settle=80, friction=0.03):
                oxygens = snapshot[::3]
                for centre in rng.choice(32, 3, replace=False):
                    nearest = np.argsort(((oxygens - oxygens[centre]) ** 2).sum(-1))[:count]
                    cut = np.concatenate([snapshot[3 * i:3 * i + 3] for i in nearest])
                    self.add(scale_centres(cut, system.sizes, rng.uniform(0.93, 1.08)))
            return
        start = system.relax_with_field(packed_waters(count, density, rng), 40)
        if way == "packed":
            for snapshot in self.cluster_md(start, self.count, 50, wall):
                if rng.random() < .4:
                    snapshot = scale_centres(snapshot, system.sizes, rng.uniform(0.9, 1.25))
                if rng.random() < .15:
                    snapshot = snapshot + rng.uniform(0.02, 0.08) * rng.normal(size=snapshot.shape)
                self.add(snapshot)
            return
        *_, last = self.cluster_md(start, 1, 60, wall)
        if rng.random() < .2:
            self.descend(last, self.count)
            return
        forces = with_wall(self.xtb_forces, wall)
        for snapshot in langevin(forces, last, system.masses, self.temperature, 8, self.count, rng, settle=12, friction=0.03):
            self.add(snapshot)

    def mixed(self, contacts):
        """A cluster as placed, then along MMFF dynamics or, in one task of four, xTB dynamics or descent."""
        rng = self.rng
        placed = assemble(self.system, contacts, rng, self.kind == "dimer" and rng.random() < .6)
        self.add(placed)
        self.temperature = float(rng.uniform(200, 600))
        radius = np.sqrt((placed * placed).sum(-1)).max() + 0.5
        if not self.system.has_field():
            self.descend(placed, self.count - 1)
            return
        start = self.system.relax_with_field(placed, int(rng.integers(5, 40)))
        draw = rng.random()
        if draw < .3:
            for snapshot in self.cluster_md(start, self.count - 1, 60, radius):
                self.add(snapshot)
            return
        *_, last = self.cluster_md(start, 1, 60, radius)
        if draw < .6 or len(last) > 24:
            self.descend(last, self.count - 1)
            return
        for snapshot in langevin(self.xtb_forces, last, self.system.masses, self.temperature, 10, self.count - 1, rng, settle=20):
            self.add(snapshot)

    def solvated(self):
        self.mixed(self.rng.uniform(1.6, 2.6, len(self.system.sizes)))

    def dimer(self):
        near = self.rng.random() < .75
        self.mixed(self.rng.uniform(1.6, 2.8 if near else 5.0, len(self.system.sizes)))

    def scan(self):
        bond = DIATOMICS[self.name]
        for factor in self.rng.uniform(0.75, 1.7, self.count):
            self.add(np.array([[0, 0, 0], [0, 0, bond * factor]]), check=False)
