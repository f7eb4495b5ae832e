# SPDX-License-Identifier: MIT
"""The Python package: numbers, arrays, errors, threads, memory. Usage: test_package.py MLFF GOLDEN_DIR SYSTEMS_DIR [README]"""
import copy
import gc
import json
import logging
import math
import os
import pickle
import re
import resource
import subprocess
import sys
import threading
import unittest

import numpy as np

import mlff
from numbers_test import BENZENE, GOLDEN_DIR, MLFF, NumbersTest, TRUSTED, TheCheckItself, benzene, command_frames, water_box, what_the_meter_says

README = sys.argv[4]
ALL = {"stress": None, "virial": True, "atom_energies": True, "atom_virials": True}
ARRAYS = ("forces", "stress", "virial", "atom_energies", "atom_virials", "descriptors")


class Numbers(NumbersTest):
    def assert_same(self, found, expected, tolerance=0.0):
        self.assert_close(found.energy, expected.energy, tolerance, "energy")
        for name in ARRAYS:
            one, other = getattr(found, name), getattr(expected, name)
            self.assertEqual(one is None, other is None, name)
            if one is not None:
                self.assert_close(one, other, tolerance, name)

    def test_goldens_of_mace(self):
        count = 0
        for case in ("p03_mace_plain_l1", "p07_nonlinear_mh", "p08_omol_like_f32"):  # plain; several heads; charge and spin
            with open(os.path.join(GOLDEN_DIR, case + ".json")) as file:
                golden = json.load(file)
            model = mlff.Model(os.path.join(GOLDEN_DIR, golden["model_file"]))
            self.assertEqual(model.heads, golden["architecture"]["heads"])
            self.assertEqual(model.elements, golden["architecture"]["atomic_numbers"])
            self.assertEqual((model.class_name, model.dtype), (golden["architecture"]["cls"], golden["architecture"]["dtype"]))
            sessions = [mlff.Session(model, device="cpu", precision="fp64", threads=2, head=head, exact_radial=True) for head in model.heads]
            for system in golden["systems"]:
                with self.subTest(case, system=system["name"]):
                    found = sessions[system.get("head_index") or 0].evaluate(system["numbers"], system["positions"], system["cell"], system["pbc"],
                                                                             system.get("charge", 0), system.get("spin", 1), **ALL)
                    wanted = system["outputs"]["float64"]
                    scale = max(1.0, np.abs(wanted["forces"]).max(initial=0))
                    self.assert_close(found.energy, wanted["energy"], 1e-9 * max(1.0, abs(wanted["energy"])), "energy")
                    self.assert_close(found.forces, wanted["forces"], 1e-9 * scale, "forces")
                    self.assert_close(found.atom_energies, wanted["node_energies"], 1e-9 * max(1.0, abs(wanted["energy"])), "atom energies")
                    self.assert_close(found.virial, wanted["virials"], 1e-8 * scale, "virial")
                    self.assert_close(found.atom_virials.sum(axis=0), found.virial, 1e-8 * scale, "virials of atoms")
                    if any(system["pbc"]):
                        self.assertEqual(found.stress.shape, (6,))
                    if all(system["pbc"]):
                        volume = abs(np.linalg.det(system["cell"]))
                        self.assert_close(found.stress, -found.virial[(0, 1, 2, 1, 0, 0), (0, 1, 2, 2, 2, 1)] / volume, 1e-12 * scale, "stress")
                    count += 1
        self.assertGreater(count, 40)

    def test_the_numbers_of_the_command(self):
        numbers, positions = benzene()
        for options in ({}, {"precision": "fp64"}, {"device": "reference"}):
            words = [word for name, value in options.items() for word in ("--" + name, value)]
            wanted, = command_frames(BENZENE, *words)
            found = mlff.evaluate(numbers, positions, atom_energies=True, **options)
            self.assertEqual(found.energy, wanted["energy"])
            self.assert_close(found.forces, wanted["forces"], 0.0)
            self.assert_close(found.atom_energies, wanted["atom_energies"], 0.0)
            self.assertIsNone(found.stress)

    def test_forces_and_stress_are_derivatives(self):
        numbers, positions, cell = water_box()
        with mlff.Session("builtin", device="cpu", precision="fp64", exact_radial=True) as session:
            found = session.evaluate(numbers, positions, cell)
            step = 1e-4
            slopes = []
            for axis in range(6):
                energies = []
                for sign in (1, -1):
                    strain = np.zeros((3, 3))
                    row, column = ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))[axis]
                    strain[row, column] += sign * step / 2
                    strain[column, row] += sign * step / 2
                    turned = np.eye(3) + strain
                    energies.append(session.evaluate(numbers, positions @ turned, cell @ turned).energy)
                slopes.append((energies[0] - energies[1]) / (2 * step))
            self.assert_close(found.stress * np.linalg.det(cell), slopes, 1e-5, "stress")
            moved = []
            for sign in (1, -1):
                shifted = positions.copy()
                shifted[4, 1] += sign * step
                moved.append(session.evaluate(numbers, shifted, cell).energy)
            self.assert_close(found.forces[4, 1], (moved[1] - moved[0]) / (2 * step), 1e-6, "force")

    def test_batches_are_the_single_systems(self):
        molecule, box = benzene(), water_box()
        systems = [molecule, mlff.System(*box), {"numbers": [8], "positions": [[0, 0, 0]]}, ([], []), {"numbers": box[0], "positions": box[1], "cell": box[2], "pbc": [1, 0, 1]}]
        session = mlff.Session("builtin", device="cpu", precision="fp64")
        wanted = dict(ALL, descriptors=True)
        together = session.evaluate_batch(systems, **wanted)
        alone = [session.evaluate(**system, **wanted) if isinstance(system, dict) else session.evaluate(*system, **wanted) for system in systems]
        self.assertEqual(len(together), 5)
        for one, other in zip(together, alone):
            self.assert_same(one, other, 1e-10)
        self.assertEqual(together[3].energy, 0.0)
        self.assertEqual(together[0].descriptors.shape, (12, session.model.descriptor_count))
        self.assertEqual(session.evaluate_batch([]), [])
        self.assertEqual(session.info["evaluation_count"], 10)

    def test_committees(self):
        numbers, positions = benzene()
        committee = mlff.Session("builtin,self-test", device="cpu", precision="fp64")
        self.assertEqual((committee.model.member_count, mlff.Model("builtin").member_count), (2, 0))
        found = committee.evaluate(numbers, positions)
        members = [mlff.Session(name, device="cpu", precision="fp64").evaluate(numbers, positions) for name in ("builtin", "self-test")]
        mean = sum(member.forces for member in members) / 2
        self.assert_close(found.forces, mean, 1e-9)
        sigmas = np.sqrt(sum(((member.forces - mean)**2).sum(axis=1) for member in members) / 2)
        self.assert_close(found.sigma_forces, sigmas, 1e-9)
        self.assertEqual(found.sigma_max_force, found.sigma_forces.max())
        self.assert_close(found.sigma_energy_per_atom, abs(members[0].energy - members[1].energy) / 2 / 12, 1e-9)
        sigma_forces = found.sigma_forces
        self.assertIs(committee.evaluate(numbers, positions, out=found).sigma_forces, sigma_forces)
        without = committee.evaluate(numbers, positions, spread=False)
        self.assertEqual((without.sigma_forces, without.sigma_max_force, without.sigma_energy_per_atom), (None, None, None))
        for one in committee.evaluate_batch([(numbers, positions), (numbers, positions)]):
            self.assert_close(one.sigma_forces, sigma_forces, 1e-9)
        self.assertIsNone(members[0].sigma_forces)
        with self.assertRaisesRegex(mlff.UnsupportedError, "no committee"):
            mlff.evaluate(numbers, positions, device="cpu", spread=True)

    def test_trust_meters(self):
        ethanol = np.array([6, 6, 8, 1, 1, 1, 1, 1, 1], np.int32), np.array(
            [[1.17, -0.4, 0], [0, 0.56, 0], [-1.19, -0.21, 0], [-1.94, 0.38, 0], [2.14, 0.1, 0], [1.13, -1.04, 0.89], [1.13, -1.04, -0.89], [0.04, 1.2, 0.89], [0.04, 1.2, -0.89]])
        water = np.array([8, 1, 1], np.int32), np.array([[0, 0, 0], [0.96, 0, 0], [-0.24, 0.93, 0]])
        session = mlff.Session(TRUSTED, device="cpu", precision="fp64")
        self.assertEqual((session.model.has_trust_meter, session.model.alarm_error), (True, 0.3))
        self.assertEqual((mlff.Model("self-test").has_trust_meter, mlff.Model("self-test").alarm_error), (False, 0.0))
        said = session.model.description["trust_meter"]
        self.assertEqual((said["elements"], said["descriptors"], said["components"], said["alarm_error"]), ([1, 8], 32, 4, 0.3))
        self.assertIsNone(mlff.Model("self-test").description["trust_meter"])
        for numbers, positions in (ethanol, water):
            found = session.evaluate(numbers, positions, descriptors=True)
            errors, novelties = what_the_meter_says(TRUSTED, numbers, positions, found.descriptors)
            self.assert_close(found.expected_errors / errors, np.ones(len(numbers)), 1e-4)
            self.assert_close(found.novelties / np.maximum(novelties, 0.1), novelties / np.maximum(novelties, 0.1), 1e-4)
            self.assertEqual((found.novelties == 1000).tolist(), (numbers == 6).tolist(), "carbon was not seen")
            array = found.expected_errors
            self.assertIs(session.evaluate(numbers, positions, out=found).expected_errors, array)
            for one in session.evaluate_batch([(numbers, positions), (numbers, positions)]):
                self.assert_close(one.expected_errors, found.expected_errors, 0.0)
                self.assert_close(one.novelties, found.novelties, 0.0)
            without = session.evaluate(numbers, positions, trust=False)
            self.assertEqual((without.expected_errors, without.novelties), (None, None))
            self.assert_close(without.forces, found.forces, 1e-12)
        self.assertIsNone(mlff.evaluate(*water, model="self-test", device="cpu").expected_errors)
        with self.assertRaisesRegex(mlff.UnsupportedError, "no trust meter"):
            mlff.evaluate(*water, model="self-test", device="cpu", trust=True)
        said = subprocess.run([MLFF, "model", "info", TRUSTED], capture_output=True, text=True, check=True).stdout
        self.assertRegex(said, r"(?m)^trust meter +2 elements, 4 components of 32 descriptors, radius 4 angstrom\nalarm +expected errors above 0.3 eV/angstrom$")

    def test_neighbours(self):
        numbers, positions, cell = water_box(1)
        cutoff, found = 5.0, mlff.neighbors(positions, 5.0, cell)
        images = np.array(list(np.ndindex(5, 5, 5))) - 2
        expected = set()
        for image in images:
            vectors = positions[None] + image @ cell - positions[:, None]
            near = np.linalg.norm(vectors, axis=2) < cutoff
            for i, j in zip(*np.nonzero(near)):
                if i != j or image.any():
                    expected.add((i, j, *image))
        self.assertEqual(set(zip(found.receivers, found.senders, *found.shifts.T)), expected)
        self.assertEqual(len(found.senders), len(expected))
        self.assert_close(positions[found.senders] + found.shifts @ cell - positions[found.receivers], found.vectors, 1e-12)
        self.assert_close(np.linalg.norm(found.vectors, axis=1), found.distances, 1e-12)
        self.assertEqual(len(mlff.neighbors(positions, 5.0, cell, half=True).senders), len(expected) // 2)
        self.assertEqual(len(mlff.neighbors(np.empty((0, 3)), 5.0).senders), 0)
        with self.assertRaisesRegex(mlff.ArgumentError, "cutoff"):
            mlff.neighbors(positions, -1.0)


class Models(NumbersTest):
    def test_what_a_model_says(self):
        model = mlff.Model("builtin")
        self.assertEqual((model.elements, model.cutoff, model.is_runnable, model.why_not_runnable), ([1, 6, 7, 8, 9, 16, 17], 5.0, True, ""))
        self.assertEqual(model.info["elements"], model.elements)
        said = subprocess.run([MLFF, "model", "info", "builtin", "--json", "-"], capture_output=True, text=True, check=True)
        self.assertEqual(model.description, json.loads(said.stdout))
        self.assertGreater(model.parameter_count, 1e5)
        self.assertEqual(mlff.__version__, subprocess.run([MLFF, "--version"], capture_output=True, text=True).stdout.split()[1])
        self.assertEqual(mlff.devices() == [], mlff.why_no_device() != "")

    def test_copies(self):
        numbers, positions = benzene()
        session = mlff.Session("builtin", device="cpu", precision="fp64", threads=1)
        for other in (pickle.loads(pickle.dumps(session)), copy.deepcopy(session)):
            self.assertEqual(other.evaluate(numbers, positions).energy, session.evaluate(numbers, positions).energy)
            self.assertEqual((other.precision, other.info["thread_count"]), ("fp64", 1))


class Arrays(NumbersTest):
    @classmethod
    def setUpClass(cls):
        cls.session = mlff.Session("builtin", device="cpu")

    def test_any_layout_gives_the_same(self):
        numbers, positions, cell = water_box()
        wanted = self.session.evaluate(numbers, positions, cell)
        for other in (positions.tolist(), np.asfortranarray(positions), np.repeat(positions, 2, axis=1)[:, ::2], positions.astype(">f8"), positions.astype(np.longdouble)):
            self.assertEqual(self.session.evaluate(numbers.tolist(), other, cell.tolist(), True).energy, wanted.energy)
        for other in (numbers.astype(np.int64), numbers.astype(np.uint8), np.repeat(numbers, 2)[::2], tuple(numbers.tolist())):
            self.assertEqual(self.session.evaluate(other, positions, cell, (1, 1, 1)).energy, wanted.energy)
        single = positions.astype(np.float32)
        self.assertEqual(self.session.evaluate(numbers, single, cell).energy, self.session.evaluate(numbers, single.astype(float), cell).energy)
        positions.flags.writeable = False
        self.assertEqual(self.session.evaluate(numbers, positions, cell).energy, wanted.energy)

    def test_right_arrays_are_not_copied(self):
        numbers, positions = benzene()
        job = self.session._job((numbers, positions, None, None, 0, 1), (True, None, False, False, False, False, False, False), None)
        self.assertIs(job[0], numbers)
        self.assertIs(job[1], positions)

    def test_results_are_arrays_of_their_own(self):
        numbers, positions = benzene()
        first = self.session.evaluate(numbers, positions)
        kept = first.forces.copy()
        self.assertTrue(first.forces.flags.owndata and first.forces.flags.writeable)
        self.session.evaluate(numbers, positions + np.linspace(0, 0.3, 36).reshape(12, 3))
        self.assert_close(first.forces, kept, 0.0)

    def test_results_written_again(self):
        numbers, positions = benzene()
        out = self.session.evaluate(numbers, positions, virial=True)
        forces, wanted = out.forces, self.session.evaluate(numbers, 1.01 * positions)
        self.assertIs(self.session.evaluate(numbers, 1.01 * positions, out=out), out)
        self.assertIs(out.forces, forces)
        self.assertIsNone(out.virial, "was not asked for")
        self.assertEqual(out.energy, wanted.energy)
        self.assert_close(out.forces, wanted.forces, 0.0)
        before = forces.copy()
        with self.assertRaises(mlff.StructureError):
            self.session.evaluate(numbers, positions * np.nan, out=out)
        self.assert_close(out.forces, before, 0.0, "a call that fails writes nothing")
        for bad in (np.empty((11, 3)), np.empty((12, 3), np.float32), np.empty((3, 12)).T, "forces"):
            with self.assertRaisesRegex(mlff.ArgumentError, r"out.forces is a .* expected a writable, C-contiguous float64 array of the shape \(12, 3\)"):
                self.session.evaluate(numbers, positions, out=mlff.Result(0.0, bad))
        with self.assertRaisesRegex(mlff.ArgumentError, "shares memory with positions"):
            self.session.evaluate(numbers, positions, out=mlff.Result(0.0, positions))


class Errors(NumbersTest):
    @classmethod
    def setUpClass(cls):
        cls.session = mlff.Session("builtin", device="cpu")

    def refuses(self, kind, words, call, *arguments, **named):
        with self.assertRaisesRegex(kind, words) as caught:
            call(*arguments, **named)
        self.assertIsInstance(caught.exception, mlff.Error)
        self.assertIs(type(caught.exception.status), mlff.Status)
        self.assertNotIn("\n", str(caught.exception))

    def test_atoms(self):
        evaluate, positions = self.session.evaluate, [[0, 0, 0], [0, 0, 1.1]]
        self.refuses(mlff.ArgumentError, r"positions has the shape \(2, 3\), expected \(3, 3\)", evaluate, [6, 8, 8], positions)
        self.refuses(mlff.ArgumentError, r"positions has the shape \(6,\)", evaluate, [6, 8], np.ravel(positions))
        self.refuses(mlff.ArgumentError, "positions has the type <U4, expected real numbers", evaluate, [6], [["zero", "0", "0"]])
        self.refuses(mlff.ArgumentError, "positions has the type complex128", evaluate, [6, 8], np.array(positions) * 1j)
        self.refuses(mlff.ArgumentError, "positions is not an array", evaluate, [6, 8], [[0, 0, 0], [0, 0]])
        self.refuses(mlff.ArgumentError, "numbers has the type float64, expected integers", evaluate, [6.5, 8], positions)
        self.refuses(mlff.ArgumentError, "numbers has the type <U1", evaluate, ["C", "O"], positions)
        self.refuses(mlff.ArgumentError, "numbers has the shape", evaluate, [[6, 8]], positions)
        self.refuses(mlff.ArgumentError, "not an atomic number", evaluate, [2**32 + 6, 8], positions)
        self.refuses(mlff.ArgumentError, r"cell has the shape \(3,\)", evaluate, [6, 8], positions, [9, 9, 9])
        self.refuses(mlff.ArgumentError, "pbc is", evaluate, [6, 8], positions, np.eye(3) * 9, [True, True])
        self.refuses(mlff.ArgumentError, "no cell", evaluate, [6, 8], positions, pbc=True)
        self.refuses(mlff.StructureError, "position of atom 1 is not finite", evaluate, [6, 8], [[0, 0, 0], [0, math.nan, 1]])
        self.refuses(mlff.StructureError, "atom 1 is U, which the model does not know", evaluate, [6, 92], positions)
        self.refuses(mlff.StructureError, "atomic number -1", evaluate, [6, -1], positions)
        self.refuses(mlff.StructureError, "same place", evaluate, [6, 8], np.zeros((2, 3)))
        self.refuses(mlff.StructureError, "not periodic", evaluate, [6, 8], positions, stress=True)
        self.refuses(mlff.StructureError, "cell|lattice", evaluate, [6, 8], positions, np.ones((3, 3)))
        self.refuses(mlff.StructureError, "not finite", evaluate, [6, 8], positions, charge=math.inf)
        self.refuses(mlff.StructureError, "system 1: atom 0 is U", self.session.evaluate_batch, [([6, 8], positions), ([92], [[0, 0, 0]])])
        self.refuses(mlff.ArgumentError, "system 1: positions has the shape", self.session.evaluate_batch, [([6, 8], positions), ([8], [0, 0, 0])])
        self.refuses(mlff.ArgumentError, "system 0: .*atoms", self.session.evaluate_batch, [{"atoms": 3}])
        self.assertEqual(self.session.evaluate([6, 8], positions).forces.shape, (2, 3), "the session still works")

    def test_models_and_sessions(self):
        folder = os.path.join(GOLDEN_DIR, "no_such.model")
        self.refuses(mlff.FileError, "no_such.model", mlff.Model, folder)
        self.assertIsInstance(mlff.FileError("x"), OSError)
        self.refuses(mlff.FormatError, "README", mlff.Model, os.path.join(GOLDEN_DIR, "README.md"))
        self.refuses(mlff.ArgumentError, "null character", mlff.Model, "a\0b")
        self.refuses(mlff.ArgumentError, "'toaster'", mlff.Session, device="toaster")
        self.refuses(mlff.ArgumentError, "'fp8', expected one of auto, mixed", mlff.Session, precision="fp8")
        self.refuses(mlff.ArgumentError, "thread count -2", mlff.Session, threads=-2)
        self.refuses(mlff.ArgumentError, "no head 'nobody', only 'Default'", mlff.Session, head="nobody")
        self.refuses(mlff.ArgumentError, "several heads", mlff.Session, os.path.join(GOLDEN_DIR, "p07_nonlinear_mh.model"))
        self.refuses(mlff.UnsupportedError, "descriptors", mlff.Session("analytic").evaluate, [6], [[0, 0, 0]], descriptors=True)
        if not mlff.devices():
            self.refuses(mlff.DeviceError, "cuda", mlff.Session, device="cuda")
        session = mlff.Session()
        session.close()
        self.refuses(mlff.ArgumentError, "closed", session.evaluate, [6], [[0, 0, 0]])
        session.close()
        self.refuses(mlff.ArgumentError, "threads is 'two', expected a number", mlff.Session, threads="two")
        self.refuses(mlff.ArgumentError, "threads", mlff.Session, threads=2**40)
        self.refuses(mlff.ArgumentError, "device is 3, expected a name", mlff.Session, device=3)
        self.refuses(mlff.ArgumentError, "charge is 'one', expected a number", mlff.Session().evaluate, [6], [[0, 0, 0]], charge="one")
        self.refuses(mlff.ArgumentError, "out is a dict, expected the Result", mlff.Session().evaluate, [6], [[0, 0, 0]], out={})


class Host(NumbersTest):
    def test_threads(self):
        """A session in each of two threads, and one session in two threads: the numbers of one thread, and time for others."""
        numbers, positions, cell = water_box(3)
        model, shared = mlff.Model("builtin"), mlff.Session("builtin", device="cpu", threads=1)
        wanted = shared.evaluate(numbers, positions, cell)
        failures, ticks = [], []
        done = threading.Event()

        def work(session):
            for _ in range(8):
                found = session.evaluate(numbers, positions, cell)
                if found.energy != wanted.energy or not np.array_equal(found.forces, wanted.forces):
                    failures.append(found)

        def tick():
            while not done.wait(0.001):
                ticks.append(1)

        watch = threading.Thread(target=tick)
        watch.start()
        for sessions in ([mlff.Session(model, device="cpu", threads=1) for _ in range(2)], [shared, shared]):
            workers = [threading.Thread(target=work, args=(session,)) for session in sessions]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        done.set()
        watch.join()
        self.assertEqual(failures, [])
        self.assertGreater(len(ticks), 20, "the interpreter's lock is free while the library works")
        self.assertEqual(shared.info["evaluation_count"], 17)

    def test_a_forked_process_is_told(self):
        session = mlff.Session("builtin", device="cpu", threads=2)
        session.evaluate(*benzene())
        child = os.fork()
        if child == 0:
            code = 1
            try:
                session.evaluate(*benzene())
            except mlff.ArgumentError as error:
                code = 0 if "forked" in str(error) else 2
            finally:
                del session  # must not wait for threads that are not there
                gc.collect()
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_log(self):
        with self.assertLogs("mlff", logging.DEBUG) as logged:
            mlff.Session("analytic", device="cpu", threads=1)
        self.assertTrue(any("session on cpu" in line and line.startswith("INFO:mlff:") for line in logged.output), logged.output)

    def test_memory_stays(self):
        numbers, positions = benzene()
        session = mlff.Session("analytic", device="cpu", threads=1)

        def round_of_calls():
            for _ in range(2000):
                session.evaluate(numbers, positions, virial=True, atom_virials=True)
                session.evaluate_batch([(numbers, positions), (numbers, positions)])
                mlff.neighbors(positions, 5.0, threads=1)
                try:
                    session.evaluate(numbers, positions[:3])
                except mlff.Error:
                    pass
            for _ in range(20):
                mlff.Session("analytic", device="cpu", threads=2).evaluate(numbers, positions)
            gc.collect()

        round_of_calls()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        references = sys.getrefcount(numbers), sys.getrefcount(positions)
        round_of_calls()
        round_of_calls()
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 2048, "kB")
        self.assertEqual((sys.getrefcount(numbers), sys.getrefcount(positions)), references)

    def test_what_is_installed(self):
        """The library lies beside the module that calls it; neither knows the folders of the machine it was built on."""
        folder = os.path.dirname(mlff.__file__)
        names = sorted(os.listdir(folder))
        self.assertIn("py.typed", names)
        self.assertIn("_core.pyi", names)
        libraries = [name for name in names if ".so" in name]
        self.assertEqual(len(libraries), 2, names)
        source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(README)))).encode()
        for name in libraries:
            with open(os.path.join(folder, name), "rb") as file:
                content = file.read()
            self.assertNotIn(source, content, name)
            found = subprocess.run(["readelf", "-d", os.path.join(folder, name)], capture_output=True, text=True, check=True)
            paths = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", found.stdout)
            self.assertEqual(paths, ["$ORIGIN"] if name.startswith("_core") else [], name)

    def test_the_example_of_the_readme(self):
        with open(README) as file:
            example, = re.findall(r"```python\n(.*?)```", file.read(), re.S)
        found = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, timeout=120)
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertRegex(found.stdout, r"(?s)^-137\.\d+ eV on \S+ \(3, 3\)\n\[.*\]\nSYSTEM atom 0 is U, .*\nrelaxed: -137\.\d+ eV, O-H 0\.9\d+ A\n$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
