#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares `mlff phonons` with phonopy (pip install phonopy ase), for each structure with the same supercell and the same displacements.

Usage: against_phonopy.py MLFF MODEL SUPERCELL STRUCTURE.xyz...     (SUPERCELL: 2,2,2; structures at rest, as mlff relax --cell writes them)

phonopy makes the displacements, `mlff eval` computes the forces that phonopy gets, and `mlff phonons --read-phonopy` does the rest alone. Compared are the forces,
the frequencies along mlff's path, and the thermal properties on mlff's mesh. Then phonopy loads what `mlff phonons --write-phonopy` wrote for the same crystal with
displacements of its own.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import phonopy
from ase.io import read
from phonopy.physical_units import set_physical_units
from phonopy.structure.atoms import PhonopyAtoms

ZERO = 1e-3  # THz: modes up to this do not count in thermal properties


def mlff(program, *words):
    subprocess.run([program, *words], check=True, stdout=subprocess.DEVNULL)


def forces_of(program, model, cells, folder):
    frames = []
    for cell in cells:  # all digits, which ASE does not write
        lattice = " ".join(repr(float(value)) for value in cell.cell.ravel())
        frames += [str(len(cell)), f'Lattice="{lattice}" Properties=species:S:1:pos:R:3 pbc="T T T"']
        frames += [f"{symbol} {x!r} {y!r} {z!r}" for symbol, (x, y, z) in zip(cell.symbols, cell.positions.tolist())]
    (folder / "displaced.xyz").write_text("\n".join(frames) + "\n")
    mlff(program, "eval", str(folder / "displaced.xyz"), "--model", model, "--precision", "fp64", "--json", str(folder / "forces.json"))
    return np.array([frame["forces"] for frame in json.loads((folder / "forces.json").read_text())["frames"]])


def differences(ours, phonon):
    """Largest difference of frequencies in THz, and of thermal properties relative to the largest of each kind."""
    q = [point["q"] for point in ours["path"]]
    theirs = phonon.run_qpoints(q) or phonon.qpoints
    frequencies = np.abs(np.array([point["frequencies"] for point in ours["path"]]) - theirs.frequencies).max()
    phonon.run_mesh(ours["mesh"], is_gamma_center=True)
    thermal = ours["thermal"]
    phonon.run_thermal_properties(temperatures=[point["temperature"] for point in thermal], cutoff_frequency=ZERO)
    properties = phonon.thermal_properties
    relative = 0.0
    for name, values in (("free_energy", properties.free_energy), ("entropy", properties.entropy), ("heat_capacity", properties.heat_capacity)):
        found = np.array([point[name] for point in thermal])
        relative = max(relative, (np.abs(found - values) / np.abs(values).max()).max())
    return frequencies, relative


def compare(program, model, supercell, structure, folder):
    atoms = read(structure)
    cell = PhonopyAtoms(symbols=atoms.get_chemical_symbols(), cell=atoms.cell[:], positions=atoms.positions)
    phonon = phonopy.Phonopy(cell, supercell_matrix=supercell, primitive_matrix="auto")
    phonon.generate_displacements(distance=0.01)
    phonon.save(folder / "phonopy_disp.yaml", settings={"displacements": True})
    forces = forces_of(program, model, phonon.supercells_with_displacements, folder)
    phonon.forces = forces
    phonon.produce_force_constants()
    phonon.symmetrize_force_constants()
    mlff(program, "phonons", "--read-phonopy", str(folder / "phonopy_disp.yaml"), "--model", model, "--write-phonopy", str(folder), "--json", str(folder / "read.json"))
    ours = json.loads((folder / "read.json").read_text())
    written = phonopy.file_IO.parse_FORCE_SETS(filename=str(folder / "FORCE_SETS"))
    force = max(np.abs(a["forces"] - b).max() for a, b in zip(written["first_atoms"], forces))
    frequency, thermal = differences(ours, phonon)
    mlff(program, "phonons", structure, "--model", model, "--supercell", ",".join(map(str, supercell)), "--write-phonopy", str(folder / "own"), "--json", str(folder / "own.json"))
    own = json.loads((folder / "own.json").read_text())
    loaded = phonopy.load(folder / "own" / "phonopy_disp.yaml", force_sets_filename=folder / "own" / "FORCE_SETS", log_level=0)
    own_frequency, own_thermal = differences(own, loaded)
    highest = max(point["frequencies"][-1] for point in ours["path"])
    print(f"{pathlib.Path(structure).name:20s} {len(phonon.supercell):5d} atoms {len(forces):4d} displacements, mlff alone {len(own['displacements']):4d}; up to {highest:.3f} THz; "
          f"largest differences: force {force:.1e} eV/A, frequency {frequency:.1e} THz, thermal {thermal:.1e}; own displacements: {own_frequency:.1e} THz, {own_thermal:.1e}")


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    warnings.simplefilter("ignore")
    # Those of mlff, CODATA 2018: phonopy's own are from 1986 to 2006, and move thermal properties by 2e-6.
    set_physical_units(KB_J=1.380649e-23, PlanckConstant=4.135667696923859e-15, Avogadro=6.02214076e23, AMU=1.66053906660e-27, EV=1.602176634e-19)
    print(f"phonopy {phonopy.__version__}")
    for structure in sys.argv[4:]:
        with tempfile.TemporaryDirectory() as folder:
            compare(sys.argv[1], sys.argv[2], [int(n) for n in sys.argv[3].split(",")], structure, pathlib.Path(folder))


if __name__ == "__main__":
    main()
