#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mlff md --beads: files, the same on any number of threads and after a stop, the classical limit, messages. Usage: test_path_integrals.py MLFF"""
import os
import signal
import subprocess
import sys
import time
import unittest

from command_test import CommandTest

MLFF = sys.argv[1]
TRIMER = "3\nProperties=species:S:1:pos:R:3 pbc=\"F F F\"\nAr 0 0 0\nAr 2.35 0 0\nAr 0.1 2.3 0\n"
COLUMNS = "step,time_fs,centroid_temperature_K,ring_temperature_K,potential_eV,primitive_kinetic_eV,virial_kinetic_eV,total_eV,conserved_eV"


def run(*arguments):
    return subprocess.run([MLFF, *arguments], capture_output=True, text=True, timeout=100)


class TestBeads(CommandTest):
    def setUp(self):
        super().setUp()
        self.input = self.path("trimer.xyz", TRIMER)
        self.output = self.path("out")

    def arguments(self, *more, output=None, ensemble="nvt", temperature=("--temperature", "20")):
        return ("md", self.input, "--model", "analytic", "--device", "cpu", "--ensemble", ensemble, "--dt", "2", "--output-every", "10",
                "--log-every", "5", *temperature, "--output", output or self.output, *more)

    def md(self, *more, **options):
        return run(*self.arguments(*more, **options))

    def files(self, folder):
        found = {}
        for name in sorted(os.listdir(folder)):
            if name.endswith((".xyz", ".csv")):
                with open(os.path.join(folder, name)) as file:
                    found[name] = file.read()
        return found

    def rows(self, folder):
        with open(os.path.join(folder, "log.csv")) as file:
            lines = file.read().splitlines()
        self.assertEqual(lines[0], COLUMNS)
        return [dict(zip(COLUMNS.split(","), map(float, line.split(",")))) for line in lines[1:]]

    def test_files_and_restart(self):
        result = self.md("--beads", "5", "--write-beads", "--steps", "40", "--threads", "1")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"^model analytic, cpu, \w+, 3 atoms, 5 beads\nstep 40 of 40, \S+ bead-steps/s, \S+ K, drift \S+ meV/atom\n$")
        files = self.files(self.output)
        self.assertEqual(list(files), [f"{i:04}.xyz" for i in range(5)] + ["centroid.xyz", "log.csv"])
        rows = self.rows(self.output)
        self.assertEqual([row["step"] for row in rows], list(range(0, 41, 5)))
        self.assertAlmostEqual(rows[0]["centroid_temperature_K"], 20, places=6)
        for row in rows:
            self.assertAlmostEqual(row["total_eV"], row["potential_eV"] + row["virial_kinetic_eV"], places=9)
            self.assertLess(abs(row["conserved_eV"] - rows[0]["conserved_eV"]), 1e-3)
        # The centroid of a frame is the mean of its beads, and its energy is not taken for that of a structure.
        frames = [files[f"{i:04}.xyz"].splitlines()[-3:] for i in range(5)]
        centroid = files["centroid.xyz"].splitlines()[-3:]
        for atom in range(3):
            for k in range(1, 4):
                mean = sum(float(frame[atom].split()[k]) for frame in frames) / 5
                self.assertLess(abs(float(centroid[atom].split()[k]) - mean), 1e-9)
        self.assertEqual(files["centroid.xyz"].count("mean_energy_of_beads="), 5)
        self.assertNotIn(" energy=", files["centroid.xyz"])
        self.assertIn(" energy=", files["0000.xyz"])

        other = self.path("other")
        self.assertEqual(self.md("--beads", "5", "--write-beads", "--steps", "13", "--threads", "2", output=other).returncode, 0)
        restart = os.path.join(other, "all.restart")
        go_on = ("--steps", "40", "--restart", restart)
        self.assert_fails(self.md("--beads", "5", *go_on, output=other), 2, "with --write-beads")
        self.assert_fails(self.md("--beads", "4", *go_on, output=other), 2, "has 5 beads, not 4")
        self.assert_fails(self.md("--beads", "5", "--seed", "8", *go_on, output=other), 2, "was written with --seed 1")
        self.assert_fails(self.md("--beads", "5", "--steps", "13", "--restart", restart, output=other), 2, "already at step 13")
        self.assert_fails(self.md("--all", *go_on, output=other), 2, "structures, but there are 1 now")
        result = self.md("--beads", "5", "--write-beads", "--threads", "3", *go_on, output=other)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(self.files(other), files)
        self.assert_fails(self.md("--beads", "5", "--steps", "40"), 2, "all.restart", "already exists")

        # Ring-polymer dynamics that begin with these beads.
        result = self.md("--beads", "5", "--beads-from", restart, "--steps", "40", ensemble="nve", output=self.path("rpmd"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        first, last = self.rows(self.path("rpmd"))[0], self.rows(self.path("rpmd"))[-1]
        self.assertAlmostEqual(first["potential_eV"], self.rows(other)[-1]["potential_eV"], places=10)
        self.assertLess(abs(last["conserved_eV"] - first["conserved_eV"]), 1e-3)
        self.assertGreater(abs(last["potential_eV"] - first["potential_eV"]), 1e-6)

    def test_one_bead_is_plain_dynamics(self):
        self.assertEqual(self.md("--beads", "1", "--steps", "30").returncode, 0)
        log = self.path("plain.csv")
        result = run("md", self.input, "--model", "analytic", "--device", "cpu", "--ensemble", "nvt", "--dt", "2", "--temperature", "20", "--steps", "30", "--log", log, "--log-every", "5")
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(log) as file:
            plain = [line.split(",") for line in file.read().splitlines()[1:]]
        rows = self.rows(self.output)
        self.assertEqual(len(rows), len(plain))
        for row, expected in zip(rows, plain):
            self.assertAlmostEqual(row["centroid_temperature_K"], float(expected[2]), places=6)
            self.assertAlmostEqual(row["potential_eV"], float(expected[3]), places=9)
            self.assertAlmostEqual(row["conserved_eV"], float(expected[6]), places=9)

    def test_a_signal_stops_it(self):
        process = subprocess.Popen([MLFF, *self.arguments("--beads", "4", "--steps", "100000000")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            self.assertIn("model analytic", process.stdout.readline())
            time.sleep(0.2)
            process.send_signal(signal.SIGTERM)
            error = process.communicate(timeout=60)[1]
        finally:
            process.kill()
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertRegex(error, r"^mlff: stopped by a signal after step (\d+); continue with --restart \S*all.restart\n$")
        step = int(error.split("step ")[1].split(";")[0])
        result = self.md("--beads", "4", "--steps", str(step + 10), "--restart", os.path.join(self.output, "all.restart"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        whole = self.path("whole")
        if step < 20000:
            self.assertEqual(self.md("--beads", "4", "--steps", str(step + 10), output=whole).returncode, 0)
            self.assertEqual(self.files(self.output), self.files(whole))

    def test_one_that_breaks(self):
        self.input = self.path("close.xyz", "2\n\nAr 0 0 0\nAr 0.4 0 0\n")
        self.assert_fails(self.md("--beads", "3", "--steps", "60", ensemble="nve"), 3, "above the limit of 10000 K", "centroid.last.xyz")
        self.assertTrue(os.path.exists(os.path.join(self.output, "centroid.last.xyz")))

    def test_bad_usage(self):
        self.assert_fails(run("md", self.input, "--beads", "4", "--ensemble", "nvt", "--temperature", "20", "--dt", "1", "--steps", "1"), 2, "--beads needs --output DIR")
        for words, arguments, options in [
            (["--beads-from and --write-beads need --beads"], ("--write-beads",), {}),
            (["--all", "cannot be given with --beads"], ("--beads", "4", "--all"), {}),
            (["--replicas", "cannot be given with --beads"], ("--beads", "4", "--replicas", "3"), {}),
            (["--ensemble npt cannot be given with --beads"], ("--beads", "4", "--pressure", "1"), {"ensemble": "npt"}),
            (["--thermostat nose-hoover cannot be given with --beads", "PILE-L"], ("--beads", "4", "--thermostat", "nose-hoover"), {}),
            (["--log cannot be given with --beads"], ("--beads", "4", "--log", "x.csv"), {}),
            (["--remove-momentum-every cannot be given with --beads"], ("--beads", "4", "--remove-momentum-every", "4"), {"ensemble": "nve"}),
            (["--watch, --stop-sigma or --harvest cannot"], ("--beads", "4", "--stop-sigma", "1"), {}),
            (["some atoms are fixed"], ("--beads", "4", "--fix", "0"), {}),
            (["--beads needs --temperature"], ("--beads", "4"), {"ensemble": "nve", "temperature": ()}),
            (["expected a finite number above 0"], ("--beads", "4"), {"temperature": ("--temperature", "0")}),
        ]:
            with self.subTest(arguments=arguments):
                self.assert_fails(self.md("--steps", "1", *arguments, **options), 2, *words)
        self.assertFalse(os.path.exists(self.output))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
