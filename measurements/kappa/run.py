#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lattice thermal conductivity of crystals with the forces of `mlff eval`: the workflow of the kappa_SRME benchmark. See docs/thermal-conductivity.md.

Needs phono3py and ase (pip install phono3py ase).

  python measurements/kappa/run.py MLFF MODEL STRUCTURE... --json OUT
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import metrics

SYMMETRY_TOLERANCE = 1e-5  # A
PUBLISHED = pathlib.Path(__file__).resolve().parent / "published.json"


class Mlff:
    """The command, with a model."""

    def __init__(self, program, model, options):
        self.program, self.model, self.options = program, model, options

    def run(self, command, *words):
        done = subprocess.run([self.program, command, *map(str, words), "--model", self.model, "--precision", "fp64", *self.options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise RuntimeError(f"mlff {command} failed: {done.stderr.strip()}")

    def forces(self, cells):
        """Forces of cells that have the same atoms, of all in one call."""
        import numpy as np
        with tempfile.TemporaryDirectory() as folder:
            source, target = pathlib.Path(folder, "displaced.xyz"), pathlib.Path(folder, "forces.json")
            source.write_text("".join(metrics.frame(cell.cell, cell.symbols, cell.positions) for cell in cells))
            self.run("eval", source, "--json", target)
            return np.array(metrics.forces_of_frames(json.loads(target.read_text()), len(cells[0]), len(cells)))


def space_group(atoms):
    import spglib
    found = spglib.get_symmetry_dataset((atoms.cell[:], atoms.get_scaled_positions(), atoms.numbers), symprec=SYMMETRY_TOLERANCE)
    return found.number if found else 1


def symmetrised(atoms, original):
    """atoms with the symmetry of original imposed on cell and positions; both have the same atoms in the same order."""
    import numpy as np
    import spglib
    operations = spglib.get_symmetry((original.cell[:], original.get_scaled_positions(), original.numbers), symprec=SYMMETRY_TOLERANCE)
    before, after = original.get_scaled_positions(wrap=False), atoms.get_scaled_positions(wrap=False)
    metric, positions = np.zeros((3, 3)), np.zeros_like(after)
    for rotation, translation in zip(operations["rotations"], operations["translations"]):
        metric += rotation.T @ (atoms.cell @ atoms.cell.T) @ rotation
        for index, image in enumerate(before @ rotation.T + translation):
            distance = before - image
            target = np.argmin(np.abs((distance - np.round(distance)) @ original.cell).sum(axis=1))
            moved = rotation @ after[index] + translation
            positions[target] += moved - np.round(moved - after[target])
    metric, positions = metric / len(operations["rotations"]), positions / len(operations["rotations"])
    inverse = np.linalg.inv(atoms.cell[:])
    values, vectors = np.linalg.eigh(inverse @ metric @ inverse.T)
    result = atoms.copy()
    result.set_cell(atoms.cell[:] @ (vectors * np.sqrt(values)) @ vectors.T)
    result.set_scaled_positions(positions)
    return result


def relaxed(mlff, atoms):
    """atoms at the energy minimum of cells and positions that have their symmetry, and the largest force that is left."""
    import numpy as np
    from ase.io import read
    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder, "before.xyz"), pathlib.Path(folder, "after.xyz")
        source.write_text(metrics.frame(atoms.cell, atoms.symbols, atoms.positions))
        mlff.run("relax", source, "--cell", "--fmax", "1e-4", "--smax", "1e-6", "--output", target)
        result = symmetrised(read(target, format="extxyz"), atoms)
    result.calc = None
    return result, float(np.abs(mlff.forces([result])).max())


def prepared(atoms, supercell, phonon_supercell, mesh, step, smearing=None):
    from phono3py import Phono3py
    from phonopy.structure.atoms import PhonopyAtoms
    cell = PhonopyAtoms(symbols=atoms.get_chemical_symbols(), cell=atoms.cell[:], positions=atoms.positions)
    third = Phono3py(cell, supercell_matrix=supercell, phonon_supercell_matrix=phonon_supercell, primitive_matrix="auto", symprec=SYMMETRY_TOLERANCE)
    third.mesh_numbers = mesh
    third.sigmas = [smearing]  # none: tetrahedra
    third.generate_displacements(distance=step)
    return third


def frequencies_are_real(third):
    import numpy as np
    third.produce_fc2(symmetrize_fc2=True)
    third.init_phph_interaction(symmetrize_fc3q=False)
    third.run_phonon_solver()
    frequencies, _, addresses = third.get_phonon_data()
    is_gamma = [not np.any(np.mod(address, third.mesh_numbers)) for address in addresses]
    return not metrics.has_imaginary_modes(frequencies.tolist(), is_gamma), frequencies


def conductivity(third, temperatures):
    """Conductivities in W/(m K) at all temperatures, and modes at the first of them."""
    import numpy as np
    third.produce_fc3(symmetrize_fc3r=True)
    third.init_phph_interaction(symmetrize_fc3q=False)
    third.run_thermal_conductivity(temperatures=temperatures, is_isotope=True, transport_type="SMM19", boundary_mfp=1e6)
    found = third.thermal_conductivity
    matrix = np.asarray(found.mode_kappa_matrix)[0, 0, ..., :3].mean(axis=-1)  # at the first temperature: wave vector, band, band
    capacities = np.asarray(found.mode_heat_capacities)[0]
    modes = [metrics.share_of_modes(pairs.tolist(), values.tolist()) for pairs, values in zip(matrix, capacities)]
    total, particles = np.asarray(found.kappa)[0], np.asarray(found.kappa_intra)[0]
    return {
        "temperatures": list(temperatures),
        "kappa_tensor": total.tolist(),
        "kappa": [metrics.average(row) for row in total.tolist()],
        "kappa_relaxation_time": [metrics.average(row) for row in particles.tolist()],
        "kappa_coherences": [metrics.average(row) for row in (total - particles).tolist()],
        "modes": {"weights": [int(weight) for weight in found.grid_weights], "modes": modes},
    }


def measure(mlff, path, arguments):
    from ase.io import read
    start = time.perf_counter()
    atoms = read(path)
    if not all(atoms.pbc):
        raise RuntimeError(f"{path} is not periodic in all directions, which a conductivity needs")
    result = {"structure": pathlib.Path(path).name, "formula": atoms.get_chemical_formula(mode="metal", empirical=True), "space_group": space_group(atoms)}
    left = None
    if arguments.relax:
        atoms, left = relaxed(mlff, atoms)
    result.update(cell=atoms.cell[:].tolist(), largest_force_at_rest=left, relaxed_space_group=space_group(atoms), conductivity=None, problem=None)
    if result["relaxed_space_group"] != result["space_group"]:
        result["problem"] = f"the space group changed from {result['space_group']} to {result['relaxed_space_group']}"
        return result
    third = prepared(atoms, arguments.supercell, arguments.phonon_supercell, arguments.mesh, arguments.step, arguments.smearing)
    result.update(supercell_atoms=len(third.supercell), displaced=len(third.supercells_with_displacements),
                  phonon_supercell_atoms=len(third.phonon_supercell), phonon_displaced=len(third.phonon_supercells_with_displacements))
    before_forces = time.perf_counter()
    third.phonon_forces = mlff.forces(third.phonon_supercells_with_displacements)
    is_real, frequencies = frequencies_are_real(third)
    result.update(highest_frequency=float(frequencies.max()), lowest_frequency=float(frequencies.min()))
    if not is_real:
        result["problem"] = f"imaginary modes, the lowest at {frequencies.min():.3f} THz"
        return result
    third.forces = mlff.forces(third.supercells_with_displacements)
    after_forces = time.perf_counter()
    result["conductivity"] = conductivity(third, arguments.temperatures)
    result["seconds"] = {"prepare": before_forces - start, "forces": after_forces - before_forces, "phono3py": time.perf_counter() - after_forces}
    return result


def add_errors(result, references):
    """SRE, and SRME if the modes of the reference are known, at the first temperature."""
    reference = references.get((result["formula"], result["space_group"]))
    result["reference"] = None if reference is None else {name: value for name, value in reference.items() if name != "modes"}
    if reference is None:
        return
    ours = result["conductivity"]
    result["sre"] = metrics.sre(ours["kappa"][0] if ours else None, reference["kappa"])
    if reference.get("modes"):
        result["srme"] = metrics.srme(ours["modes"] if ours else None, reference["modes"])


def read_references(path):
    """References by formula and space group: published.json, or what this script wrote with other forces."""
    content = json.loads(pathlib.Path(path).read_text())
    if "rows" in content:
        return {(row["formula"], row["space_group"]): {"kappa": row["dft"], "source": content["sources"]["dft"]} for row in content["rows"]}
    return {(item["formula"], item["space_group"]): {"kappa": item["conductivity"]["kappa"][0], "modes": item["conductivity"]["modes"], "source": pathlib.Path(path).name}
            for item in content["structures"] if item["conductivity"]}


def line(result):
    if result["problem"]:
        return f"{result['structure']:20s} {result['formula']:8s} {result['problem']}"
    ours, seconds = result["conductivity"], result["seconds"]
    errors = "".join(f"  {name.upper()} {result[name]:.4f}" for name in ("sre", "srme") if name in result)
    reference = f"  reference {result['reference']['kappa']:.4f}" if result["reference"] else ""
    return (f"{result['structure']:20s} {result['formula']:8s} {result['displaced']:5d} x {result['supercell_atoms']} and {result['phonon_displaced']} x {result['phonon_supercell_atoms']} atoms  "
            f"{ours['temperatures'][0]:g} K: {ours['kappa'][0]:.4f} W/(m K), of which coherences {ours['kappa_coherences'][0]:.4f}{reference}{errors}  "
            f"(relaxation and displacements {seconds['prepare']:.1f} s, forces {seconds['forces']:.1f} s, phono3py {seconds['phono3py']:.1f} s)")


def write_whole(path, text):
    part = pathlib.Path(f"{path}.part")
    part.write_text(text)
    os.replace(part, path)


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="MLFF", help="the mlff command")
    parser.add_argument("model", metavar="MODEL", help="what mlff takes as --model")
    parser.add_argument("structures", metavar="STRUCTURE", nargs="+", help="crystals, anything that ASE reads; conventional cells, because supercells count them")
    parser.add_argument("--supercell", type=metrics.three_counts, default=[2, 2, 2], metavar="N", help="for third-order force constants, 2 or 3,3,2 (default: 2)")
    parser.add_argument("--phonon-supercell", type=metrics.three_counts, default=[4, 4, 4], metavar="N", help="for second-order ones (default: 4)")
    parser.add_argument("--mesh", type=metrics.three_counts, default=[19, 19, 19], metavar="N", help="wave vectors (default: 19)")
    parser.add_argument("--step", type=float, default=0.03, metavar="A", help="length of displacements in A (default: 0.03)")
    parser.add_argument("--smearing", type=float, metavar="THZ", help="Gaussians of this width in THz instead of tetrahedra, for conservation of energy")
    parser.add_argument("--temperatures", type=metrics.temperatures, default=[300.0], metavar="K", help="the first one is that of errors (default: 300)")
    parser.add_argument("--reference", default=str(PUBLISHED), metavar="FILE", help="published.json, or an OUT of this script, whose modes give the SRME")
    parser.add_argument("--no-relax", dest="relax", action="store_false", help="take the structures as they are")
    parser.add_argument("--mlff-options", type=str.split, default=[], metavar="WORDS", help="more options of mlff in one word, such as '--device cuda'")
    parser.add_argument("--json", metavar="OUT", help="write everything as JSON to OUT, after each structure")
    return parser


def main():
    arguments = options().parse_args()
    warnings.simplefilter("ignore")
    import phono3py
    mlff, references = Mlff(arguments.program, arguments.model, arguments.mlff_options), read_references(arguments.reference)
    settings = {name: getattr(arguments, name) for name in ("supercell", "phonon_supercell", "mesh", "step", "smearing", "temperatures", "relax")}
    content = {"model": pathlib.Path(arguments.model).name, "phono3py": phono3py.__version__, "settings": settings, "structures": []}
    for path in arguments.structures:
        result = measure(mlff, path, arguments)
        add_errors(result, references)
        print(line(result), flush=True)
        content["structures"].append(result)
        if arguments.json:
            write_whole(arguments.json, json.dumps(content) + "\n")
    return 1 if any(result["problem"] for result in content["structures"]) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, ValueError, OSError) as error:
        sys.exit(f"run.py: {error}")
