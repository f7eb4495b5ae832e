#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks measurements/kappa/run.py: the same conductivity with forces of one displaced cell at a time, through an ASE calculator. Needs phono3py and ase.

  python measurements/kappa/one_by_one.py MLFF MODEL STRUCTURE [--mesh N] ... --json OUT    (options of run.py)

Displaced cells are made here from phono3py's list of displacements, as ASE atoms, and each is one call of `mlff eval` with a text of its own.
Give --smearing: with tetrahedra, phono3py's answer depends on its choice of eigenvectors of equal frequency, which rounding errors of forces change.
"""
import json
import subprocess
import sys
import warnings

import run
import numpy as np
from ase import Atoms
from ase.calculators.calculator import Calculator, all_changes
from ase.io import read


class OneCell(Calculator):
    implemented_properties = ["forces"]

    def __init__(self, arguments):
        super().__init__()
        self.command = [arguments.program, "eval", "-", "--model", arguments.model, "--precision", "fp64", "--threads", "1", "--json", "-", *arguments.mlff_options]

    def calculate(self, atoms=None, properties=("forces",), system_changes=all_changes):
        super().calculate(atoms, properties, system_changes)
        lattice = " ".join(f"{value:.17g}" for value in atoms.cell.array.ravel())
        rows = [f"{symbol} {x:.17g} {y:.17g} {z:.17g}" for symbol, (x, y, z) in zip(atoms.get_chemical_symbols(), atoms.get_positions())]
        text = f"{len(atoms)}\nLattice=\"{lattice}\" Properties=species:S:1:pos:R:3 pbc=\"T T T\"\n" + "\n".join(rows) + "\n"
        answer = subprocess.run(self.command, input=text, check=True, capture_output=True, text=True).stdout
        self.results = {"forces": np.array(json.loads(answer)["frames"][0]["forces"])}


def displaced_cells(dataset, supercell):
    """Cells with one displaced atom, then, for each of these, with a second one, which is phono3py's order."""
    rest = Atoms(supercell.symbols, cell=supercell.cell, positions=supercell.positions, pbc=True)

    def moved(*displacements):
        atoms = rest.copy()
        for entry in displacements:
            atoms.positions[entry["number"]] += entry["displacement"]
        return atoms

    firsts = dataset["first_atoms"]
    return [moved(first) for first in firsts] + [moved(first, second) for first in firsts for second in first.get("second_atoms", [])]


def main():
    arguments = run.options().parse_args()
    warnings.simplefilter("ignore")
    mlff, calculator = run.Mlff(arguments.program, arguments.model, arguments.mlff_options), OneCell(arguments)
    atoms = read(arguments.structures[0])
    if arguments.relax:
        atoms, _ = run.relaxed(mlff, atoms)
    answers, forces = [], []
    for is_batch in (True, False):
        third = run.prepared(atoms, arguments.supercell, arguments.phonon_supercell, arguments.mesh, arguments.step, arguments.smearing)
        if is_batch:
            third.phonon_forces, third.forces = mlff.forces(third.phonon_supercells_with_displacements), mlff.forces(third.supercells_with_displacements)
        else:
            third.phonon_forces, third.forces = (np.array([calculator.get_forces(cell) for cell in displaced_cells(dataset, supercell)])
                                                 for dataset, supercell in ((third.phonon_dataset, third.phonon_supercell), (third.dataset, third.supercell)))
        third.produce_fc2(symmetrize_fc2=True)
        forces.append((third.phonon_forces.copy(), third.forces.copy()))
        answers.append(run.conductivity(third, arguments.temperatures)["kappa"][0])
    force = max(np.abs(a - b).max() for a, b in zip(*forces))
    relative = abs(answers[0] - answers[1]) / answers[1]
    print(f"{arguments.structures[0]}: in batches {answers[0]:.9f} W/(m K), one by one {answers[1]:.9f} W/(m K), relative difference {relative:.1e}; "
          f"largest difference of a force {force:.1e} eV/A, of {len(forces[0][1])} + {len(forces[0][0])} cells")
    if arguments.json:
        run.write_whole(arguments.json, json.dumps({"batches": answers[0], "one_by_one": answers[1], "relative": relative, "largest_force_difference": float(force)}) + "\n")
    return 0 if relative <= 1e-6 else 1


if __name__ == "__main__":
    sys.exit(main())
