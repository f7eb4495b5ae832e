# SPDX-License-Identifier: MIT
"""mlff neb as a command: paths, files, Ctrl-C, exit codes, messages. Usage: test_neb.py MLFF EXAMPLES"""
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from command_test import CommandTest

MLFF = sys.argv[1]
ETHANOL = pathlib.Path(sys.argv[2]) / "ethanol.xyz"
GAUCHE = """9
Properties=species:S:1:pos:R:3
C -0.854405 0.223518 0.241798
C 0.387146 -0.358540 -0.401459
O 1.531580 0.384308 -0.007311
H -1.747551 -0.327802 -0.065135
H -0.974936 1.275795 -0.035862
H -0.777063 0.189189 1.333495
H 0.528307 -1.403173 -0.108021
H 0.310280 -0.313797 -1.491704
H 2.305157 -0.019216 -0.436671
"""
BARRIER = 0.10806  # eV, from ASE's NEB with forces of the built-in model, to 0.002 eV/A
SQUARE = "4\nProperties=species:S:1:pos:R:3{}\nAr 0 0 0\nAr 2.1 0 0\nAr 1.0 1.8 0\nAr {} 0.6 {}\n"


def run(*arguments):
    return subprocess.run([MLFF, "neb", *arguments, "--threads", "1"], capture_output=True, text=True, timeout=60)


