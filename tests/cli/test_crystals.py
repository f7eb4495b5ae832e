# SPDX-License-Identifier: MIT
"""mlff eos and mlff elastic as programs see them. Usage: test_crystals.py MLFF"""
import json
import math
import os
import re
import subprocess
import sys
import unittest

from command_test import CommandTest

MLFF = sys.argv[1]
EV_PER_A3 = 160.2176634  # GPa


def mlff(*arguments, text=None):
    return subprocess.run([MLFF, *arguments], capture_output=True, text=True, timeout=60, input=text)


def argon(side, periodic="T T T", atoms=4):
    """Four atoms of a face-centred cubic crystal."""
    places = [(0, 0, 0), (0, 0.5, 0.5), (0.5, 0, 0.5), (0.5, 0.5, 0)][:atoms]
    lines = "".join(f"Ar {side * x} {side * y} {side * z}\n" for x, y, z in places)
    return f'{len(places)}\nLattice="{side} 0 0 0 {side} 0 0 0 {side}" Properties=species:S:1:pos:R:3 pbc="{periodic}"\n{lines}'


def numbers(words):
    return [float(word) for word in words]


class CrystalTest(CommandTest):
    def assert_close(self, found, expected, tolerance):
        self.assertEqual(len(found), len(expected))
        for a, b in zip(found, expected):
            self.assertTrue(abs(a - b) <= tolerance, f"{found} is not {expected}")  # false for NaN

    def assert_report(self, folder, plots):
        with open(self.path(folder + "/report.html")) as file:
            page = file.read()
        self.assertEqual(page.count("<svg"), plots)
        self.assertNotIn("nan", page)
        self.assertTrue(os.path.getsize(self.path(folder + "/report.md")) > 100)
        return page

    def relaxed(self):
        path = self.path("relaxed.xyz")
        result = mlff("relax", self.path("argon.xyz", argon(2.7)), "--model", "analytic", "--cell", "--smax", "1e-7", "--output", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        return path


class EquationOfState(CrystalTest):
    def test_text_json_and_report_agree(self):
        crystal = self.relaxed()
        result = mlff("eos", crystal, "--model", "analytic", "--json", self.path("eos.json"), "--report", self.path("report"), "--points", "9", "--range", "3")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        header, row = result.stdout.splitlines()
        self.assertEqual(header.split(), ["frame", "atoms", "E0/eV", "V0/A^3", "B0/GPa", "B0'", "rms/meV"])
        with open(self.path("eos.json")) as file:
            document = json.load(file)
        with open(self.path("report/report.json")) as file:
            self.assertEqual(json.load(file), document)
        self.assertEqual([document[key] for key in ("model", "device", "precision", "form", "relaxed")], ["analytic", "cpu", "fp64", "birch-murnaghan", "positions"])
        frame, = document["frames"]
        fit = frame["fit"]
        self.assert_close(numbers(row.split()), [0, 4, fit["energy"], fit["volume"], fit["bulk_modulus"], fit["bulk_modulus_derivative"], 1e3 * fit["rms_residual"]], 6e-4)
        self.assertIsNone(frame["problem"])
        self.assertEqual([len(frame[key]) for key in ("volumes", "energies", "largest_forces", "moves")], [9] * 4)
        self.assertEqual(frame["moves"], [0] * 9)  # symmetry fixes the positions
        middle = frame["volumes"][4]
        self.assert_close(frame["volumes"], [middle * (0.97 + 0.0075 * i) for i in range(9)], 1e-9)
        self.assert_close([fit["volume"], fit["energy"]], [middle, frame["energies"][4]], 2e-3)
        # The curve with these parameters, written out again, has this residual.
        square = 0
        for volume, energy in zip(frame["volumes"], frame["energies"]):
            x = (fit["volume"] / volume) ** (2 / 3)
            curve = fit["energy"] + 9 / 16 * fit["volume"] * fit["bulk_modulus"] / EV_PER_A3 * ((x - 1) ** 3 * fit["bulk_modulus_derivative"] + (x - 1) ** 2 * (6 - 4 * x))
            square += (curve - energy) ** 2
        self.assert_close([math.sqrt(square / 9)], [fit["rms_residual"]], 1e-9)
        page = self.assert_report("report", 1)
        self.assertIn(f"{fit['bulk_modulus']:.3f}", page)

    def test_forms_and_frames(self):
        crystal = self.relaxed()
        with open(crystal) as file:
            frames = 2 * file.read()
        found = []
        for form in ("birch-murnaghan", "vinet"):
            result = mlff("eos", "-", "--model", "analytic", "--form", form, "--shape", "--range", "2", "--json", "-", text=frames)
            self.assertEqual(result.returncode, 0, result.stderr)
            document = json.loads(result.stdout)
            self.assertEqual((document["form"], document["relaxed"]), (form, "positions and shape"))
            first, second = document["frames"]
            self.assertEqual(first, second)
            found.append(first["fit"]["bulk_modulus"])
        self.assert_close(found[:1], found[1:], 0.02 * found[0])

    def test_a_minimum_outside_is_a_failed_check(self):
        result = mlff("eos", self.path("wide.xyz", argon(3.4)), "--model", "analytic", "--json", self.path("eos.json"), "--report", self.path("report"))
        self.assert_fails(result, 1, "wide.xyz: frame 0: ", "lowest at the smallest volume", "relax the cell first")
        self.assertEqual(result.stdout.splitlines()[1].split(), ["0", "4"] + ["-"] * 5)
        with open(self.path("eos.json")) as file:
            frame, = json.load(file)["frames"]
        self.assertIsNone(frame["fit"])
        self.assertIn("lowest at the smallest volume", frame["problem"])
        self.assertEqual(len(frame["energies"]), 11)
        self.assertIn("lowest at the smallest volume", self.assert_report("report", 1))

    def test_bad_input(self):
        crystal = self.path("argon.xyz", argon(2.7))
        for arguments, code, words in (
                ([crystal, "--points", "1"], 2, "from 1 volumes, expected from 5"),
                ([crystal, "--range", "0"], 2, "a range of volumes of 0 %"),
                ([crystal, "--range", "nan"], 2, "a range of volumes of nan"),
                ([crystal, "--form", "murnaghan"], 2, "--form"),
                ([crystal, "--fmax", "0"], 2, "the force limit is 0"),
                ([crystal, "--shape", "--no-relax"], 2, "--no-relax"),
                ([crystal, "--report", crystal], 3, "cannot make the folder"),
                ([self.path("none.xyz", "")], 3, "no frame in the file"),
                ([self.path("slab.xyz", argon(2.7, "T T F"))], 3, "slab.xyz: frame 0: an equation of state needs a crystal that is periodic in all directions; direction 3 is not")):
            with self.subTest(arguments=arguments[1:] or arguments):
                self.assert_fails(mlff("eos", *arguments, "--model", "analytic"), code, words)


class Elastic(CrystalTest):
    def test_text_json_and_report_agree(self):
        result = mlff("elastic", self.path("argon.xyz", argon(2.7)), "--model", "analytic", "--json", self.path("elastic.json"), "--report", self.path("report"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        with open(self.path("elastic.json")) as file:
            document = json.load(file)
        with open(self.path("report/report.json")) as file:
            self.assertEqual(json.load(file), document)
        self.assertEqual([document[key] for key in ("model", "precision", "strain", "clamped", "components")], ["analytic", "fp64", 0.002, False, ["xx", "yy", "zz", "yz", "xz", "xy"]])
        frame, = document["frames"]
        self.assertIsNone(frame["problem"])
        self.assertTrue(frame["stable"])
        self.assertEqual(len(frame["stresses"]), 24)
        stiffness, compliance = frame["stiffness"], frame["compliance"]
        self.assert_close([sum(stiffness[i][k] * compliance[k][j] for k in range(6)) for i in range(6) for j in range(6)], [float(i == j) for i in range(6) for j in range(6)], 1e-9)
        c11, c12, c44 = stiffness[0][0], stiffness[0][1], stiffness[3][3]
        for i in range(3):
            self.assert_close(stiffness[i], [c11 if i == j else c12 if j < 3 else 0 for j in range(6)], 1e-3 * c11)
            self.assert_close(stiffness[i + 3], [c44 if i + 3 == j else 0 for j in range(6)], 1e-3 * c11)
        self.assert_close(frame["eigenvalues"], sorted([c11 - c12, c11 - c12, 2 * c44, 2 * c44, 2 * c44, c11 + 2 * c12]), 1e-2 * c11)
        moduli = frame["moduli"]
        self.assert_close([moduli["bulk"][name] for name in ("voigt", "reuss", "hill")], 3 * [(c11 + 2 * c12) / 3], 1e-3 * c11)
        self.assert_close([moduli["shear"]["voigt"]], [(c11 - c12 + 3 * c44) / 5], 1e-3 * c11)

        rows = {line.strip()[:2]: line.split()[1:] for line in result.stdout.splitlines() if re.match(r" +(xx|yy|zz|yz|xz|xy) +-?\d", line)}
        self.assertEqual(list(rows), document["components"])
        for name, row in zip(document["components"], stiffness):
            self.assert_close(numbers(rows[name]), row, 6e-3)
        means = re.search(r"bulk modulus/GPa +(\S+) +(\S+) +(\S+)\n", result.stdout)
        self.assert_close(numbers(means.groups()), [moduli["bulk"][name] for name in ("voigt", "reuss", "hill")], 6e-3)
        self.assertIn("mechanically stable                 yes", result.stdout)
        self.assertIn(f"{c11:.2f}", self.assert_report("report", 2))

        volumes = mlff("eos", self.relaxed(), "--model", "analytic", "--range", "2", "--json", "-")
        bulk = json.loads(volumes.stdout)["frames"][0]["fit"]["bulk_modulus"]
        self.assert_close([bulk], [moduli["bulk"]["hill"]], 2e-3 * bulk)

    def test_an_unstable_crystal_is_a_failed_check(self):
        result = mlff("elastic", self.path("cubic.xyz", argon(2.0, atoms=1)), "--model", "analytic", "--json", self.path("elastic.json"), "--report", self.path("report"))
        self.assert_fails(result, 1, "cubic.xyz: frame 0: ", "not mechanically stable")
        with open(self.path("elastic.json")) as file:
            frame, = json.load(file)["frames"]
        self.assertIs(frame["stable"], False)
        self.assertLess(frame["eigenvalues"][0], 0)
        self.assertEqual([frame[key] for key in ("compliance", "moduli")], [None, None])
        self.assertIn("not mechanically stable", self.assert_report("report", 1))

    def test_stress_is_refused_and_reported(self):
        result = mlff("elastic", self.path("argon.xyz", argon(2.5)), "--model", "analytic", "--no-relax", "--json", self.path("elastic.json"), "--report", self.path("report"))
        self.assert_fails(result, 1, "frame 0: the crystal has a stress of ", "relax the cell")
        with open(self.path("elastic.json")) as file:
            frame, = json.load(file)["frames"]
        self.assertIsNone(frame["stiffness"])
        self.assertGreater(abs(frame["residual_stress"][0]), 1)
        self.assert_report("report", 0)
        result = mlff("elastic", self.relaxed(), "--model", "analytic", "--no-relax", "--clamped", "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        self.assertTrue(document["clamped"])
        self.assertEqual(document["frames"][0]["moves"], 0)

    def test_bad_input(self):
        crystal = self.path("argon.xyz", argon(2.7))
        for arguments, code, words in (
                ([crystal, "--strain", "0"], 2, "a strain of 0, expected more than 0"),
                ([crystal, "--strain", "0.2"], 2, "a strain of 0.2"),
                ([crystal, "--strain", "nan"], 2, "a strain of nan"),
                ([crystal, "--smax", "-1"], 2, "the stress limit is -1"),
                ([crystal, "--steps", "0"], 2, "--steps"),
                ([self.path("none.xyz", "")], 3, "no frame in the file"),
                ([self.path("slab.xyz", argon(2.7, "T T F"))], 3, "slab.xyz: frame 0: elasticity needs a crystal that is periodic in all directions; direction 3 is not")):
            with self.subTest(arguments=arguments[1:] or arguments):
                self.assert_fails(mlff("elastic", *arguments, "--model", "analytic"), code, words)
        result = mlff("elastic", crystal, "--model", "analytic", "--steps", "1")
        self.assert_fails(result, 1, "the cell did not converge within 1 steps")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
