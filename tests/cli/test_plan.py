# SPDX-License-Identifier: MIT
"""mlff bench --calibrate, mlff plan and the warnings that follow from them. Usage: test_plan.py MLFF"""
import json
import os
import subprocess
import sys
import unittest

from command_test import CommandTest

MLFF = sys.argv[1]
WATER = "O {0} 0 0\nH {1} 0 0\nH {2} 0.93 0\n"


def water(count):
    """Molecules in a row, 3 angstrom apart, periodic."""
    atoms = "".join(WATER.format(3 * i, 3 * i + 0.96, 3 * i - 0.24) for i in range(count))
    return f'{3 * count}\nLattice="{3 * count} 0 0 0 9 0 0 0 9" Properties=species:S:1:pos:R:3 pbc="T T T"\n{atoms}'


class Planning(CommandTest):
    def setUp(self):
        super().setUp()
        self.calibrations = self.path("calibrations")

    def run_mlff(self, *arguments):
        environment = dict(os.environ, MLFF_CALIBRATIONS=self.calibrations)
        return subprocess.run([MLFF, *arguments], capture_output=True, text=True, timeout=120, env=environment)

    def plan(self, path, *options):
        result = self.run_mlff("plan", path, "--device", "cpu", "--threads", "1", "--json", "-", *options)
        return result, json.loads(result.stdout)

    def calibrate(self, *options):
        result = self.run_mlff("bench", "--calibrate", "--quick", "--device", "cpu", "--threads", "1", *options)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        return result.stdout

    def test_without_a_calibration(self):
        result, plan = self.plan(self.path("w.xyz", water(2) + water(3) + water(1)), "--precision", "fp64")
        self.assert_fails(result, 3, "no calibration", "with --calibrate", "mlff bench --calibrate --device cpu --precision fp64 --threads 1")
        self.assertEqual((plan["frame"], plan["atoms"], plan["device"], plan["device_reason"], plan["precision"], plan["threads"]), (1, 9, "cpu", "asked for", "fp64", 1))
        self.assertGreater(plan["edges"], 9)
        self.assertGreater(plan["memory"]["available_B"], 1 << 20)
        self.assertEqual((plan["memory"]["needed_B"], plan["time"], plan["calibration"]), (None, None, None))
        self.assertIn("no calibration", plan["why_no_calibration"])
        text = self.run_mlff("plan", self.path("w.xyz"), "--device", "cpu", "--threads", "1")
        self.assertEqual(text.returncode, 3)
        self.assertIn("9 atoms", text.stdout)

    def test_calibrated(self):
        self.assertIn("written to " + self.calibrations, self.calibrate())
        (name,) = os.listdir(self.calibrations)
        with open(os.path.join(self.calibrations, name)) as file:
            calibration = json.load(file)
        self.assertEqual((calibration["format"], calibration["version"], calibration["device"], calibration["threads"], calibration["quick"]), ("mlff calibration", 1, "cpu", 1, True))
        for number in ("floor_B", "fixed_B", "B_per_atom", "B_per_edge"):
            self.assertGreaterEqual(calibration["memory"][number], 0)
        self.assertEqual(len({(sample["atoms"], sample["edges"]) for sample in calibration["memory"]["samples"]}), len(calibration["memory"]["samples"]))

        small, large = self.path("s.xyz", water(2)), self.path("l.xyz", water(64))
        result, plan = self.plan(small)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIs(plan["memory"]["fits"], True)
        self.assertEqual(plan["memory"]["from"], "calibration")
        self.assertGreater(plan["memory"]["largest_atoms"], 1000)
        self.assertAlmostEqual(plan["time"]["ns_per_day"], plan["time"]["steps_per_s"] * 0.5e-6 * 86400, places=9)
        larger = self.plan(large, "--dt", "1")[1]
        self.assertGreater(larger["memory"]["needed_B"], plan["memory"]["needed_B"])
        self.assertGreater(larger["time"]["evaluation_s"], plan["time"]["evaluation_s"])
        self.assertEqual(larger["time"]["time_step_fs"], 1)

        # The figures are those of the file: fixed + per atom + per edge.
        cost = calibration["memory"]
        expected = cost["process_B"] + max(cost["floor_B"], cost["fixed_B"] + larger["atoms"] * cost["B_per_atom"] + larger["edges"] * cost["B_per_edge"])
        self.assertLess(abs(larger["memory"]["needed_B"] - expected), 2 + 1e-6 * expected)

        # Another precision has no calibration, a calibration of another machine is refused, and so is another version.
        self.assertEqual(self.plan(small, "--precision", "fp64")[0].returncode, 3)
        elsewhere = json.loads(json.dumps(calibration))
        elsewhere["machine"]["processor"] = "Another CPU"
        options = ["plan", small, "--device", "cpu", "--threads", "1", "--calibration"]
        self.assert_fails(self.run_mlff(*options, self.path("e.json", json.dumps(elsewhere))), 3, "e.json", "Another CPU")
        elsewhere = dict(calibration, version=7)
        self.assert_fails(self.run_mlff(*options, self.path("v.json", json.dumps(elsewhere))), 3, "v.json", "version 7")
        self.assert_fails(self.run_mlff(*options, "nowhere.json"), 3, "nowhere.json")

        # The suite holds the prediction against measurements; whether times agree is for a quiet machine.
        path = self.path("b.json")
        checked = self.run_mlff("bench", "--suite", "plan", "--quick", "--device", "cpu", "--threads", "1", "--json", path)
        self.assertIn(checked.returncode, (0, 1), checked.stderr)
        with open(path) as file:
            rows = json.load(file)["rows"]
        self.assertEqual([row["name"] for row in rows], ["memory, 384 atoms", "evaluation, 384 atoms", "a step, 384 atoms"])
        for row in rows:
            (check,) = row["checks"]
            self.assertEqual(check["upper"], 15 if row["unit"] == "B" else 30)
            self.assertAlmostEqual(check["value"], 100 * abs(row["figures"]["predicted " + row["unit"]] / row["median"] - 1), places=6)
        self.assertTrue(rows[0]["checks"][0]["passed"], rows[0])

        # With absurd numbers it does not fit: plan says so, and eval, md and relax warn and do the same as before.
        calibration["memory"]["B_per_atom"] = 1e15
        before = self.run_mlff("eval", small, "--device", "cpu", "--threads", "1", "--json", "-")
        self.assertEqual((before.returncode, before.stderr), (0, ""))
        with open(os.path.join(self.calibrations, name), "w") as file:
            json.dump(calibration, file)
        result, plan = self.plan(small)
        self.assertEqual((result.returncode, plan["memory"]["fits"], plan["memory"]["largest_atoms"]), (1, False, 0))
        after = self.run_mlff("eval", small, "--device", "cpu", "--threads", "1", "--json", "-")
        self.assert_fails(after, 0, "warning", "s.xyz: frame 0", "mlff plan")
        self.assertEqual(after.stdout, before.stdout)
        md = self.run_mlff("md", small, "--device", "cpu", "--threads", "1", "--ensemble", "nve", "--steps", "2", "--dt", "0.5", "--temperature", "100", "--checkpoint", self.path("c"))
        self.assert_fails(md, 0, "warning", "s.xyz")
        relax = self.run_mlff("relax", small, "--device", "cpu", "--threads", "1", "--fmax", "1000")
        self.assert_fails(relax, 0, "warning", "s.xyz: frame 0")
        self.assertEqual(self.run_mlff("eval", small, "--device", "cpu", "--threads", "1", "--model", "analytic").stderr, "")  # a calibration of another model

    def test_a_file_of_its_own(self):
        path = self.path("mine.json")
        self.calibrate("--model", "analytic", "--calibration", path)
        self.assertFalse(os.path.exists(self.calibrations))
        result, plan = self.plan(self.path("w.xyz", water(2)), "--model", "analytic", "--calibration", path)
        self.assertEqual((result.returncode, plan["calibration"]["quick"]), (0, True))

    def test_calibrates_once_if_asked(self):
        water_box, path = self.path("w.xyz", water(2)), self.path("mine.json")
        for options in ((), ("--calibration", path)):
            first, plan = self.plan(water_box, "--model", "analytic", "--calibrate", "--quick", *options)
            self.assertEqual((first.returncode, first.stderr), (0, ""))
            self.assertEqual((plan["calibration"]["quick"], plan["memory"]["fits"]), (True, True))
            again, same = self.plan(water_box, "--model", "analytic", "--calibrate", *options)  # not measured again
            self.assertEqual((again.returncode, same["calibration"]), (0, plan["calibration"]))
        self.assertEqual(len(os.listdir(self.calibrations)), 1)
        self.assertTrue(os.path.exists(path))
        failed = self.run_mlff("plan", water_box, "--calibrate", "--quick", "--calibration", self.path("no/where.json"))
        self.assert_fails(failed, 3, "no/where.json")
        self.assertEqual(failed.stdout, "")

    def test_bad_usage(self):
        self.assert_fails(self.run_mlff("plan", self.path("w.xyz", water(1)), "--quick"), 2, "--quick", "--calibrate")
        bad = self.path("x.xyz", "1\n\nFe 0 0 0\n")
        self.assert_fails(self.run_mlff("plan", bad), 3, "x.xyz: frame 0", "Fe")
        self.assert_fails(self.run_mlff("plan", self.path("none.xyz", "")), 3, "no frame")
        self.assert_fails(self.run_mlff("plan", "nowhere.xyz"), 3, "nowhere.xyz")
        self.assert_fails(self.run_mlff("plan", self.path("w.xyz", water(1)), "--dt", "0"), 2, "--dt")
        self.assert_fails(self.run_mlff("plan", self.path("w.xyz"), "--device", "toaster"), 2, "toaster")
        self.assert_fails(self.run_mlff("bench", "--calibrate", "--baseline", "b.json"), 2, "--calibrate", "--baseline")
        self.assert_fails(self.run_mlff("bench", "--calibrate", "--suite", "md"), 2, "--calibrate", "--suite")
        self.assert_fails(self.run_mlff("plan", self.path("w.xyz"), "--device", "cuda:99"), 4, "cuda:99")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
