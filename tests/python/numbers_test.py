# SPDX-License-Identifier: MIT
"""What the tests of the Python package have in common: arrays compared in a form that NaN fails, structures, and the command beside the package."""
import json
import os
import subprocess
import sys
import unittest

import numpy as np

MLFF, GOLDEN_DIR, SYSTEMS_DIR = sys.argv[1:4]

BENZENE = os.path.join(SYSTEMS_DIR, "benzene.xyz")


def read_molecule(path):
    """(symbols, positions) of a file of one frame without a cell"""
    with open(path) as file:
        lines = file.read().splitlines()[2:]
    return [line.split()[0] for line in lines], np.array([line.split()[1:4] for line in lines], dtype=float)


def benzene():
    symbols, positions = read_molecule(BENZENE)
    return np.array([{"H": 1, "C": 6}[symbol] for symbol in symbols], np.int32), positions


def water_box(side=2, seed=1):
    """side^3 turned molecules in a periodic cube: numbers, positions, cell"""
    random = np.random.default_rng(seed)
    molecule = np.array([[0.0, 0.0, 0.117], [0.0, 0.757, -0.469], [0.0, -0.757, -0.469]])
    places = np.array(list(np.ndindex(side, side, side))) * 3.2
    positions = np.concatenate([molecule @ np.linalg.qr(random.normal(size=(3, 3)))[0] + place for place in places])
    return np.array([8, 1, 1] * side**3, np.int32), positions, np.eye(3) * 3.2 * side


def command_frames(path, *options):
    """What `mlff eval` says about a file"""
    found = subprocess.run([MLFF, "eval", path, "--json", "-", *options], capture_output=True, text=True, check=True, timeout=120)
    return json.loads(found.stdout)["frames"]


class NumbersTest(unittest.TestCase):
    def assert_close(self, found, expected, tolerance, what=""):
        found, expected = np.asarray(found, float), np.asarray(expected, float)
        self.assertEqual(found.shape, expected.shape, what)
        self.assertTrue((np.abs(found - expected) <= tolerance).all(), f"{what}: off by {np.abs(found - expected).max(initial=0)}, more than {tolerance}")


class TheCheckItself(NumbersTest):
    def test_rejects(self):
        for found, expected in ((float("nan"), 0.0), (0.0, float("nan")), (1000.0, -1.0), ([1.0, 2.0], [1.0, 2.1])):
            with self.assertRaises(AssertionError):
                self.assert_close(found, expected, 0.01)
        with self.assertRaises(AssertionError):
            self.assert_close([1.0], [[1.0]], 1.0)
