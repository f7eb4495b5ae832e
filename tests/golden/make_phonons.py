#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes tests/golden/phonons.json: what phonopy says of three crystals of the model `analytic`. Needs `pip install phonopy ase` and a built mlff.

Usage: make_phonons.py MLFF

mlff relaxes the crystals and computes the forces of the displaced supercells that phonopy makes, in fp64; all else is phonopy's. Stored are phonopy's own file of the
displacements, frequencies on lines between wave vectors, and thermal properties on a mesh.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import phonopy
from ase.build import bulk
from ase.io import read, write
from ase.spacegroup import crystal
from phonopy.physical_units import set_physical_units
from phonopy.structure.atoms import PhonopyAtoms

LINES = [((0, 0, 0), (0.5, 0, 0.5)), ((0.1, 0.2, 0.3), (0.5, 0.4, -0.25))]
LINE_POINTS, MESH, TEMPERATURES = 5, [4, 3, 5], [100.0, 300.0, 1000.0]
ZERO = 1e-3  # THz: modes up to this do not count in thermal properties


def triclinic():
    atoms = bulk("Si", "diamond", a=5.45)
    atoms.set_cell(atoms.cell[:] @ np.array([[1, 0.03, 0.01], [0, 1.02, 0.015], [0, 0, 0.98]]), scale_atoms=True)
    atoms.positions[1] += [0.05, -0.03, 0.02]
    return atoms


CRYSTALS = {  # with the supercell, and whether the cell is relaxed
    "rocksalt": (bulk("NaCl", "rocksalt", a=5.3, cubic=True), [1, 1, 1], True),
    "rutile": (crystal(["Ti", "O"], [(0, 0, 0), (0.305, 0.305, 0)], spacegroup=136, cellpar=[4.6, 4.6, 2.96, 90, 90, 90]), [1, 1, 2], True),
    "triclinic": (triclinic(), [2, 1, 2], False),
}


def mlff(program, *words):
    subprocess.run([program, *words, "--model", "analytic"], check=True, stdout=subprocess.DEVNULL)


def golden_of(program, atoms, supercell, with_cell, folder):
    write(folder / "start.xyz", atoms)
    options = ["--cell", "--smax", "1e-7"] if with_cell else []
    mlff(program, "relax", str(folder / "start.xyz"), "--fmax", "1e-6", "--steps", "5000", *options, "--output", str(folder / "rest.xyz"))
    rest = read(folder / "rest.xyz")
    cell = PhonopyAtoms(symbols=rest.get_chemical_symbols(), cell=rest.cell[:], positions=rest.positions)
    phonon = phonopy.Phonopy(cell, supercell_matrix=supercell, primitive_matrix="auto")
    phonon.generate_displacements(distance=0.01)
    frames = []
    for displaced in phonon.supercells_with_displacements:  # all digits, which ASE does not write
        lattice = " ".join(repr(float(value)) for value in displaced.cell.ravel())
        frames += [str(len(displaced)), f'Lattice="{lattice}" Properties=species:S:1:pos:R:3 pbc="T T T"']
        frames += [f"{symbol} {x!r} {y!r} {z!r}" for symbol, (x, y, z) in zip(displaced.symbols, displaced.positions.tolist())]
    (folder / "displaced.xyz").write_text("\n".join(frames) + "\n")
    mlff(program, "eval", str(folder / "displaced.xyz"), "--json", str(folder / "forces.json"))
    phonon.forces = [frame["forces"] for frame in json.loads((folder / "forces.json").read_text())["frames"]]
    phonon.produce_force_constants()
    phonon.symmetrize_force_constants()
    phonon.save(folder / "disp.yaml", settings={"displacements": True, "force_sets": False, "force_constants": False})
    parts = np.linspace(0, 1, LINE_POINTS)[:, None]
    wave_vectors = np.vstack([np.array(a) + parts * (np.array(b) - np.array(a)) for a, b in LINES])
    phonon.run_qpoints(wave_vectors)
    phonon.run_mesh(MESH, is_gamma_center=True)
    phonon.run_thermal_properties(temperatures=TEMPERATURES, cutoff_frequency=ZERO)
    thermal = phonon.thermal_properties
    return {"phonopy_disp.yaml": (folder / "disp.yaml").read_text(), "frequencies": phonon.qpoints.frequencies.tolist(),
            "free_energy": thermal.free_energy.tolist(), "entropy": thermal.entropy.tolist(), "heat_capacity": thermal.heat_capacity.tolist()}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    warnings.simplefilter("ignore")
    # Those of mlff, CODATA 2018.
    set_physical_units(KB_J=1.380649e-23, PlanckConstant=4.135667696923859e-15, Avogadro=6.02214076e23, AMU=1.66053906660e-27, EV=1.602176634e-19)
    golden = {"made_by": f"tests/golden/make_phonons.py, phonopy {phonopy.__version__}", "lines": LINES, "line_points": LINE_POINTS, "mesh": MESH,
              "temperatures": TEMPERATURES, "crystals": {}}
    for name, (atoms, supercell, with_cell) in CRYSTALS.items():
        with tempfile.TemporaryDirectory() as folder:
            golden["crystals"][name] = golden_of(sys.argv[1], atoms, supercell, with_cell, pathlib.Path(folder))
        frequencies = np.array(golden["crystals"][name]["frequencies"])
        print(name, "frequencies from", frequencies.min(), "to", frequencies.max(), "THz")
    (pathlib.Path(__file__).parent / "phonons.json").write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
