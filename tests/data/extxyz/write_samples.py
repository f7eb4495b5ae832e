# SPDX-License-Identifier: MIT
"""Writes the ase_*.xyz samples with ASE (3.29.0 was used): python write_samples.py"""
import numpy as np
from ase import Atoms
from ase.build import bulk, fcc111, molecule
from ase.calculators.singlepoint import SinglePointCalculator
from ase.io import write

water = molecule("H2O")
write("ase_molecule.xyz", water, format="extxyz")
write("ase_plain.xyz", water, format="xyz", comment="water, the molecule's free comment")

quartz = Atoms("Si2O", scaled_positions=[[0, 0, 0], [0.25, 0.5, 0.125], [0.7, 0.1, 0.9]],
               cell=[[4.9, 0.0, 0.0], [-2.45, 4.243524478543749, 0.0], [0.3, -0.2, 5.4]], pbc=True)
write("ase_triclinic.xyz", quartz, format="extxyz")

slab = fcc111("Pt", size=(1, 1, 3), vacuum=6.0)
slab.info["layers"] = 3
write("ase_slab_mixed_pbc.xyz", slab, format="extxyz")

silicon = bulk("Si")
silicon.positions[1] += [0.1, -0.05, 1 / 3]
silicon.calc = SinglePointCalculator(
    silicon, energy=-10.123456789012345, free_energy=-10.2,
    forces=np.array([[0.125, -0.25, 0.5], [-0.125, 0.25, -0.5]]),
    stress=np.array([0.01, 0.02, 0.03, 0.004, 0.005, 0.006]))
write("ase_forces.xyz", silicon, format="extxyz")

ion = molecule("OH")
ion.info.update(total_charge=-1, total_spin=1.0, charge=-1.0, spin=1, REF_energy=-2.5e-7, head="omol", is_ion=True)
ion.arrays["tags"] = np.array([3, -4])
ion.arrays["frozen"] = np.array([True, False])
ion.arrays["label"] = np.array(["O_a", "H_b"])
ion.arrays["charges"] = np.array([-0.8, -0.2])
write("ase_info.xyz", ion, format="extxyz")

texts = Atoms("He", positions=[[1, 2, 3]])
texts.info.update({
    "name": "a text with spaces", "quoted": 'he said "no"', "single": "it's", "brackets": "[a] {b}", "uid": "12e4",
    "vector": np.array([1.5, 2.0, -3.0]), "counts": np.array([1, 2, 3]), "flags": np.array([True, False]),
    "matrix": np.array([[1, 2, 3], [4, 5, 6]]), "reals": np.array([[0.5, 1e-30], [2.0, 1e300]]),
    "nested": {"a": [1, 2.5, None], "b": "x y"}, "words": ["one", "two words"], "nothing": None, "my key": 7,
    "equation": "a=b", "umlaut": "Größe"})
write("ase_texts.xyz", texts, format="extxyz")

frames = []
for index in range(3):
    atoms = molecule(["H2", "H2O", "CH4"][index])
    atoms.info["index"] = index
    frames.append(atoms)
write("ase_frames.xyz", frames, format="extxyz")
write("ase_empty.xyz", [Atoms(), Atoms("H", positions=[[0, 0, 0]])], format="extxyz")
