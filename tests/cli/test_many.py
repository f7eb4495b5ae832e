#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mlff relax and mlff md with many structures of one file: the same results in any batch, files, stop, going on, messages. Usage: test_many.py MLFF"""
import os
import random
import signal
import subprocess
import sys
import time
import unittest

from command_test import CommandTest

MLFF = sys.argv[1]
SHAPE = ((0, 0, 0), (2.3, 0, 0), (0, 2.3, 0), (0, 0, 2.3))


def run(*arguments):
    return subprocess.run([MLFF, *arguments], capture_output=True, text=True, timeout=100)


def clusters(count, seed=1):
    """Argon clusters of two to four atoms, shaken."""
    numbers = random.Random(seed)
    frames = []
    for k in range(count):
        size = 2 + k % 3
        lines = [" ".join(["Ar"] + [f"{x + numbers.gauss(0, 0.15):.6f}" for x in atom]) for atom in SHAPE[:size]]
        frames.append(f"{size}\nProperties=species:S:1:pos:R:3 pbc=\"F F F\"\n" + "\n".join(lines) + "\n")
    return frames


class TestRelax(CommandTest):
    def setUp(self):
        super().setUp()
        self.frames = clusters(12)
        self.input = self.path("many.xyz", "".join(self.frames))
        self.output = self.path("relaxed.xyz")

    def read(self, path):
        with open(path) as file:
            return file.read()

    def relax(self, *arguments):
        return run("relax", self.input, "--model", "analytic", "--device", "cpu", "--fmax", "1e-3", "--output", self.output, *arguments)

    def test_any_batch_gives_the_same(self):
        results = []
        for options in (("--batch", "1", "--threads", "1"), ("--batch", "7", "--threads", "2"), ("--threads", "2")):
            result = self.relax(*options)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            results.append((result.stdout, self.read(self.output)))
        self.assertEqual(results[0], results[1])
        self.assertEqual(results[0], results[2])
        self.assertEqual(results[0][1].count("converged=yes"), 12)
        self.assertEqual([int(line.split()[0]) for line in results[0][0].splitlines()[1:]], list(range(12)))
        self.assertFalse(os.path.exists(self.output + ".part"))
        for wrong in ("0", "-3", "many", "2x"):
            self.assert_fails(self.relax("--batch", wrong), 2, "--batch", "auto or a number of atoms")

    def test_an_error_names_its_frame(self):
        self.input = self.path("bad.xyz", "".join(self.frames[:5]) + self.frames[5].replace("Ar", "Xx", 1) + "".join(self.frames[6:]))
        for batch in ("1", "auto"):
            self.assert_fails(self.relax("--batch", batch), 3, "bad.xyz")
            self.assertEqual(self.read(self.output + ".part").count("converged=yes"), 5)
            os.remove(self.output + ".part")
        self.input = self.path("same.xyz", "".join(self.frames[:3]) + "2\n\nAr 0 0 0\nAr 0 0 0\n" + self.frames[3])
        for batch in ("1", "auto"):
            self.assert_fails(self.relax("--batch", batch), 3, "same.xyz: frame 3: atoms 0 and 1 are at the same place; the structures before it are in", "--resume")
            os.remove(self.output + ".part")
        self.input = self.path("first.xyz", "2\n\nAr 0 0 0\nAr 0 0 0\n" + self.frames[3])
        self.assert_fails(self.relax(), 3, "first.xyz: frame 0: atoms 0 and 1 are at the same place\n")
        self.assertFalse(os.path.exists(self.output + ".part"))

    def test_resume(self):
        self.relax()
        whole = self.read(self.output)
        os.remove(self.output)
        cut = whole.index("converged", len(whole) // 2)  # within a frame
        part = self.path("relaxed.xyz.part", whole[:cut])
        self.assert_fails(self.relax(), 2, part, "--resume")
        result = self.relax("--resume")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("going on after", result.stdout)
        self.assertEqual(self.read(self.output), whole)
        self.assertFalse(os.path.exists(part))
        self.assertEqual(self.relax("--resume").returncode, 0)  # nothing to go on with: from the beginning
        self.assertEqual(self.read(self.output), whole)
        self.path("relaxed.xyz.part", whole)
        self.input = self.path("other.xyz", "".join(reversed(self.frames)))
        self.assert_fails(self.relax("--resume"), 2, "frame 0", "is not that of", "other.xyz")
        self.assert_fails(run("relax", self.input, "--resume"), 2, "--resume needs --output")

    def test_a_signal_keeps_what_is_finished(self):
        self.input = self.path("students.xyz", self.read(os.path.join(os.path.dirname(__file__), "../data/student_frames.xyz")))
        command = [MLFF, "relax", self.input, "--device", "cpu", "--threads", "1", "--batch", "1", "--fmax", "0.3", "--output", self.output]
        whole = subprocess.run([*command[:-1], self.path("whole.xyz")], capture_output=True, text=True)
        self.assertEqual(whole.returncode, 0, whole.stderr)
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        part = self.output + ".part"
        end = time.time() + 60
        while time.time() < end and running.poll() is None and not (os.path.exists(part) and os.path.getsize(part) > 0):
            time.sleep(0.001)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=60)
        if running.returncode == 0:
            self.skipTest("the run was faster than the signal")
        self.assertEqual(running.returncode, 128 + signal.SIGINT)
        self.assertRegex(errors, r"^mlff: stopped by a signal after \d+ structures; continue with --resume\n$")
        self.assertFalse(os.path.exists(self.output))
        self.assertEqual(subprocess.run([*command, "--resume"], capture_output=True).returncode, 0)
        self.assertEqual(self.read(self.output), self.read(self.path("whole.xyz")))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
