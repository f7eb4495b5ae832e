# SPDX-License-Identifier: MIT
"""The calculator for ASE: its numbers, ASE's rules for caching, dynamics, relaxations. Usage: test_ase.py MLFF GOLDEN_DIR SYSTEMS_DIR"""
import copy
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import numpy as np
from ase import Atoms, units
from ase.build import bulk
from ase.calculators.calculator import PropertyNotImplementedError
from ase.calculators.fd import calculate_numerical_forces, calculate_numerical_stress
from ase.calculators.test import gradient_test
from ase.constraints import FixAtoms
from ase.filters import FrechetCellFilter
from ase.io import read, write
from ase.md.verlet import VelocityVerlet
from ase.optimize import BFGS

# ASE's vibrations import matplotlib for plots, which nothing here draws.
sys.modules.update({name: unittest.mock.MagicMock() for name in ("matplotlib", "matplotlib.axes", "matplotlib.pyplot")})
from ase.vibrations import Vibrations

import mlff
from mlff.ase import MLFFCalculator
from numbers_test import BENZENE, GOLDEN_DIR, MLFF, NumbersTest, TRUSTED, command_frames, water_box

EXACT = {"device": "cpu", "precision": "fp64", "exact_radial": True}


def benzene_atoms(calculator=None):
    atoms = read(BENZENE)
    atoms.calc = calculator
    return atoms


def water_atoms(calculator=None):
    numbers, positions, cell = water_box()
    return Atoms(numbers, positions, cell=cell, pbc=True, calculator=calculator)


