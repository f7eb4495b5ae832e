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
TRUSTED = os.path.join(GOLDEN_DIR, "..", "painn", "one_block_no_repulsion.safetensors")  # a model with a trust meter beside it, for hydrogen and oxygen


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


def read_trust_meter(path):
    """(config, {name: array}) of the trust meter beside a model"""
    types = {"F64": "<f8", "F32": "<f4", "I64": "<i8"}
    with open(path + ".trust", "rb") as file:
        contents = file.read()
    begin = 8 + int.from_bytes(contents[:8], "little")
    header = json.loads(contents[8:begin])
    config = json.loads(header.pop("__metadata__")["config"])
    data = contents[begin:]
    return config, {name: np.frombuffer(data[slice(*entry["data_offsets"])], types[entry["dtype"]]).reshape(entry["shape"]).astype(float)
                    for name, entry in header.items()}


def what_the_meter_says(path, numbers, positions, descriptors):
    """(expected errors, novelties) of a molecule by the formulas"""
    config, arrays = read_trust_meter(path)
    elements = list(arrays["atomic_numbers"].astype(int))
    count, pairs = len(numbers), np.triu_indices(config["components"])
    scores, novelties = np.full(count, config["highest_score"]), np.full(count, 1000.0)
    for atom, z in enumerate(numbers):
        if z not in elements:
            continue
        element = elements.index(z)
        x = descriptors[atom] - arrays["centers"][element]
        y = x @ arrays["directions"]
        rest = max(x @ x - arrays["variances"] @ y**2, 0.0) / config["rest_variance"]
        novelties[atom] = np.sqrt((y @ y + rest) / arrays["limits"][element])
        a = np.clip(y, -5, 5)
        score = arrays["offsets"][element] + arrays["linear"] @ a + arrays["quadratic"] @ (a[pairs[0]] * a[pairs[1]]) + config["rest_weight"] * np.log(rest + 1e-12)
        scores[atom] = np.clip(score, config["lowest_score"], config["highest_score"])
    squares = ((positions[:, None] - positions)**2).sum(axis=2) / config["radius"]**2
    weights = np.where((squares < 1) & ~np.eye(count, dtype=bool), (1 - squares)**2, 0)
    total = weights.sum(axis=1)
    around = np.where(total > 1e-9, np.log(weights @ np.exp(scores) / np.maximum(total, 1e-9)), scores)
    offsets = np.array([arrays["final_offsets"][elements.index(z)] if z in elements else 0.0 for z in numbers])
    errors = np.exp(offsets + config["own_weight"] * scores + config["neighbor_weight"] * around + config["count_weight"] * total)
    return np.where(novelties > 1, np.maximum(errors, config["outside_error"]), errors), novelties


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
