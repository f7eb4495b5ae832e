# SPDX-License-Identifier: MIT
"""mlff hessian and mlff vibrations: their files, and what they refuse. Usage: test_vibrations.py MLFF"""
import json
import math
import os
import subprocess
import sys
import unittest

from command_test import CommandTest

MLFF = sys.argv.pop(1)
WATER = "3\n\nO 0 0 0.119\nH 0 0.763 -0.477\nH 0 -0.763 -0.477\n"
CRYSTAL = '2\nLattice="3.9 0 0 0 3.9 0 0 0 3.9" pbc="T T T"\nAr 0 0 0\nAr 1.95 1.95 1.95\n'


def run(*arguments):
    return subprocess.run([MLFF, *arguments], capture_output=True, text=True, timeout=300)


class Hessians(CommandTest):
    def test_the_matrix(self):
        result = run("hessian", self.path("water.xyz", WATER), "--json", "-")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        frame, = json.loads(result.stdout)["frames"]
        matrix = frame["hessian"]
        self.assertEqual([len(row) for row in matrix], [9] * 9)
        size = max(abs(number) for row in matrix for number in row)
        self.assertGreater(size, 20)  # bonds of hydrogen
        self.assertLess(size, 200)
        for i in range(9):
            for j in range(9):
                self.assertEqual(matrix[i][j], matrix[j][i])
            for axis in range(3):
                self.assertLess(abs(sum(matrix[i][axis::3])), 2e-3 * size)
        self.assertEqual((frame["atoms"], frame["symmetry_operations"]), (3, 4))
        for name in ("step", "step_error", "asymmetry", "sum_rule_error"):
            self.assertLess(frame[name], 1e-4 * size, name)

        # Finite differences of forces of the command itself.
        step, lines = 2e-4, WATER.splitlines()
        moved = []
        for sign in (1, -1):
            symbol, x, y, z = lines[3].split()
            moved.append("\n".join([*lines[:3], f"{symbol} {x} {float(y) + sign * step!r} {z}", lines[4]]) + "\n")
        result = run("eval", self.path("moved.xyz", "".join(moved)), "--precision", "fp64", "--json", "-")
        forward, backward = (frame["forces"] for frame in json.loads(result.stdout)["frames"])
        for atom in range(3):
            for axis in range(3):
                wanted = -(forward[atom][axis] - backward[atom][axis]) / (2 * step)
                self.assertLess(abs(matrix[4][3 * atom + axis] - wanted), 1e-4 * size)

    def test_what_is_refused(self):
        water = self.path("water.xyz", WATER)
        self.assert_fails(run("hessian", water, "--precision", "mixed"), 2, "--precision mixed", "fp64")
        self.assert_fails(run("hessian", water, "--step", "3"), 2, "step", "0.1")
        self.assert_fails(run("hessian", self.path("empty.xyz", "")), 3, "no frame")
        self.assert_fails(run("hessian", self.path("gold.xyz", "1\n\nAu 0 0 0\n")), 3, "frame 0", "Au")
        self.assert_fails(run("vibrations", water, "--temperature", "0"), 2, "--temperature 0")
        self.assert_fails(run("vibrations", water, "--pressure", "-1"), 2, "--pressure -1")
        fixed = self.path("fixed.xyz", "2\nProperties=species:S:1:pos:R:3:move_mask:L:1\nH 0 0 0 F\nH 0 0 0.74 T\n")
        self.assert_fails(run("vibrations", fixed), 3, "frame 0", "move_mask")
        self.assert_fails(run("hessian", water, "--json", self.path("no/such/folder.json")), 3, "folder.json")


class Vibrations(CommandTest):
    def test_water(self):
        modes, report = self.path("modes"), self.path("report")
        result = run("vibrations", self.path("water.xyz", WATER), "--json", self.path("out.json"), "--modes", modes, "--report", report)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("symmetry number 2", result.stdout)
        with open(self.path("out.json")) as file:
            frame, = json.load(file)["frames"]
        frequencies = [mode["frequency"] for mode in frame["modes"]]
        self.assertEqual(frequencies, sorted(frequencies))
        for found, (low, high) in zip(frequencies, ((1400, 1750), (3400, 3900), (3400, 4000)), strict=True):  # measured: 1595, 3657, 3756
            self.assertTrue(low < found < high, frequencies)
        self.assertEqual((frame["formula"], frame["imaginary_modes"], frame["converged"]), ("H2O", 0, True))
        self.assertEqual(len(frame["rigid_frequencies"]), 6)
        for frequency in frame["rigid_frequencies"]:
            self.assertLess(abs(frequency), 5)
        gas = frame["ideal_gas"]
        self.assertTrue(abs(gas["entropy"] * 96485.332 - 188.84) < 1, gas)  # J/(mol K), from tables
        self.assertAlmostEqual(gas["gibbs_energy"], gas["enthalpy"] - 298.15 * gas["entropy"], 9)
        self.assertAlmostEqual(frame["zero_point_energy"], sum(frequencies) / 2 * 1.239841984e-4, 9)
        for mode in frame["modes"]:
            self.assertAlmostEqual(sum(x * x for row in mode["displacements"] for x in row), 1, 9)
        self.assertEqual(sorted(os.listdir(modes)), [f"frame0_mode{mode:03d}.xyz" for mode in range(3)])
        with open(os.path.join(modes, "frame0_mode002.xyz")) as file:
            self.assertEqual(file.read().count("frequency="), 24)
        with open(os.path.join(report, "report.html")) as file:
            page = file.read()
        self.assertIn("<svg", page)
        self.assertIn("H2O", page)

    def test_a_structure_that_is_not_at_rest(self):
        result = run("vibrations", self.path("water.xyz", WATER.replace("0.763", "0.9")), "--no-relax")
        self.assertEqual(result.returncode, 1)
        self.assertIn("largest force", result.stderr)

    def test_a_crystal(self):
        result = run("vibrations", self.path("crystal.xyz", CRYSTAL), "--model", "analytic", "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        frame, = json.loads(result.stdout)["frames"]
        self.assertEqual((len(frame["modes"]), len(frame["rigid_frequencies"])), (3, 3))
        self.assertNotIn("ideal_gas", frame)
        self.assertTrue(all(math.isfinite(mode["frequency"]) for mode in frame["modes"]))


unittest.main()