class Values(NumbersTest):
    def test_the_numbers_of_the_command(self):
        with tempfile.TemporaryDirectory() as folder:
            for model in ("builtin", "analytic"):
                for atoms in (benzene_atoms(), water_atoms()):
                    path = os.path.join(folder, "atoms.xyz")
                    write(path, atoms, format="extxyz")
                    atoms = read(path)  # with the digits of the file
                    wanted, = command_frames(path, "--model", model, "--precision", "fp64")
                    atoms.calc = MLFFCalculator(model, device="cpu", precision="fp64")
                    self.assert_close(atoms.get_potential_energy(), wanted["energy"], 1e-10)
                    self.assert_close(atoms.get_potential_energy(force_consistent=True), wanted["energy"], 1e-10)
                    self.assert_close(atoms.get_forces(), wanted["forces"], 1e-10)
                    self.assert_close(atoms.get_potential_energies(), wanted["atom_energies"], 1e-10)
                    if atoms.pbc.any():
                        self.assert_close(atoms.get_stress(), wanted["stress"], 1e-12)

    def test_finite_differences_of_ase(self):
        for atoms in (benzene_atoms(MLFFCalculator(**EXACT)), water_atoms(MLFFCalculator(**EXACT)), water_atoms(MLFFCalculator("analytic", device="cpu"))):
            atoms.rattle(0.05, seed=3)
            chosen = [0, 5, 11]
            self.assert_close(atoms.get_forces()[chosen], calculate_numerical_forces(atoms, 1e-4, chosen), 1e-6, "forces")
            if atoms.pbc.any():
                self.assert_close(atoms.get_stress(voigt=False), calculate_numerical_stress(atoms, 1e-4, voigt=False), 1e-7, "stress")
        found, expected = gradient_test(benzene_atoms(MLFFCalculator(**EXACT)), [1, 7])
        self.assert_close(found, expected, 1e-4, "ASE's gradient test, whose last step is 1e-8 A")

    def test_hessians_and_vibrations_of_ase(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, atoms in (("benzene", benzene_atoms()), ("water", Atoms("OHH", [[0, 0, 0.119], [0, 0.763, -0.477], [0, -0.763, -0.477]]))):
                atoms.calc = MLFFCalculator("analytic", **EXACT)
                BFGS(atoms, logfile=None).run(fmax=1e-6)
                vibrations = Vibrations(atoms, name=os.path.join(folder, name), delta=2e-4)
                vibrations.run()
                data = vibrations.get_vibrations()
                hessian = atoms.calc.get_hessian(atoms)
                self.assert_close(hessian, data.get_hessian_2d(), 1e-5 * np.abs(hessian).max())
                wanted = [frequency.imag * -1 if frequency.imag else frequency.real for frequency in data.get_frequencies()]
                path = os.path.join(folder, name + ".xyz")
                write(path, atoms, format="extxyz")
                output = subprocess.run([MLFF, "vibrations", path, "--model", "analytic", "--exact-radial", "--no-relax", "--json", "-"],
                                        capture_output=True, text=True, check=True).stdout
                frame, = json.loads(output)["frames"]
                found = [mode["frequency"] for mode in frame["modes"]]
                rigid = sorted(wanted, key=abs)[:len(wanted) - len(found)]
                self.assertLess(max(map(abs, rigid)), 1)
                self.assert_close(found, sorted(set(wanted) - set(rigid)), 0.1)

    def test_a_sheared_crystal(self):
        atoms = bulk("Cu", cubic=True) * (2, 1, 1)
        atoms.set_cell(atoms.cell.array @ np.array([[1, 0.02, 0], [0, 0.99, 0.03], [0.01, 0, 1.02]]), scale_atoms=True)
        atoms.rattle(0.05, seed=5)
        atoms.calc = MLFFCalculator("analytic", device="cpu")
        self.assert_close(atoms.get_stress(voigt=False), calculate_numerical_stress(atoms, 1e-4, voigt=False), 1e-7, "stress")
        self.assert_close(atoms.get_stresses().sum(axis=0), atoms.get_stress(), 1e-12, "stresses of atoms")
        squeezed = atoms.copy()
        squeezed.set_cell(0.9 * squeezed.cell.array, scale_atoms=True)
        squeezed.calc = atoms.calc
        self.assertTrue((squeezed.get_stress()[:3] < 0).all(), "compressed: negative, as ASE has it")

    def test_stress_without_boundaries(self):
        atoms = benzene_atoms(MLFFCalculator(device="cpu"))
        for ask in (atoms.get_stress, atoms.get_stresses):
            with self.assertRaisesRegex(PropertyNotImplementedError, "three lattice vectors"):
                ask()
        with self.assertRaises(PropertyNotImplementedError):
            atoms.get_dipole_moment()
        energy = atoms.get_potential_energy()
        atoms.center(vacuum=6.0)  # a cell that repeats nowhere
        self.assert_close(atoms.get_potential_energy(), energy, 1e-4)
        atoms.calc.set(**EXACT)
        self.assert_close(atoms.get_stress(), calculate_numerical_stress(atoms, 1e-4), 1e-7)

    def test_charge_spin_and_head_from_info(self):
        with open(os.path.join(GOLDEN_DIR, "p08_omol_like_f32.json")) as file:
            system = next(entry for entry in json.load(file)["systems"] if entry["name"] == "trimer")  # charge 1, spin 2
        calculator = MLFFCalculator(os.path.join(GOLDEN_DIR, "p08_omol_like_f32.model"), **EXACT)
        atoms = Atoms(system["numbers"], system["positions"], calculator=calculator)
        neutral = atoms.get_potential_energy()
        wanted = system["outputs"]["float64"]["energy"]
        for names in (("total_charge", "total_spin"), ("charge", "spin")):
            atoms.info = dict(zip(names, (system["charge"], system["spin"])))
            self.assert_close(atoms.get_potential_energy(), wanted, 1e-9 * max(1, abs(wanted)))
            self.assertNotAlmostEqual(atoms.get_potential_energy(), neutral, places=6)
            atoms.info = {}
            self.assertEqual(atoms.get_potential_energy(), neutral, "a change of info is seen")
        atoms.info = {"charge": 1, "total_charge": 2}
        with self.assertRaisesRegex(mlff.StructureError, "both total_charge and charge"):
            atoms.get_potential_energy()
        atoms.info = {"charge": "one"}
        with self.assertRaisesRegex(mlff.ArgumentError, r"atoms.info\['charge'\] is 'one'"):
            atoms.get_potential_energy()

        path = os.path.join(GOLDEN_DIR, "p07_nonlinear_mh.model")
        heads = mlff.Model(path).heads
        several = MLFFCalculator(path, **EXACT)
        atoms = benzene_atoms(several)
        atoms.numbers[:] = mlff.Model(path).elements[0]
        energies = []
        for head in heads:
            atoms.info["head"] = head
            energies.append(atoms.get_potential_energy())
            self.assert_close(energies[-1], MLFFCalculator(path, head=head, **EXACT).get_potential_energy(atoms), 1e-10)
        self.assertNotAlmostEqual(energies[0], energies[1], places=6)
        images = [atoms.copy() for _ in range(3)]
        for image, head in zip(images, (heads[1], heads[0], heads[1])):
            image.info["head"] = head
        self.assert_close([found["energy"] for found in several.evaluate_many(images)], [energies[1], energies[0], energies[1]], 1e-9)
        one_head = benzene_atoms(MLFFCalculator(**EXACT))
        expected = one_head.get_potential_energy()
        one_head.info["head"] = heads[0]
        self.assertEqual(one_head.get_potential_energy(), expected, "the head of another model")
        del atoms.info["head"]
        with self.assertRaisesRegex(mlff.ArgumentError, "several heads"):
            atoms.get_potential_energy()

    def test_committees(self):
        atoms = benzene_atoms(MLFFCalculator("builtin,self-test", device="cpu", precision="fp64"))
        forces = atoms.get_forces()
        sigmas = atoms.calc.get_property("sigma_forces", atoms)
        parts = [benzene_atoms(MLFFCalculator(name, device="cpu", precision="fp64")).get_forces() for name in ("builtin", "self-test")]
        self.assert_close(forces, (parts[0] + parts[1]) / 2, 1e-9)
        self.assert_close(sigmas, np.linalg.norm(parts[0] - parts[1], axis=1) / 2, 1e-9)
        self.assertEqual(atoms.calc.results["sigma_max_force"], sigmas.max())
        self.assertGreater(atoms.calc.results["sigma_energy_per_atom"], 0)
        found, = atoms.calc.evaluate_many([atoms])
        self.assert_close(found["sigma_forces"], sigmas, 1e-12)
        self.assert_close(atoms.get_properties(["forces"])["forces"], forces, 0)  # ASE does not know the spread
        single = benzene_atoms(MLFFCalculator(device="cpu"))
        single.get_forces()
        self.assertNotIn("sigma_forces", single.calc.results)
        with self.assertRaisesRegex(PropertyNotImplementedError, "needs a committee"):
            single.calc.get_property("sigma_forces", single)

    def test_trust_meters(self):
        atoms = water_atoms(MLFFCalculator(TRUSTED, device="cpu", precision="fp64"))
        forces = atoms.get_forces()
        errors = atoms.calc.get_property("expected_errors", atoms)
        expected = mlff.evaluate(*water_box(), model=TRUSTED, device="cpu", precision="fp64")
        self.assert_close(errors, expected.expected_errors, 1e-9)
        self.assert_close(atoms.calc.results["novelties"], expected.novelties, 1e-6)
        found, = atoms.calc.evaluate_many([atoms])
        self.assert_close(found["expected_errors"], errors, 1e-9)
        self.assert_close(atoms.get_properties(["forces"])["forces"], forces, 0)  # ASE does not know what a meter says
        without = benzene_atoms(MLFFCalculator("self-test", device="cpu"))
        without.get_forces()
        self.assertNotIn("expected_errors", without.calc.results)
        with self.assertRaisesRegex(PropertyNotImplementedError, "needs a trust meter"):
            without.calc.get_property("novelties", without)

    def test_batches(self):
        images = [benzene_atoms(), water_atoms(), Atoms("H"), benzene_atoms()]
        images[3].rattle(0.05)
        calculator = MLFFCalculator(device="cpu", precision="fp64")
        for image, found in zip(images, calculator.evaluate_many(images, ["energy", "forces", "stress", "stresses"])):
            image.calc = MLFFCalculator(device="cpu", precision="fp64")
            self.assert_close(found["energy"], image.get_potential_energy(), 1e-10)
            self.assert_close(found["forces"], image.get_forces(), 1e-10)
            self.assert_close(found["energies"], image.get_potential_energies(), 1e-10)
            self.assertEqual("stress" in found, image.cell.rank == 3)
            if image.cell.rank == 3:
                self.assert_close(found["stress"], image.get_stress(), 1e-12)
                self.assert_close(found["stresses"], image.get_stresses(), 1e-12)


class Rules(NumbersTest):
    def test_nothing_is_computed_twice(self):
        calculator = MLFFCalculator(device="cpu")
        atoms = water_atoms(calculator)
        count = lambda: calculator.session.info["evaluation_count"]
        atoms.get_potential_energy(), atoms.get_forces(), atoms.get_stress(), atoms.get_potential_energies()
        self.assertEqual(count(), 1)
        self.assertFalse(calculator.calculation_required(atoms, ["energy", "forces", "stress"]))
        atoms.arrays["initial_charges"] = np.ones(len(atoms))  # no input of the model
        atoms.get_forces()
        self.assertEqual(count(), 1)
        atoms.get_stresses()
        atoms.get_stresses()
        self.assertEqual(count(), 2)
        changes = (lambda: atoms.positions.__setitem__((3, 0), atoms.positions[3, 0] + 1e-9), lambda: atoms.set_cell(1.001 * atoms.cell.array),
                   lambda: atoms.set_pbc((True, True, False)), lambda: atoms.numbers.__setitem__(0, 16), lambda: atoms.pop(0))
        for number, change in enumerate(changes):
            change()
            self.assertTrue(calculator.calculation_required(atoms, ["energy"]))
            atoms.get_forces(), atoms.get_potential_energy()
            self.assertEqual(count(), 3 + number)
        forces = atoms.get_forces()
        forces[:] = 0
        self.assertGreater(np.abs(atoms.get_forces()).max(), 0, "results are no memory of the caller")
        energy = atoms.get_potential_energy()
        calculator.set(precision="fp64")
        self.assertNotEqual(atoms.get_potential_energy(), energy, "other parameters, other session")
        self.assert_close(atoms.get_potential_energy(), energy, 1e-3)

    def test_a_caller_that_says_nothing_changed_is_not_believed(self):
        calculator = MLFFCalculator("analytic", device="cpu")
        calculator.get_potential_energy(benzene_atoms())
        other = benzene_atoms()
        other.numbers[:] = 8
        calculator.calculate(other, ["energy"], [])
        self.assertEqual(calculator.results["energy"], MLFFCalculator("analytic", device="cpu").get_potential_energy(other))
        with self.assertRaisesRegex(mlff.ArgumentError, "no atoms"):
            MLFFCalculator("analytic").calculate()

    def test_an_error_leaves_no_result(self):
        atoms = benzene_atoms(MLFFCalculator(device="cpu"))
        energy = atoms.get_potential_energy()
        good = atoms.positions.copy()
        atoms.positions[2, 1] = np.nan
        for _ in range(2):
            with self.assertRaisesRegex(mlff.StructureError, "position of atom 2 is not finite"):
                atoms.get_potential_energy()
        atoms.positions = good
        self.assertEqual(atoms.get_potential_energy(), energy)
        atoms.numbers[0] = 92
        with self.assertRaisesRegex(mlff.StructureError, "atom 0 is U"):
            atoms.get_forces()
        with self.assertRaisesRegex(mlff.FileError, "nowhere.model"):
            MLFFCalculator("nowhere.model")
        with self.assertRaisesRegex(TypeError, "no parameter 'kpts'; the parameters are model, device"):
            MLFFCalculator(kpts=3)

    def test_copies_and_files(self):
        atoms = benzene_atoms(MLFFCalculator(mlff.Model("builtin"), device="cpu", precision="fp64"))
        energy, forces = atoms.get_potential_energy(), atoms.get_forces()
        self.assertEqual(atoms.calc.todict(), {"device": "cpu", "precision": "fp64"})
        for calculator in (copy.deepcopy(atoms.calc), pickle.loads(pickle.dumps(atoms.calc))):
            other = benzene_atoms(calculator)
            other.positions[0] += 0.01
            self.assertNotEqual(other.get_potential_energy(), energy)
            other.positions[:] = atoms.positions
            self.assertEqual(other.get_potential_energy(), energy)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "one.traj")
            write(path, atoms)
            again = read(path)
        self.assertEqual(again.get_potential_energy(), energy)
        self.assert_close(again.get_forces(), forces, 0.0)

    def test_a_forked_process_gets_its_own_session(self):
        atoms = benzene_atoms(MLFFCalculator(device="cpu"))
        energy = atoms.get_potential_energy()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                atoms.positions += 1e-3
                code = 0 if abs(atoms.get_potential_energy() - energy) < 1e-3 else 2
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_the_calculator_takes_little_time(self):
        """Beyond the session's own call, 100 atoms, new positions: 0.1 ms of this thread's time where the machine does nothing else, and more where threads share a core."""
        places = np.array(list(np.ndindex(5, 5, 4))) * 4.0
        atoms = Atoms("Ar100", places, cell=[20, 20, 16], pbc=True)
        atoms.rattle(0.1, seed=1)
        options = {"device": "cpu", "threads": 1, "skin": 1.0}
        session, calculator = mlff.Session("analytic", **options), MLFFCalculator("analytic", **options)
        numbers, cell = atoms.numbers.astype(np.int32), atoms.cell.array

        def session_call():
            session.evaluate(numbers, atoms.positions, cell, stress=False, virial=True, atom_energies=True)

        def calculator_call():
            calculator.get_forces(atoms)

        least = {}
        for _ in range(8):
            for call in (session_call, calculator_call):
                begin = time.thread_time()
                for _ in range(100):
                    atoms.positions[0, 0] += 1e-6
                    call()
                spent = (time.thread_time() - begin) / 100
                least[call] = min(spent, least.get(call, spent))
        overhead = least[calculator_call] - least[session_call]
        print(f"overhead of the calculator: {1e6 * overhead:.0f} us")
        self.assertLess(overhead, 0.5e-3)


