# SPDX-License-Identifier: MIT
"""mlff phonons as a command: numbers of phonopy, symmetry, files, bad input. Usage: test_phonons.py MLFF GOLDEN.json"""
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

from command_test import CommandTest

MLFF = sys.argv[1]
GOLDEN = json.load(open(sys.argv[2]))
HAS_SPGLIB = True  # set below
CONSTANT = 5.65
SILICON = f"""8
Lattice="{CONSTANT} 0 0 0 {CONSTANT} 0 0 0 {CONSTANT}" Properties=species:S:1:pos:R:3 pbc="T T T"
""" + "".join(f"Si {x * CONSTANT} {y * CONSTANT} {z * CONSTANT}\n" for dx in (0, 0.25)
              for x, y, z in ((dx, dx, dx), (dx, dx + 0.5, dx + 0.5), (dx + 0.5, dx, dx + 0.5), (dx + 0.5, dx + 0.5, dx)))


def run(*words, model="analytic"):
    options = ["--model", model] if model else []
    return subprocess.run([MLFF, "phonons", *words, *options], capture_output=True, text=True, timeout=120)


def with_column(name, kind, values):
    """SILICON with a column more."""
    count, comment, *atoms = SILICON.splitlines()
    comment = comment.replace("pos:R:3", f"pos:R:3:{name}:{kind}:1")
    return "\n".join([count, comment] + [f"{atom} {value}" for atom, value in zip(atoms, values)]) + "\n"


def path_text(lines):
    return "|".join(" ".join(f"P{i}{k}=" + ",".join(map(repr, q)) for k, q in enumerate(line)) for i, line in enumerate(lines))


