#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mlff relax and mlff md with many structures of one file: the same results in any batch, files, stop, going on, messages. Usage: test_many.py MLFF"""
import ctypes
import json
import os
import platform
import random
import signal
import struct
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


def refuse_syncfs():
    """In this process and those it starts, syncfs fails as on a broken disk (a seccomp filter)."""
    number = {"x86_64": 306, "aarch64": 267}[platform.machine()]
    load, jump_if_equal, give = 0x20, 0x15, 0x06
    program = b"".join(struct.pack("HBBI", *row) for row in (
        (load, 0, 0, 0), (jump_if_equal, 0, 1, number), (give, 0, 0, 0x00050000 | 5), (give, 0, 0, 0x7FFF0000)))
    buffer = ctypes.create_string_buffer(program)
    filters = struct.pack("HxxxxxxP", 4, ctypes.addressof(buffer))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(38, 1, 0, 0, 0) != 0 or prctl(22, 2, filters, 0, 0) != 0:
        os._exit(77)


def change_metadata(path, changes):
    """Of a safetensors file; None removes."""
    with open(path, "rb") as file:
        data = file.read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    metadata = {**header["__metadata__"], **changes}
    header["__metadata__"] = {key: value for key, value in metadata.items() if value is not None}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data[8 + size:])


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

    def test_resume_sees_other_conformers(self):
        conformers = [f"3\nname=number{k}\nO 0 0 0\nH {0.96 + 0.02 * k} 0 0\nH -0.24 0.93 0\n" for k in range(3)]
        self.input = self.path("conformers.xyz", "".join(conformers))
        self.assertEqual(self.relax().returncode, 0)
        whole = self.read(self.output)
        os.remove(self.output)
        part = self.path("relaxed.xyz.part", whole[:whole.index("name=number2")])
        self.input = self.path("reversed.xyz", "".join(reversed(conformers)))
        self.assert_fails(self.relax("--resume"), 2, "frame 0", "is not that of", "reversed.xyz")
        self.path("relaxed.xyz.part", "".join(conformers))  # nothing of it was relaxed
        self.input = self.path("conformers.xyz")
        self.assert_fails(self.relax("--resume"), 2, "frame 0", "is not that of", "conformers.xyz")
        self.path("relaxed.xyz.part", whole[:whole.index("name=number2")])
        self.assertEqual(self.relax("--resume").returncode, 0)
        self.assertEqual(self.read(self.output), whole)
        self.assertFalse(os.path.exists(part))

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