class Motion(NumbersTest):
    def test_energy_is_conserved(self):
        """Benzene at about 300 K: the total energy fluctuates as the square of the time step and does not run away."""
        relaxed = benzene_atoms(MLFFCalculator(device="cpu"))
        BFGS(relaxed, logfile=None).run(fmax=0.01, steps=100)
        masses = relaxed.get_masses()[:, None]
        relaxed.set_momenta(np.random.default_rng(1).normal(size=(12, 3)) * np.sqrt(masses * 600 * units.kB))
        spreads = []
        for step, count in ((0.5, 300), (0.25, 600)):
            atoms = relaxed.copy()
            atoms.calc = MLFFCalculator(device="cpu")
            energies = []
            dynamics = VelocityVerlet(atoms, timestep=step * units.fs)
            dynamics.attach(lambda: energies.append(atoms.get_total_energy()))
            dynamics.run(count)
            info = atoms.calc.session.info
            self.assertLess(info["neighbor_build_count"], info["evaluation_count"] / 10, "neighbours are reused")
            energies = np.array(energies[20:])
            self.assertLess(np.abs(energies - energies.mean()).max() / len(atoms), 2e-3, "eV/atom")
            spreads.append(energies.std())
        self.assertTrue(0.15 < spreads[1] / spreads[0] < 0.4, spreads)

    def test_a_molecule_relaxes(self):
        atoms = benzene_atoms(MLFFCalculator(device="cpu"))
        atoms.rattle(0.05, seed=2)
        atoms.set_constraint(FixAtoms([0]))
        kept, before = atoms.positions[0].copy(), atoms.get_potential_energy()
        self.assertTrue(BFGS(atoms, logfile=None).run(fmax=0.01, steps=200))
        self.assertLess(np.abs(atoms.get_forces()).max(), 0.01)
        self.assertLess(atoms.get_potential_energy(), before)
        self.assert_close(atoms.positions[0], kept, 0.0)
        self.assert_close([atoms.get_distance(0, 1), atoms.get_distance(0, 6)], [1.39, 1.08], 0.02)

    def test_a_crystal_relaxes_with_its_cell(self):
        atoms = bulk("Cu", "fcc", a=3.9, cubic=True)
        atoms.set_cell(atoms.cell.array @ np.array([[1, 0.03, 0], [0, 1.02, 0], [0, 0, 0.97]]), scale_atoms=True)
        atoms.rattle(0.03, seed=4)
        atoms.calc = MLFFCalculator("analytic", device="cpu")
        before = atoms.get_potential_energy()
        self.assertTrue(BFGS(FrechetCellFilter(atoms), logfile=None).run(fmax=1e-4, steps=300))
        self.assertLess(np.abs(atoms.get_stress()).max(), 1e-5)
        self.assertLess(np.abs(atoms.get_forces()).max(), 1e-4)
        self.assertLess(atoms.get_potential_energy(), before)
        energy = atoms.get_potential_energy()
        for scale in (0.99, 1.01):
            other = atoms.copy()
            other.set_cell(scale * other.cell.array, scale_atoms=True)
            other.calc = atoms.calc
            self.assertGreater(other.get_potential_energy(), energy, "the bottom of the well")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