class PhononTest(CommandTest):
    def results(self, *words, model="analytic"):
        out = self.path("out.json")
        result = run(*words, "--json", out, model=model)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(out) as file:
            return json.load(file)

    def assert_fails(self, result, code, *words):
        result.stderr = "".join(line for line in result.stderr.splitlines(True) if "this build has no spglib" not in line)
        super().assert_fails(result, code, *words)

    def needs_spglib(self):  # phonopy's displacements are too few without symmetry
        if not HAS_SPGLIB:
            self.skipTest("no spglib")

    def assert_close(self, found, expected, tolerance):
        self.assertEqual(len(found), len(expected))
        for a, b in zip(found, expected):
            self.assertTrue(abs(a - b) <= tolerance, f"{a} is not {b} within {tolerance}")  # false for NaN

    def frequencies(self, results):
        return [value for point in results["path"] for value in point["frequencies"]]

    def test_numbers_of_phonopy(self):
        self.needs_spglib()
        for name, golden in GOLDEN["crystals"].items():
            with self.subTest(name):
                task = self.path(name + ".yaml", golden["phonopy_disp.yaml"])
                found = self.results("--read-phonopy", task, "--path", path_text(GOLDEN["lines"]), "--line-points", str(GOLDEN["line_points"]),
                                     "--mesh", ",".join(map(str, GOLDEN["mesh"])), "--temperatures", "100:1000:100", "--write-phonopy", self.folder, "--rest-force", "1e-3")
                expected = [value for row in golden["frequencies"] for value in row]
                self.assert_close(self.frequencies(found), expected, 1e-4)
                thermal = {point["temperature"]: point for point in found["thermal"]}
                for kind in ("free_energy", "entropy", "heat_capacity"):
                    self.assert_close([thermal[t][kind] for t in GOLDEN["temperatures"]], golden[kind], 1e-6 * max(map(abs, golden[kind])))
                # The same from the forces that were written, without a model.
                again = self.results("--read-phonopy", task, "--forces", self.path("FORCE_SETS"), "--path", path_text(GOLDEN["lines"]),
                                     "--line-points", str(GOLDEN["line_points"]), model=None)
                self.assertIsNone(again["model"])
                self.assert_close(self.frequencies(again), self.frequencies(found), 1e-5)

    def test_own_displacements(self):
        path = self.path("si.xyz", SILICON)
        words = [path, "--supercell", "1", "--step", "0.0005", "--mesh", "4", "--temperatures", "300"]
        found = self.results(*words, "--path", "G=0,0,0 X=1/2,0,1/2 U=5/8,1/4,5/8|L=1/2,1/2,1/2 G=0,0,0") if HAS_SPGLIB else None
        plain = self.results(*words, "--no-symmetry", "--path", "G=0,0,0 X=0,1,0 U=1/4,1,1/4|L=1/2,1/2,1/2 G=0,0,0")
        self.assertEqual(len(plain["displacements"]), 48)
        self.assertEqual(len(plain["primitive_cell"]["symbols"]), 8)
        gammas = [point for point in plain["path"] if point["label"] == "G"]
        self.assertEqual(len(gammas), 2)
        for point in gammas:  # moving the crystal costs nothing
            self.assert_close(point["frequencies"][:3] if point["frequencies"][0] > -1e-3 else sorted(point["frequencies"], key=abs)[:3], [0, 0, 0], 1e-4)
        if not HAS_SPGLIB:
            return
        self.assertEqual(found["space_group"], {"number": 227, "symbol": "Fd-3m"})
        self.assertEqual(len(found["displacements"]), 1)
        self.assertEqual(len(found["primitive_cell"]["symbols"]), 2)
        # The modes of the primitive cell are among those of the conventional cell, which has those of four wave vectors.
        for one, four in zip(found["path"], plain["path"]):
            for value in one["frequencies"]:
                self.assertTrue(min(abs(value - other) for other in four["frequencies"]) < 2e-5 if abs(value) > 1e-2 else True, (one, four))
        # The same with the primitive cell in both, translations only: then all bands agree.
        none = self.results(*words, "--primitive", "none", "--path", "G=0,0,0 X=0,1,0 U=1/4,1,1/4|L=1/2,1/2,1/2 G=0,0,0")
        self.assertEqual(len(none["displacements"]), 1)
        self.assert_close(self.frequencies(none), self.frequencies(plain), 1e-6)
        # On the mesh of the smaller cell are 4^3 wave vectors, and as many modes for each atom.
        self.assertTrue(found["zero_point_energy"] > 0)
        self.assert_close([sum((b - a) * (x + y) / 2 for a, b, x, y in zip(*(lambda f, s: (f, f[1:], s, s[1:]))(found["density_of_states"]["frequencies"], found["density_of_states"]["states"])))],
                          [6], 1e-6)

    def test_phonopy_files_read_back(self):
        path, folder = self.path("si.xyz", SILICON), self.path("written")
        own = self.results(path, "--supercell", "2,1,1", "--write-phonopy", folder)
        back = self.results("--read-phonopy", os.path.join(folder, "phonopy_disp.yaml"), "--forces", os.path.join(folder, "FORCE_SETS"), model=None)
        self.assert_close(self.frequencies(back), self.frequencies(own), 1e-5)
        again = self.results(path, "--supercell", "2,1,1", "--forces", os.path.join(folder, "FORCE_SETS"), model=None)
        self.assert_close(self.frequencies(again), self.frequencies(own), 1e-5)

    def test_isotopes(self):
        masses = [280.0] + 7 * [28.0]
        path, folder = self.path("isotopes.xyz", with_column("masses", "R", masses)), self.path("written")
        words = ["--step", "0.0005", "--mesh", "2", "--temperatures", "300"]
        plain = self.results(path, "--supercell", "1", *words, "--no-symmetry")
        self.assertEqual(plain["primitive_cell"]["masses"], masses)
        found = self.results(path, "--supercell", "1", *words, "--write-phonopy", folder)
        self.assertEqual(sorted(found["primitive_cell"]["masses"]), sorted(masses))
        self.assert_close([found["zero_point_energy"]], [plain["zero_point_energy"]], 1e-4)
        # The heavy atom slows vibrations down.
        light = self.results(self.path("light.xyz", with_column("masses", "R", 8 * [28.0])), "--supercell", "1", *words, "--no-symmetry")
        self.assertLess(plain["zero_point_energy"], light["zero_point_energy"] - 0.5)
        if HAS_SPGLIB:  # forces do not know masses, the crystal does
            self.assertEqual(len(found["displacements"]), 1)
            self.assertEqual(found["space_group"], {"number": 215, "symbol": "P-43m"})
        task, forces = (os.path.join(folder, name) for name in ("phonopy_disp.yaml", "FORCE_SETS"))
        again = self.results("--read-phonopy", task, "--forces", forces, *words, model=None)
        self.assert_close([again["zero_point_energy"]], [found["zero_point_energy"]], 1e-5)
        with open(task) as file:
            start, unit, supercell = re.split(r"(?=\nunit_cell:)|(?=\nsupercell:)", file.read())
        contradicting = self.path("other.yaml", start + unit + supercell.replace("mass: 280.", "mass: 281.", 1))
        self.assert_fails(run("--read-phonopy", contradicting, "--forces", forces, model=None), 3, "other.yaml", "expected equal masses")

    def test_fixed_atoms_are_refused(self):
        self.assert_fails(run(self.path("fixed.xyz", with_column("move_mask", "L", "FTTTTTTT")), "--supercell", "1"), 3, "fixed.xyz", "move_mask")
        self.results(self.path("free.xyz", with_column("move_mask", "L", "TTTTTTTT")), "--supercell", "1", "--mesh", "1")

    def test_a_signal_ends_the_run_after_the_forces(self):
        path, folder = self.path("si.xyz", SILICON), self.path("written")
        # With as many wave vectors as take a minute.
        process = subprocess.Popen([MLFF, "phonons", path, "--supercell", "1", "--no-symmetry", "--mesh", "200,100,100", "--model", "analytic", "--write-phonopy", folder],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        try:
            deadline = time.monotonic() + 60
            while not os.path.exists(os.path.join(folder, "phonopy_disp.yaml")):  # written when the forces are known
                self.assertIsNone(process.poll())
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=5)
            self.assertEqual(process.returncode, -signal.SIGINT)
        finally:
            process.kill()
            process.communicate()

    def test_threads_do_not_matter(self):
        path = self.path("si.xyz", SILICON)
        one, three = (self.results(path, "--supercell", "1", "--threads", n) for n in ("1", "3"))
        self.assertEqual(one, three)

    def test_report_and_text(self):
        path, folder = self.path("si.xyz", SILICON), self.path("report")
        result = run(path, "--supercell", "1", "--report", folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"supercell: \d+ primitive cells, 8 atoms")
        self.assertRegex(result.stdout, r"acoustic sum rule violated by \S+ eV/A\^2")
        with open(os.path.join(folder, "report.html")) as file:
            page = file.read()
        for words in ("Dispersion", "Density of states", "Heat capacity at constant volume", "\u0393"):
            self.assertIn(words, page)
        self.assertEqual(page.count("<svg"), 4)
        self.assertNotRegex(page, r"\bnan\b|\binf\b")
        with open(os.path.join(folder, "report.json")) as file:
            self.assertIn("thermal", json.load(file))
        self.assertTrue(os.path.exists(os.path.join(folder, "report.md")))

    def test_relax_and_forces_at_rest(self):
        moved = SILICON.replace("\nSi 0.0 0.0 0.0", "\nSi 0.2 0.0 0.0", 1)
        self.assertNotEqual(moved, SILICON)
        path = self.path("moved.xyz", moved)
        self.assert_fails(run(path, "--supercell", "1"), 3, "moved.xyz", "largest force at rest", "--relax")
        found = self.results(path, "--supercell", "1", "--relax", "--no-symmetry", "--mesh", "1")
        self.assertTrue(found["at_rest"]["largest_force"] <= 1e-4)
        warned = run(path, "--supercell", "1", "--rest-force", "100", "--no-symmetry", "--mesh", "1")
        self.assertEqual(warned.returncode, 0)
        self.assertIn("use --relax", warned.stderr)

    def test_imaginary_modes_are_counted(self):
        self.needs_spglib()
        golden = GOLDEN["crystals"]["rutile"]
        result = run("--read-phonopy", self.path("r.yaml", golden["phonopy_disp.yaml"]), "--mesh", "2")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"IMAGINARY modes.*: [1-9]\d* of")

    def test_bad_input(self):
        path = self.path("si.xyz", SILICON)
        molecule = self.path("molecule.xyz", "1\n\nAr 0 0 0\n")
        yaml = GOLDEN["crystals"]["triclinic"]["phonopy_disp.yaml"]
        task = self.path("t.yaml", yaml)
        self.assert_fails(run(molecule), 3, "molecule.xyz", "periodic in all directions")
        self.assert_fails(run(path, "--supercell", "0"), 2, "--supercell '0'", "N or A,B,C")
        for bad in ("1,2", "-1", "2,2,2,2", "two"):
            self.assert_fails(run(path, f"--supercell={bad}"), 2, "supercell")
        self.assert_fails(run(path, "--supercell", "1000"), 2, "too large")
        self.assert_fails(run(path, "--supercell", "9000000000000000000"), 2, "too large")
        self.assert_fails(run(path, "--step", "0"), 2, "--step")
        self.assert_fails(run(path, "--mesh", "100000"), 2, "too fine")
        self.assert_fails(run(path, "--temperatures", "10:0:1"), 2, "--temperatures")
        self.assert_fails(run(path, "--supercell", "1", "--path", "G Q"), 2, "'Q'", "expected one of G")
        self.assert_fails(run(path, "--supercell", "1", "--path", "G"), 2, "two or more")
        self.assert_fails(run(path, "--supercell", "1", "--path", "A=1,2 G"), 2, "LABEL=a,b,c")
        self.assert_fails(run(), 2, "either FILE or --read-phonopy")
        self.assert_fails(run("--read-phonopy", task, "--supercell", "2"), 2, "--supercell")
        self.assert_fails(run(self.path("two.xyz", 2 * SILICON)), 3, "two.xyz", "one crystal")
        self.assert_fails(run(self.path("empty.xyz", "")), 3, "empty.xyz", "no frame")
        self.assert_fails(run(self.path("none.yaml")[:-5] + ".xyz"), 3)
        atoms = 8
        for text, words in (("", "number"), ("9\n1\n", "8 atoms"), ("8\n1000000000000000\n1\n", "as many displacements"), ("8\n1\n\n9\n0 0 0.01\n" + "0 0 0\n" * atoms, "atom from 1 to 8"),
                            ("8\n1\n\n1\n0 0 0\n" + "0 0 0\n" * atoms, "not zero"), ("8\n1\n\n1\n0 0 0.01\n" + "0 0 0\n" * (atoms - 1) + "0 0 nan\n", "number"),
                            ("8\n1\n\n1\n0 0 0.01\n" + "0 0 0\n" * (atoms - 1), "end of the file"), ("8\n1\n\n1\n0 0 0.01\n" + "0 0 0\n" * atoms + "7", "nothing behind")):
            with self.subTest(text[:30]):
                self.assert_fails(run(path, "--supercell", "1", "--forces", self.path("F", text), model=None), 3, "F: line", words)
        few = self.path("FEW", "8\n1\n\n1\n0 0 0.01\n" + "0 0 0\n" * atoms)
        self.assert_fails(run(path, "--supercell", "1", "--no-symmetry", "--forces", few, model=None), 3, "FEW: ", "missing", "atom 1 ", "three directions", "--no-symmetry")
        second = yaml.index("- atom:", yaml.index("- atom:") + 1)
        self.assert_fails(run("--read-phonopy", self.path("few.yaml", yaml[:second])), 3, "few.yaml: ", "missing", "three directions")
        not_finite = run(self.path("nan.xyz", SILICON.replace("\nSi 0.0 0.0 0.0", "\nSi nan 0.0 0.0", 1)))
        self.assert_fails(not_finite, 3, "nan.xyz:3:")
        self.assertEqual(not_finite.stderr.count("nan.xyz"), 1)
        for old, new, words in (("supercell_matrix", "other", "'supercell_matrix'"), ("unit_cell:", "unit:", "'unit_cell'"), ("symbol: Si", "symbol: Sj", "symbol of an element"),
                                ("- atom:    1", "- atom:  999", "a number from 1 to"), ("phonopy:", "something:", "that phonopy wrote"), ("mass: 28.085500", "mass: -1", "more than 0"),
                                ("coordinates: [", "coordinates: [ 1e300,", "three numbers"), ("displacements:", "displacements: 3\nrest:", "a list")):
            with self.subTest(new):
                self.assertIn(old, yaml)
                self.assert_fails(run("--read-phonopy", self.path("bad.yaml", yaml.replace(old, new))), 3, "bad.yaml", words)
        self.assert_fails(run("--read-phonopy", self.path("nest.yaml", "a: " + "[" * 100000)), 3, "nested too deeply")


if __name__ == "__main__":
    check = subprocess.run([MLFF, "phonons", "-", "--model", "analytic", "--supercell", "1", "--mesh", "1"], input=SILICON, capture_output=True, text=True)
    HAS_SPGLIB = not re.search("no spglib", check.stderr)
    unittest.main(argv=sys.argv[:1])