class Paths(CommandTest):
    def setUp(self):
        super().setUp()
        self.ends = (str(ETHANOL), self.path("gauche.xyz", GAUCHE))

    def results(self, result, code=0):
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return json.loads(result.stdout)

    def test_methods_agree_with_known_barrier(self):
        found = {}
        for method in ("neb", "string"):
            found[method] = self.results(run(*self.ends, "--method", method, "--fmax", "0.01", "--precision", "fp64", "--json", "-"))
        found["refined"] = self.results(run(*self.ends, "--no-climb", "--refine", "--precision", "fp64", "--json", "-"))
        for name, path in found.items():
            with self.subTest(name):
                self.assertTrue(path["converged"])
                self.assertLess(abs(path["barrier_forward"] - BARRIER), 3e-4)
                self.assertLess(abs(path["barrier_forward"] - path["barrier_backward"] - path["reaction_energy"]), 1e-9)
                self.assertTrue(path["saddle"]["one_negative"])
                self.assertLess(path["saddle"]["curvatures"][0], -0.1)
                self.assertGreater(path["saddle"]["curvatures"][1], 0.01)
                self.assertLess(path["saddle"]["largest_force"], 0.0101)
                self.assertEqual(len(path["saddle"]["positions"]), 9)
                self.assertEqual(path["saddle"]["refined"], name == "refined")
        self.assertTrue(found["neb"]["saddle"]["climbed"])
        self.assertFalse(found["refined"]["saddle"]["climbed"])

    def test_files_and_going_on(self):
        path, report = self.path("path.xyz"), self.path("report")
        first = run(*self.ends, "--images", "7", "--output", path, "--report", report, "--json", self.path("out.json"))
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertRegex(first.stdout, r"barrier forward  0\.1\d+ eV \(10\.\d kJ/mol\)\nbarrier backward .*\nreaction energy .*\nsaddle: image \d.*exactly one is negative\n")
        with open(self.path("out.json")) as file:
            results = json.load(file)
        self.assertEqual(len(results["images"]), 7)
        evaluated = subprocess.run([MLFF, "eval", path, "--json", "-"], capture_output=True, text=True, timeout=60, check=True)
        for image, frame in zip(results["images"], json.loads(evaluated.stdout)["frames"], strict=True):
            self.assertLess(abs(image["energy"] - frame["energy"]), 1e-4)
            self.assertLess(abs(image["largest_force"] - max(math.hypot(*row) for row in frame["forces"])), 1e-3)
        page = pathlib.Path(report, "report.html").read_text()
        for part in ("<svg", "Energy along the path", "exactly one is negative", 'class="verdict pass"'):
            self.assertIn(part, page)
        self.assertIn("| image |", pathlib.Path(report, "report.md").read_text())
        self.assertEqual(json.loads(pathlib.Path(report, "report.json").read_text()), results)
        # The path as a start: nothing is left to do; and with more images.
        again = self.results(run(path, "--json", "-"))
        self.assertEqual(again["moves"], 0)
        self.assertLess(abs(again["barrier_forward"] - results["barrier_forward"]), 1e-5)
        more = self.results(run(path, "--images", "11", "--json", "-"))
        self.assertEqual(len(more["images"]), 11)
        self.assertTrue(more["converged"])

    def test_not_converged(self):
        result = run(*self.ends, "--steps", "3", "--no-relax-ends", "--output", self.path("early.xyz"))
        self.assert_fails(result, 1, "did not converge within --steps 3", "expected 0.05 or less", "continue with mlff neb " + self.path("early.xyz"))
        self.assertIn("barrier forward", result.stdout)
        with open(self.path("early.xyz")) as file:
            self.assertEqual(file.read().count("energy="), 9)
        self.assert_fails(run(*self.ends, "--steps", "3"), 1, "the ends did not relax to 0.01 eV/A within --steps 3")

    def test_ctrl_c_writes_the_path(self):
        for more in ([], ["--no-relax-ends"]):  # while the ends relax, and while the path does
            output = self.path("stopped.xyz")
            before = set(os.listdir(self.folder))
            process = subprocess.Popen([MLFF, "neb", *self.ends, "--fmax", "1e-30", "--steps", "1000000000", "--output", output, *more],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while set(os.listdir(self.folder)) == before and process.poll() is None:  # until the file is begun
                time.sleep(0.01)
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            text, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, errors)
            self.assertIn("continue with mlff neb " + output, errors)
            self.assertIn("barrier forward", text)
            self.assertTrue(self.results(run(output, "--json", "-"))["converged"])
            os.remove(output)

    def test_fixed_atoms_stay(self):
        start, end = self.path("a.xyz", SQUARE.format("", 1.0, 1.7)), self.path("b.xyz", SQUARE.format("", 1.0, -1.7))
        path = self.results(run(start, end, "--model", "analytic", "--fix", "0-2", "--json", "-", "--output", self.path("p.xyz")))
        self.assertTrue(path["converged"])
        with open(self.path("p.xyz")) as file:
            rows = [line.split() for line in file if line.startswith("Ar")]
        places = [[float(x) for x in row[1:4]] for row in rows]
        for image in range(len(places) // 4):
            self.assertEqual(places[4 * image:4 * image + 3], [[0, 0, 0], [2.1, 0, 0], [1, 1.8, 0]])
        # A marked path needs no --fix.
        self.assertEqual(self.results(run(self.path("p.xyz"), "--model", "analytic", "--json", "-"))["moves"], 0)

    def test_messages(self):
        start = self.ends[0]
        lines = GAUCHE.splitlines()
        swapped = self.path("swapped.xyz", "\n".join(lines[:4] + [lines[5], lines[4]] + lines[6:]) + "\n")
        self.assert_fails(run(start, swapped), 3, "swapped.xyz", "atom 2 is O in the first structure and H in the second")
        fewer = self.path("fewer.xyz", "8\n" + "\n".join(lines[1:10]) + "\n")
        self.assert_fails(run(start, fewer), 3, "9 atoms and the second has 8")
        self.assert_fails(run(start, start), 3, "the ends of the path are the same structure")
        near = self.path("near.xyz", "\n".join(lines[:10] + ["H 1.65 0.45 0.95"]) + "\n")
        self.assert_fails(run(start, near), 3, "the same structure once they are relaxed")
        self.assert_fails(run(start), 3, "one frame; a path needs a second file")
        both = self.path("both.xyz", ETHANOL.read_text() + GAUCHE)
        self.assert_fails(run(both, start), 3, "2 frames, expected one")
        cell = ' Lattice="{} 0 0 0 9 0 0 0 9" pbc="T T T"'
        a, b = (self.path(f"{size}.xyz", SQUARE.format(cell.format(size), 1.0, 1.7)) for size in (9, 10))
        self.assert_fails(run(a, b, "--model", "analytic"), 3, "lattice vector 1 is (9, 0, 0) A in the first structure and (10, 0, 0) A in the second")
        top = self.path("top.xyz", SQUARE.format("", 1.0, 1.7) + SQUARE.format("", 1.0, 0.1).replace("1.0 0.6 0.1", "1.0 1.8 0.1") + SQUARE.format("", 1.0, -1.7))
        self.assert_fails(run(top, "--model", "analytic", "--no-relax-ends"), 3, "image 1 of the path has atoms 2 and 3 only 0.1")
        self.assert_fails(run(*self.ends, "--spring", "0"), 2, "the spring constant is 0")
        self.assert_fails(run(*self.ends, "--images", "2"), 2, "--images")
        self.assert_fails(run(*self.ends, "--method", "other"), 2, "--method")
        self.assert_fails(run(*self.ends, "--output", self.path("no/path.xyz")), 3, "no/path.xyz")

    def test_both_ends_in_one_file(self):
        both = self.path("both.xyz", ETHANOL.read_text() + GAUCHE)
        found, expected = (self.results(run(*files, "--json", "-")) for files in ([both], self.ends))
        self.assertEqual(found, expected)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
