# SPDX-License-Identifier: MIT
"""What users see where kernels of the CPU compute wrong numbers: the library notices, takes others, and says so.

  python test_broken_kernels.py MLFF MLFF_BROKEN

MLFF_BROKEN is the same command with kernels that MLFF_TEST_BROKEN breaks."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

MLFF, BROKEN = sys.argv[1:3]
WATER = """6
Lattice="8 0 0 0 8 0 0 0 8" Properties=species:S:1:pos:R:3 pbc="T T T"
O 0.0 0.0 0.119
H 0.0 0.763 -0.477
H 0.0 -0.763 -0.477
O 2.9 0.1 0.2
H 3.4 0.85 -0.1
H 3.5 -0.6 0.1
"""


class BrokenKernels(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.water = os.path.join(self.folder.name, "water.xyz")
        with open(self.water, "w") as file:
            file.write(WATER)

    def run_command(self, command, *arguments, **variables):
        environment = {**{name: value for name, value in os.environ.items() if name not in ("MLFF_CPU", "MLFF_TEST_BROKEN")}, "MLFF_MODELS": self.folder.name, **variables}
        return subprocess.run([command, *arguments], capture_output=True, text=True, timeout=100, env=environment)

    def evaluate(self, command, *options, **variables):
        return self.run_command(command, "eval", self.water, "--model", "self-test", "--json", "-", *options, **variables)

    def doctor(self, **variables):
        result = self.run_command(BROKEN, "doctor", "--json", "-", **variables)
        return result, json.loads(result.stdout)

    def names(self):
        return [state["name"] for state in self.doctor()[1]["kernel_checks"]]

    def assert_same_numbers(self, result, expected):
        (found,), (right,) = json.loads(result.stdout)["frames"], json.loads(expected.stdout)["frames"]
        pairs = [(found["energy"], right["energy"])] + [pair for rows in zip(found["forces"], right["forces"]) for pair in zip(*rows)]
        self.assertGreater(max(abs(x) for x, _ in pairs[1:]), 0.1)
        self.assertTrue(all(abs(x - y) <= 2e-5 for x, y in pairs), pairs)

    def test_kernels_that_are_right_are_used_in_silence(self):
        result, report = self.doctor()
        self.assertEqual((result.returncode, result.stderr, report["usable"]), (0, "", True))
        self.assertEqual(report["kernels"], self.names()[0])
        self.assertEqual([(state["works"], state["why_failed"]) for state in report["kernel_checks"]], [(True, None)] * len(self.names()))
        self.assertEqual(self.evaluate(BROKEN).stderr, "")

    def test_the_next_best_are_used_and_the_warning_says_so(self):
        names, expected = self.names(), self.evaluate(MLFF, "--device", "reference")
        for count in range(1, len(names)):
            result = self.evaluate(BROKEN, MLFF_TEST_BROKEN=",".join(names[:count]))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assert_same_numbers(result, expected)
            for name in names[:count]:
                self.assertIn(f"mlff: warning: the {name} CPU kernels compute wrong numbers on this machine and are not used: evaluate_polynomial", result.stderr)
            self.assertNotIn(names[count], result.stderr)
            self.assertEqual(self.run_command(BROKEN, "verify", "self-test", MLFF_TEST_BROKEN=",".join(names[:count])).returncode, 0)

    def test_without_right_kernels_there_are_no_numbers(self):
        everything = ",".join(self.names())
        for precision in ("mixed", "fp64"):
            result = self.evaluate(BROKEN, "--precision", precision, MLFF_TEST_BROKEN=everything)
            self.assertEqual((result.returncode, result.stdout), (4, ""))
            self.assertIn("all CPU kernels", result.stderr)
        self.assert_same_numbers(self.evaluate(BROKEN, "--device", "reference", MLFF_TEST_BROKEN=everything), self.evaluate(MLFF))

    def test_kernels_that_are_asked_for_by_name_are_refused_if_they_are_wrong(self):
        best = self.names()[0]
        result = self.evaluate(BROKEN, MLFF_TEST_BROKEN=best, MLFF_CPU=best)
        self.assertEqual((result.returncode, result.stdout), (4, ""))
        self.assertIn(f"MLFF_CPU asks for the {best} kernels, which compute wrong numbers", result.stderr)

    def test_doctor_shows_them_and_fails(self):
        names = self.names()
        result, report = self.doctor(MLFF_TEST_BROKEN=names[0])
        self.assertEqual((result.returncode, report["usable"]), (4, False))
        self.assertEqual(report["kernels"], names[1] if len(names) > 1 else None)
        self.assertEqual([state["works"] for state in report["kernel_checks"]], [False] + [True] * (len(names) - 1))
        self.assertIn("evaluate_polynomial in single precision is off by", report["kernel_checks"][0]["why_failed"])
        works = {name: {backend["works"] for backend in report["backends"] if backend["kernels"] == name} for name in names}
        self.assertEqual(works, {name: {name != names[0]} for name in names})
        text = self.run_command(BROKEN, "doctor", MLFF_TEST_BROKEN=names[0])
        self.assertEqual(text.returncode, 4)
        self.assertIn(f"for {names[0]}: BROKEN, not used: evaluate_polynomial", text.stdout)
        self.assertIn("NOT usable", text.stdout)


unittest.main(argv=sys.argv[:1])