class TestDynamics(CommandTest):
    def setUp(self):
        super().setUp()
        self.input = self.path("many.xyz", "".join(clusters(5)))
        self.output = self.path("out")

    def md(self, *arguments, ensemble="nvt", output=None, temperature=("--temperature", "20")):
        return run("md", self.input, "--model", "analytic", "--device", "cpu", "--ensemble", ensemble, "--dt", "2", "--output-every", "5", "--log-every", "5",
                   "--output", output or self.output, *temperature, *arguments)

    def files(self, folder, *endings):
        found = {}
        for name in sorted(os.listdir(folder)):
            if name.endswith(endings or ("",)) and not name.endswith(".restart"):
                with open(os.path.join(folder, name)) as file:
                    found[name] = file.read()
        return found

    def test_each_is_what_it_is_alone(self):
        result = self.md("--all", "--steps", "20", "--seed", "3", "--threads", "2")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"5 structures\nstep 20 of 20, \S+ structure-steps/s\n$")
        self.assertEqual(sorted(os.listdir(self.output)), [f"{i:04}.{ending}" for i in range(5) for ending in ("csv", "xyz")] + ["all.restart"])
        for i in (0, 4):
            alone = run("md", self.input, "--model", "analytic", "--device", "cpu", "--ensemble", "nvt", "--dt", "2", "--output-every", "5", "--log-every", "5", "--temperature", "20",
                        "--steps", "20", "--frame", str(i), "--seed", str(3 + i), "--output", self.path(f"{i}.xyz"), "--log", self.path(f"{i}.csv"))
            self.assertEqual(alone.returncode, 0, alone.stderr)
            for ending in ("xyz", "csv"):
                with open(self.path(f"{i}.{ending}")) as file:
                    self.assertEqual(self.files(self.output)[f"{i:04}.{ending}"], file.read())
        self.assert_fails(self.md("--all", "--steps", "20"), 2, "all.restart", "already exists")

    def test_restart(self):
        other = self.path("other")
        for options in (["--all"], ["--replicas", "3", "--temperatures", "10,40", "--exchange-every", "3"]):
            temperature = () if "--replicas" in options else ("--temperature", "20")
            self.assertEqual(self.md(*options, "--steps", "30", "--overwrite", temperature=temperature).returncode, 0)
            self.assertEqual(self.md(*options, "--steps", "13", "--overwrite", output=other, temperature=temperature).returncode, 0)
            restart = os.path.join(other, "all.restart")
            self.assert_fails(self.md(*options, "--steps", "13", "--restart", restart, output=other, temperature=temperature), 2, "already at step 13")
            self.assert_fails(self.md(*options, "--steps", "30", "--restart", restart, temperature=temperature), 2, "--restart", "all.restart")
            self.assert_fails(self.md(*options, "--steps", "30", "--seed", "8", "--restart", restart, output=other, temperature=temperature), 2, "was written with --seed")
            if "--all" in options:
                self.assert_fails(self.md("--replicas", "5", "--temperatures", "10,40", "--steps", "30", "--restart", restart, output=other, temperature=()), 2, "no replicas")
            result = self.md(*options, "--steps", "30", "--restart", restart, output=other, temperature=temperature)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertEqual(self.files(other), self.files(self.output))

    def test_own_temperatures_and_seeds(self):
        frames = clusters(4)
        first = frames[2].replace('pbc=', 'temperature=5 seed=77 pbc=')
        past = frames[2].replace('pbc=', 'temperature=5 kinetic_energy=0.1 pbc=')  # of a trajectory
        self.input = self.path("own.xyz", first + frames[2].replace('pbc=', 'seed=77 pbc=') + past)
        self.assertEqual(self.md("--all", "--steps", "0").returncode, 0)
        temperatures = [float(text.splitlines()[1].split(",")[2]) for text in self.files(self.output, ".csv").values()]
        for found, expected in zip(temperatures, (5, 20, 20)):
            self.assertAlmostEqual(found, expected, places=6)
        self.assert_fails(self.md("--all", "--steps", "0", "--overwrite", temperature=()), 2, "own.xyz: frame 1: ", "needs --temperature")
        self.input = self.path("bad.xyz", frames[0] + frames[1].replace('pbc=', 'seed=1.5 pbc='))
        self.assert_fails(self.md("--all", "--steps", "0", "--overwrite"), 3, "bad.xyz: frame 1: seed=1.5")

    def test_one_that_breaks_leaves(self):
        frames = clusters(3)
        self.input = self.path("many.xyz", frames[0] + "2\n\nAr 0 0 0\nAr 0.4 0 0\n" + frames[2])
        options = ("--all", "--steps", "60", "--stop-temperature", "100000")
        result = self.md(*options, ensemble="nve")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"^mlff: \S*many.xyz: frame 1: .* above the limit of 100000 K.*; the last frames are in \S*0001.last.xyz; the others go on\n$")
        self.assertIn("1 of 3 structures broke", result.stdout)
        self.assertTrue(os.path.exists(os.path.join(self.output, "0001.last.xyz")))
        self.assertEqual([text.count("\n") for text in self.files(self.output, ".csv").values()][::2], [14, 14])
        result = self.md(*options[:2], "90", *options[3:], "--restart", os.path.join(self.output, "all.restart"), ensemble="nve")
        self.assertEqual((result.returncode, result.stderr), (1, ""))
        self.assertEqual([text.count("\n") for text in self.files(self.output, ".csv").values()][::2], [20, 20])

    def test_replicas(self):
        result = self.md("--replicas", "3", "--temperatures", "10,40", "--exchange-every", "2", "--steps", "40", "--frame", "4", temperature=())
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"3 replicas\nstep 40 of 40, \S+ structure-steps/s\nswaps accepted, by pair of temperatures in K:\n +10.00 +20.00 +\d+ of +10 .*\n +20.00 +40.00 +\d+ of +10 ")
        files = self.files(self.output, ".csv")
        swaps = [[int(x) for x in line.split(",")] for line in files["swaps.csv"].splitlines()[1:]]
        self.assertEqual([row[0] for row in swaps], list(range(0, 41, 2)))
        for row in swaps:
            self.assertEqual(sorted(row[1:]), [0, 1, 2])
        accepted = sum(before[1:] != after[1:] for before, after in zip(swaps, swaps[1:]))
        rows = [line.split(",") for line in files["acceptance.csv"].splitlines()[1:]]
        self.assertEqual(sum(int(row[3]) for row in rows), accepted)
        self.assertGreater(accepted, 0)
        self.assertEqual(files["0002.csv"].count("\n"), 10)

    def test_overwriting_removes_the_old_restart_file(self):
        self.assertEqual(self.md("--all", "--steps", "10").returncode, 0)
        restart = os.path.join(self.output, "all.restart")
        log = os.path.join(self.output, "0003.csv")
        os.remove(log)
        os.mkdir(log)  # the run ends when the files before it are begun anew
        self.assert_fails(self.md("--all", "--steps", "30", "--overwrite"), 3, "0003.csv")
        self.assertEqual(os.path.getsize(os.path.join(self.output, "0000.xyz")), 0)
        self.assertFalse(os.path.exists(restart))

    def test_no_file_is_cut_before_all_are_checked(self):
        for options in (["--all"], ["--replicas", "3", "--temperatures", "10,40", "--exchange-every", "3"]):
            temperature = () if "--replicas" in options else ("--temperature", "20")
            self.assertEqual(self.md(*options, "--steps", "10", "--overwrite", temperature=temperature).returncode, 0)
            first = os.path.join(self.output, "0000.xyz")
            last = os.path.join(self.output, "swaps.csv" if "--replicas" in options else "0004.csv")
            with open(first, "a") as file:
                file.write("later")
            size = os.path.getsize(first)
            os.truncate(last, os.path.getsize(last) - 1)
            more = (*options, "--steps", "20", "--restart", os.path.join(self.output, "all.restart"))
            self.assert_fails(self.md(*more, temperature=temperature), 3, last, "is shorter than the")
            os.remove(last)
            self.assert_fails(self.md(*more, temperature=temperature), 3, last)
            self.assertEqual(os.path.getsize(first), size)

    def test_more_than_a_restart_file_holds(self):
        self.input = self.path("most.xyz", clusters(1)[0] * 9091)
        self.assert_fails(self.md("--all", "--steps", "1"), 2, "9091 structures", "at most 9090")
        self.assertFalse(os.path.exists(self.output))

    def test_a_disk_that_fails_ends_the_run(self):
        if platform.machine() not in ("x86_64", "aarch64"):
            self.skipTest("the number of syncfs is not known")
        result = subprocess.run([MLFF, "md", self.input, "--model", "analytic", "--device", "cpu", "--ensemble", "nve", "--dt", "2", "--steps", "1", "--temperature", "20",
                                 "--all", "--output", self.output], capture_output=True, text=True, timeout=100, preexec_fn=refuse_syncfs)
        if result.returncode == 77:
            self.skipTest("this machine has no seccomp filters")
        self.assert_fails(result, 3, self.output + ": cannot write the files of the folder (Input/output error)")
        self.assertFalse(os.path.exists(os.path.join(self.output, "all.restart")))

    def test_a_replica_that_breaks_leaves_all_files(self):
        options = ("--replicas", "3", "--temperatures", "10,40", "--exchange-every", "2", "--steps", "60", "--checkpoint-every", "7")
        whole = self.path("whole")
        self.assertEqual(self.md(*options, output=whole, temperature=()).returncode, 0)
        result = self.md(*options, "--stop-temperature", "1280", temperature=())
        self.assert_fails(result, 3, "replica", "the last frames are in")
        step = int(result.stderr.split(" at step ")[1].split()[0].rstrip(":;,"))
        self.assertGreater(step, 10)
        restart = os.path.join(self.output, "all.restart")
        self.assertIn(f"; the restart file {restart} is of step {(step - 1) // 7 * 7}\n", result.stderr)
        files = self.files(self.output, ".csv")
        for i in range(3):
            self.assertEqual(files[f"{i:04}.csv"].count("\n"), 2 + (step - 1) // 5)
        self.assertEqual(files["swaps.csv"].count("\n"), 2 + (step - 1) // 2)
        result = self.md(*options, "--restart", restart, temperature=())
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for name in [name for name in os.listdir(self.output) if name.endswith(".last.xyz")]:
            os.remove(os.path.join(self.output, name))
        self.assertEqual(self.files(self.output), self.files(whole))
        result = self.md(*options[:-1], "1000", "--stop-temperature", "1280", "--overwrite", temperature=())
        self.assert_fails(result, 3, "; there is no restart file yet\n")

    def test_damaged_restart_files_of_replicas(self):
        options = ("--replicas", "3", "--temperatures", "10,40", "--exchange-every", "3")
        self.assertEqual(self.md(*options, "--steps", "12", temperature=()).returncode, 0)
        restart = os.path.join(self.output, "all.restart")
        with open(restart, "rb") as file:
            good = file.read()
        for changes, words in [
            ({"run.exchange-state": "9223372036854775807 0 1 0 1 0 0 2 0 0 0 0 0 0"}, ["the state of the replica exchange is damaged"]),
            ({"run.exchange-state": "5 0 1 0 1 0 0 2 0 0 0 0 0 0"}, ["the state of the replica exchange is damaged"]),
            ({"1/ended": "it broke"}, ["replica 1 has ended"]),
            ({"run.step": "18446744073709551615"}, ["no step number"]),
        ]:
            with self.subTest(changes=changes):
                with open(restart, "wb") as file:
                    file.write(good)
                change_metadata(restart, changes)
                self.assert_fails(self.md(*options, "--steps", "20", "--restart", restart, temperature=()), 3, *words)

    def test_bad_usage(self):
        self.assert_fails(run("md", self.input, "--all", "--ensemble", "nve", "--dt", "1", "--steps", "1"), 2, "--all needs --output DIR")
        for words, arguments, temperature in [
            (["--frame cannot be given with --all"], ("--all", "--frame", "1"), True),
            (["--log cannot be given with --all"], ("--all", "--log", "x.csv"), True),
            (["exclude each other"], ("--all", "--replicas", "3", "--temperatures", "10,20"), False),
            (["need --replicas"], ("--temperatures", "10,20"), False),
            (["--replicas needs --temperatures"], ("--replicas", "3"), False),
            (["--temperature cannot be given with --replicas"], ("--replicas", "3", "--temperatures", "10,20"), True),
            (["--temperatures has 3 numbers", "2"], ("--replicas", "4", "--temperatures", "10,20,30"), False),
            (["a ladder from 20 K to 10 K"], ("--replicas", "4", "--temperatures", "20,10"), False),
        ]:
            with self.subTest(arguments=arguments):
                self.assert_fails(self.md("--steps", "1", *arguments, temperature=("--temperature", "20") if temperature else ()), 2, *words)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
