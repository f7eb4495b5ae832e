# SPDX-License-Identifier: MIT
"""mlff md and mlff relax as commands: files, restart, stop, exit codes, messages. Usage: test_dynamics.py MLFF"""
import csv
import ctypes
import fcntl
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
import unittest

from command_test import CommandTest

MLFF = sys.argv[1]
CLUSTER = "4\nProperties=species:S:1:pos:R:3\nAr 0 0 0\nAr 2.1 0 0\nAr 1.0 1.8 0\nAr 1.0 0.6 1.7\n"
CRYSTAL = '1\nLattice="0 1.5 1.5 1.5 0 1.5 1.6 1.5 0" Properties=species:S:1:pos:R:3 pbc="T T T"\nAr 0 0 0\n'
NVE = ("--model", "analytic", "--threads", "1", "--ensemble", "nve", "--dt", "1", "--temperature", "50")


def run(*arguments):
    return subprocess.run([MLFF, *arguments], capture_output=True, text=True, timeout=60)


H5MD_MODULE = os.path.join(os.path.dirname(MLFF), "mlff_h5md.so")
IS_SANITIZED = "ASAN_OPTIONS" in os.environ  # Python cannot load the module of that build


def h5_series(path, name, type_name, number):
    """A data set of an HDF5 file, flat, read by the library that the module was linked with."""
    library, identifier = ctypes.CDLL(H5MD_MODULE), ctypes.c_int64
    for function in ("H5Fopen", "H5Dopen2", "H5Dget_space"):
        getattr(library, function).restype = identifier
    library.H5Sget_simple_extent_npoints.restype = identifier
    assert library.H5open() >= 0
    file = library.H5Fopen(path.encode(), 0, identifier(0))
    data = library.H5Dopen2(identifier(file), name.encode(), identifier(0))
    space = library.H5Dget_space(identifier(data))
    assert min(file, data, space) >= 0, f"{path}: cannot open {name}"
    values = (number * library.H5Sget_simple_extent_npoints(identifier(space)))()
    type_number = identifier.in_dll(library, type_name)
    assert library.H5Dread(identifier(data), type_number, identifier(0), identifier(0), identifier(0), values) >= 0, f"{path}: cannot read {name}"
    library.H5Sclose(identifier(space)), library.H5Dclose(identifier(data)), library.H5Fclose(identifier(file))
    return list(values)


class Dynamics(CommandTest):
    def setUp(self):
        super().setUp()
        self.cluster = self.path("cluster.xyz", CLUSTER)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def steps_of(self, name):
        return [int(step) for step in re.findall(rb" step=(\d+) ", self.read(name))]

    def assert_good(self, result):
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def md(self, *arguments):
        return run("md", self.cluster, *NVE, *arguments)

    def test_the_log_of_a_committee_has_its_spread(self):
        log, out, trajectory = self.path("c.csv"), self.path("c.json"), self.path("c.xyz")
        water = self.path("w.xyz", "3\n\nO 0 0 0\nH 0.96 0 0\nH -0.24 0.93 0\n")
        model = ("--model", "builtin,self-test", "--device", "cpu", "--precision", "fp64")
        self.assert_good(run("md", water, "--ensemble", "nve", "--dt", "0.5", "--temperature", "200", "--steps", "6", *model,
                             "--output", trajectory, "--output-every", "3", "--log", log, "--log-every", "3"))
        self.assert_good(run("eval", trajectory, *model, "--json", out))
        with open(log) as file:
            rows = list(csv.DictReader(file))
        with open(out) as file:
            frames = json.load(file)["frames"]
        self.assertEqual((len(rows), len(frames)), (3, 3))
        for row, frame in zip(rows, frames):
            self.assertAlmostEqual(float(row["sigma_max_eV_per_A"]), frame["sigma"]["max_force"], places=6)

    # Dynamics of a committee whose members disagree everywhere: every frame is worth a label.
    WATER = "3\n\nO 0 0 0\nH 0.96 0 0\nH -0.24 0.93 0\n"
    COMMITTEE = ("--model", "builtin,self-test", "--device", "cpu", "--precision", "fp64", "--threads", "1")

    def watched(self, *arguments, steps="60", temperature="3000"):
        return run("md", self.path("w.xyz", self.WATER), "--ensemble", "nvt", "--dt", "0.5", "--temperature", temperature, "--steps", steps, *self.COMMITTEE, *arguments)

    def harvested(self, folder="harvest"):
        """(step, sigma of each atom) of the frames in a folder."""
        frames, lines = [], self.read(folder + "/frames.xyz").decode().splitlines()
        while lines:
            count = int(lines[0])
            frames.append((int(re.search(r"\bstep=(\d+)", lines[1]).group(1)), [float(line.split()[-1]) for line in lines[2:2 + count]], lines[1]))
            lines = lines[2 + count:]
        return frames

    def test_watching_changes_nothing_but_the_log(self):
        for name, more in (("on", ()), ("off", ("--no-watch",))):
            self.assert_good(self.watched(*more, "--output", self.path(name + ".xyz"), "--output-every", "5", "--log", self.path(name + ".csv"), "--log-every", "5", steps="20"))
        self.assertEqual(self.read("on.xyz"), self.read("off.xyz"))
        with open(self.path("on.csv")) as on, open(self.path("off.csv")) as off:
            on, off = list(csv.DictReader(on)), list(csv.DictReader(off))
        self.assertEqual([list(row)[-2:] for row in on], [["sigma_max_eV_per_A", "atoms_outside"]] * 5)
        self.assertEqual([{key: value for key, value in row.items() if key in off[0]} for row in on], off)
        self.assertTrue(all(0 <= int(row["atoms_outside"]) <= 3 for row in on))
        # The log of one is not the log of the other.
        files = ("--output", self.path("on.xyz"), "--output-every", "5", "--log", self.path("on.csv"), "--log-every", "5", "--restart", self.path("on.restart"))
        self.assert_fails(self.watched("--no-watch", *files, steps="30"), 2, "on.csv", "other columns", "--watch")
        self.assert_good(self.watched(*files, steps="30"))

    def test_a_run_that_cannot_be_trusted_stops(self):
        files = ("--output", self.path("s.xyz"), "--output-every", "1", "--log", self.path("s.csv"), "--log-every", "1")
        self.assert_good(self.watched(*files))
        with open(self.path("s.csv")) as file:
            sigmas = [float(row["sigma_max_eV_per_A"]) for row in csv.DictReader(file)]
        limit = sum(sigmas[:2]) / 2 if sigmas[1] > sigmas[0] else max(sigmas) - 1e-6
        first = next(step for step, sigma in enumerate(sigmas) if sigma > limit)
        stopped = self.watched(*files, "--stop-sigma", repr(limit), "--overwrite")
        self.assert_fails(stopped, 1, "w.xyz: the expected error of the force on atom", f"at step {first}, above --stop-sigma", "the restart file is", "s.restart")
        self.assertIn(f"step {first} of 60", stopped.stdout)
        self.assertEqual(self.steps_of("s.xyz"), list(range(first + 1)))
        # As it is, it does not go on; with a higher limit it does.
        again = (*files, "--restart", self.path("s.restart"))
        self.assert_fails(self.watched(*again, "--stop-sigma", repr(limit)), 1, f"at step {first},")
        self.assert_good(self.watched(*again, "--stop-sigma", "1e9"))
        self.assertEqual(self.steps_of("s.xyz"), list(range(61)))

    def test_harvest(self):
        result = self.watched("--harvest", self.path("harvest"), "--harvest-sigma", "1e-3", "--harvest-every", "7", "--log", self.path("h.csv"), "--log-every", "1")
        self.assert_good(result)
        frames = self.harvested()
        self.assertIn(f"harvested {len(frames)} frames into", result.stdout)
        with open(self.path("h.csv")) as file:
            rows = list(csv.DictReader(file))
        self.assertGreater(len(frames), 3)
        for step, sigmas, comment in frames:
            self.assertAlmostEqual(max(sigmas), float(rows[step]["sigma_max_eV_per_A"]), places=9)
            for key in ("sigma_max=", "time=", "temperature=", "model=", "atoms_outside=3", "sigma_forces:R:1"):
                self.assertIn(key, comment)
            for absent in ("energy=", ":forces:"):  # nobody trains on the model's own forces
                self.assertNotIn(absent, comment)
        self.assertTrue(all(b - a >= 7 and (b - a) % 7 == 0 for (a, *_), (b, *_) in zip(frames, frames[1:])))
        # The same run again adds nothing, and another one with fewer frames adds as many at most.
        before = self.read("harvest/frames.xyz")
        same = ("--harvest", self.path("harvest"), "--harvest-sigma", "1e-3", "--overwrite")
        again = self.watched(*same, "--harvest-every", "7", "--log", self.path("h.csv"))
        self.assertIn("harvested 0 frames into", again.stdout)
        self.assertEqual(self.read("harvest/frames.xyz"), before)
        capped = self.watched(*same, "--harvest-every", "1", "--harvest-frames", "2", "--log", self.path("h.csv"), temperature="6000")
        self.assertIn("harvested 2 frames into", capped.stdout)
        self.assertIn("--harvest-frames 2 is reached", capped.stdout)
        self.assertEqual(len(self.harvested()), len(frames) + 2)

    def test_a_harvest_survives_restarts(self):
        watch = lambda name: ("--harvest", self.path(name), "--harvest-sigma", "1e-3", "--harvest-every", "7", "--harvest-frames", "6", "--output", self.path(name + ".xyz"))
        self.assert_good(self.watched(*watch("whole")))
        self.assert_good(self.watched(*watch("part"), steps="25"))
        with open(self.path("early.restart"), "wb") as file:
            file.write(self.read("part.restart"))
        self.assert_good(self.watched(*watch("part"), "--restart", self.path("part.restart"), steps="40"))
        # As if the run had been killed after step 40 while it wrote a frame: the steps from 25 on come again.
        with open(self.path("part/frames.xyz"), "ab") as file:
            file.write(b"3\nProperties=species:S:1:pos:R:3:sigma_forces:R:1 step=42\nO 0.1 0.2 0.3 0.4\nH 1.")
        self.assert_good(self.watched(*watch("part"), "--restart", self.path("early.restart")))
        self.assertEqual(self.read("part/frames.xyz"), self.read("whole/frames.xyz"))
        self.assertEqual(len(self.harvested("part")), 6)

    def test_bad_use_of_the_watch(self):
        harvest = ("--harvest", self.path("harvest"))
        for words, code, arguments in [
            (["--stop-sigma", "-1"], 2, ("--stop-sigma", "-1")),
            (["--stop-sigma", "needs --watch"], 2, ("--no-watch", "--stop-sigma", "1")),
            (["--harvest", "needs --watch"], 2, ("--no-watch", *harvest)),
            (["--harvest-every", "needs --harvest"], 2, ("--harvest-every", "3")),
            (["--harvest-every"], 2, (*harvest, "--harvest-every", "0")),
            (["w.xyz/x", "cannot write into the folder"], 3, ("--harvest", self.path("w.xyz") + "/x")),
        ]:
            self.assert_fails(self.watched(*arguments), code, *words)
        for option in ("--watch", "--stop-sigma=1", "--harvest=" + self.path("harvest")):
            self.assert_fails(self.md("--steps", "5", option), 2, option.split("=")[0], "a committee: --model A,B,C")
        self.assertEqual(sorted(os.listdir(self.folder)), ["cluster.xyz", "w.xyz"])
        # Frames of others, and another run in the same folder.
        os.mkdir(self.path("harvest"))
        self.path("harvest/frames.xyz", CLUSTER)
        self.assert_fails(self.watched(*harvest), 3, "frames.xyz: frame 0", "sigma_forces")
        self.assertEqual(self.read("harvest/frames.xyz").decode(), CLUSTER)
        self.path("harvest/frames.xyz", "nothing of the kind\n")
        self.assert_fails(self.watched(*harvest), 3, "frames.xyz")
        os.remove(self.path("harvest/frames.xyz"))
        with open(self.path("harvest/lock")) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assert_fails(self.watched(*harvest), 3, "another run", "give each its own")

    def test_trajectory_and_log(self):
        self.assert_good(self.md("--steps", "50", "--output", self.path("t.xyz"), "--output-every", "10", "--log", self.path("t.csv"), "--log-every", "5"))
        self.assertEqual(self.steps_of("t.xyz"), [0, 10, 20, 30, 40, 50])
        with open(self.path("t.csv")) as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([int(row["step"]) for row in rows], list(range(0, 51, 5)))
        self.assertEqual(float(rows[-1]["time_fs"]), 50)
        self.assertAlmostEqual(float(rows[0]["temperature_K"]), 50, places=6)
        for row in rows:
            self.assertAlmostEqual(float(row["total_eV"]), float(rows[0]["total_eV"]), delta=1e-4)
            self.assertAlmostEqual(float(row["total_eV"]), float(row["potential_eV"]) + float(row["kinetic_eV"]), places=8)
            self.assertEqual(row["conserved_eV"], row["total_eV"])
        self.assertTrue(os.path.exists(self.path("t.restart")))

    def test_no_file_of_another_run_is_touched(self):
        self.assert_good(self.md("--steps", "5", "--output", self.path("a.xyz")))
        self.path("b.restart", "precious")
        self.assert_fails(self.md("--steps", "5", "--output", self.path("b.xyz")), 2, "b.restart", "--overwrite")
        self.assert_fails(self.md("--steps", "5", "--output", self.path("d.xyz"), "--checkpoint", self.path("a.restart")), 2, "a.restart", "--overwrite")
        self.assertFalse(os.path.exists(self.path("b.xyz")) or os.path.exists(self.path("d.xyz")))
        self.assert_fails(self.md("--steps", "5", "--output", self.path("d.xyz"), "--log", self.path("a.xyz")), 2, "a.xyz")
        self.assertFalse(os.path.exists(self.path("d.xyz")))
        self.assert_fails(self.md("--steps", "5", "--output", self.path("c.xyz"), "--log", self.path("c.restart")), 2, "same file")
        before = self.read("a.xyz")
        self.assert_fails(self.md("--steps", "5", "--output", self.path("a.xyz"), "--overwrite", "--stop-temperature", "-1"), 2, "-1")
        self.assertEqual(self.read("a.xyz"), before)

    def test_runs_with_other_trajectories_have_other_restart_files(self):
        def md(*arguments, steps="5"):
            return subprocess.run([MLFF, "md", self.cluster, *NVE, "--steps", steps, *arguments], capture_output=True, text=True, timeout=60, cwd=self.folder)

        outputs = [("--output", "a.xyz"), ("--output", "b.xyz"), ("--output", "a.extxyz"), ("--log", "a.csv"), ("--log", "b.csv"), ()]
        for output in outputs:
            self.assert_good(md(*output))
        restarts = ["a.csv.restart", "a.extxyz.restart", "a.restart", "b.csv.restart", "b.restart", "md.restart"]
        self.assertEqual(sorted(name for name in os.listdir(self.folder) if name.endswith(".restart")), restarts)
        self.assert_fails(md(), 2, "md.restart", "--checkpoint")  # no name tells the two runs apart
        again = md("--output", "a.extxyz", "--restart", "a.extxyz.restart", steps="9")
        self.assert_good(again)
        self.assertEqual(sorted(name for name in os.listdir(self.folder) if name.endswith(".restart")), restarts)

    def test_own_masses_are_in_the_frames(self):
        atoms = "\n".join(f"{line} {mass}" for line, mass in zip(CLUSTER.splitlines()[2:], (36, 38, 40, 42, 44, 46, 48, 50)))
        count = len(CLUSTER.splitlines()) - 2
        heavy = self.path("heavy.xyz", f"{count}\nProperties=species:S:1:pos:R:3:masses:R:1\n" + atoms + "\n")
        self.assert_good(run("md", heavy, *NVE, "--steps", "2", "--output", self.path("h.xyz"), "--output-every", "1"))
        self.assertEqual(self.read("h.xyz").count(b"masses:R:1"), 3)

    def test_a_stopped_run_goes_on_as_if_it_had_not_been_stopped(self):
        nvt = ("--model", "analytic", "--threads", "1", "--ensemble", "nvt", "--thermostat", "nose-hoover", "--dt", "1", "--temperature", "50")
        files = lambda name: ("--output", self.path(name + ".xyz"), "--output-every", "4", "--log", self.path(name + ".csv"), "--log-every", "4")
        self.assert_good(run("md", self.cluster, *nvt, "--steps", "60", *files("whole")))
        self.assert_good(run("md", self.cluster, *nvt, "--steps", "25", *files("part")))
        with open(self.path("early.restart"), "wb") as file:
            file.write(self.read("part.restart"))
        self.assert_good(run("md", self.cluster, *nvt, "--steps", "40", *files("part"), "--restart", self.path("part.restart")))
        # From step 25 again: frames that were written after it are cut off.
        self.assert_good(run("md", self.cluster, *nvt, "--steps", "60", *files("part"), "--restart", self.path("early.restart")))
        self.assertEqual(self.read("part.xyz"), self.read("whole.xyz"))
        self.assertEqual(self.read("part.csv"), self.read("whole.csv"))
        go_on = lambda *more: run("md", self.cluster, *nvt, *more, "--restart", self.path("early.restart"))
        self.assert_fails(go_on("--steps", "99", "--seed", "2"), 2, "--seed 1, not 2")
        self.assert_fails(go_on("--steps", "99", "--fix", "0"), 2, "fixed atoms")
        self.assert_fails(go_on("--steps", "10"), 2, "--steps 10", "step 60")
        os.remove(self.path("part.xyz"))
        self.assert_fails(go_on("--steps", "99", *files("part")), 3, "part.xyz")
        self.assert_fails(run("md", self.cluster, *nvt, "--steps", "99", "--restart", self.cluster), 3, "cluster.xyz")

    def test_ctrl_c_writes_all_frames_and_a_restart_file(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGXCPU):
            arguments = ["md", self.cluster, *NVE, "--steps", "1000000000", "--output", self.path("s.xyz"), "--output-every", "10"]
            process = subprocess.Popen([MLFF, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while not os.path.exists(self.path("s.xyz")) or len(self.read("s.xyz")) < 5000:
                time.sleep(0.01)
            process.send_signal(number)
            output, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 128 + number, errors)
            step = int(re.search(r"after step (\d+); continue with --restart .*s\.restart", errors).group(1))
            self.assertEqual(self.steps_of("s.xyz"), list(range(0, step + 1, 10)))
            again = run("md", self.cluster, *NVE, "--steps", str(step + 20), "--output", self.path("s.xyz"), "--output-every", "10", "--restart", self.path("s.restart"))
            self.assert_good(again)
            self.assertEqual(self.steps_of("s.xyz"), list(range(0, step + 21, 10)))
            os.remove(self.path("s.restart"))
            os.remove(self.path("s.xyz"))

    @unittest.skipUnless(os.path.exists(H5MD_MODULE), "built without HDF5")
    def test_a_killed_run_leaves_a_readable_h5md_file(self):
        files = ("--output", self.path("k.h5"), "--output-every", "1", "--checkpoint-every", "50")
        process = subprocess.Popen([MLFF, "md", self.cluster, *NVE, "--steps", "1000000000", *files], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not os.path.exists(self.path("k.h5.restart")) and process.poll() is None:  # all frames until then were flushed
            time.sleep(0.01)
        process.kill()
        self.assertEqual(process.wait(), -signal.SIGKILL)

        def check_frames(least):
            if IS_SANITIZED:
                return
            steps = h5_series(self.path("k.h5"), "particles/atoms/position/step", "H5T_NATIVE_INT64_g", ctypes.c_int64)
            self.assertGreaterEqual(len(steps), least)
            self.assertEqual(steps, list(range(len(steps))))
            positions = h5_series(self.path("k.h5"), "particles/atoms/position/value", "H5T_NATIVE_DOUBLE_g", ctypes.c_double)
            self.assertEqual(len(positions), 12 * len(steps))
            for frame in range(len(steps)):
                self.assertTrue(0.5 < positions[12 * frame + 3] < 4, f"frame {frame}: {positions[12 * frame:12 * frame + 12]}")

        check_frames(51)
        refused = run("md", self.cluster, *NVE, "--steps", "1", *files, "--restart", self.path("k.h5.restart"))
        last = int(re.search(r"already at step (\d+)", refused.stderr).group(1))
        self.assert_good(run("md", self.cluster, *NVE, "--steps", str(last + 20), *files, "--restart", self.path("k.h5.restart")))
        check_frames(last + 21)

    def test_a_file_beyond_the_limit_has_a_sentence(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
        arguments = ["md", self.cluster, *NVE, "--steps", "1000000", "--output", self.path("s.xyz"), "--output-every", "1"]
        result = subprocess.run([MLFF, *arguments], capture_output=True, text=True, timeout=60, preexec_fn=limit)
        self.assert_fails(result, 3, "s.xyz", "File too large")

    def test_a_run_that_breaks_leaves_its_last_frames(self):
        hot = self.path("hot.xyz", "3\nProperties=species:S:1:pos:R:3\nAr 0 0 0\nAr 2.1 0 0\nAr 0.3 0.2 0\n")
        result = run("md", hot, *NVE, "--steps", "500", "--stop-temperature", "500", "--output", self.path("h.xyz"))
        self.assert_fails(result, 3, "hot.xyz", "above the limit of 500 K", "fastest atom is", "closest atoms are", "h.last.xyz")
        self.assertGreater(len(self.steps_of("h.last.xyz")), 0)
        self.assertFalse(os.path.exists(self.path("h.restart")))
        lost = self.path("lost.xyz", "3\nProperties=species:S:1:pos:R:3:velocities:R:3\nAr 0 0 0 0 0 0\nAr 2.1 0 0 0 0 0\nAr 9 0 0 0.03 0 0\n")
        result = run("md", lost, *NVE, "--steps", "5000", "--stop-distance", "20", "--output", self.path("l.xyz"))
        self.assert_fails(result, 3, "lost.xyz", "atom 2 (Ar) is lost", "closest atoms are 0 (Ar) and 1 (Ar)")
        self.assertEqual(len(self.steps_of("l.last.xyz")), 5)

    def test_fixed_atoms_and_velocities_of_the_file(self):
        text = "3\nProperties=species:S:1:pos:R:3:velocities:R:3:move_mask:L:1\nAr 0 0 0 0.5 0 0 F\nAr 2.1 0 0 0 0.001 0 T\nAr 1 1.8 0 0 0 0 T\n"
        result = run("md", self.path("v.xyz", text), *NVE, "--steps", "20", "--output", self.path("f.xyz"), "--output-every", "20", "--fix", "2")
        self.assert_good(result)
        self.assertIn("3 degrees of freedom", result.stdout)
        lines = self.read("f.xyz").decode().splitlines()
        self.assertEqual([lines[2].split()[k] for k in (1, 4, 10)], ["0.0", "0.0", "F"])
        self.assertEqual(lines[3].split()[5], "0.001")
        self.assertEqual(lines[7].split()[1:7], lines[2].split()[1:7])
        self.assertNotEqual(lines[8].split()[1:7], lines[3].split()[1:7])
        self.assertEqual(lines[9].split()[1:7], lines[4].split()[1:7])

    def test_constant_pressure(self):
        crystal = self.path("c.xyz", CRYSTAL)
        self.assert_good(run("relax", crystal, "--model", "analytic", "--cell", "--output", self.path("r.xyz")))
        npt = ("--model", "analytic", "--ensemble", "npt", "--dt", "2", "--temperature", "20", "--pressure", "10", "--compressibility", "1e-6", "--steps", "100")
        self.assert_good(run("md", self.path("r.xyz"), *npt, "--full-cell", "--log", self.path("p.csv"), "--log-every", "50", "--checkpoint", self.path("p.restart")))
        with open(self.path("p.csv")) as file:
            rows = list(csv.DictReader(file))
        self.assertNotEqual(rows[0]["volume_A3"], rows[-1]["volume_A3"])
        self.assertEqual(rows[0]["conserved_eV"], "")

    def test_relax(self):
        many = self.path("many.xyz", CLUSTER + CLUSTER.replace("2.1", "2.4") + "2\n\nAr 0 0 0\nAr 2.5 0 0\n")
        for method in ("lbfgs", "fire"):
            self.assert_good(run("relax", many, "--model", "analytic", "--fmax", "0.001", "--minimizer", method, "--output", self.path("r.xyz")))
            energies = [float(energy) for energy in re.findall(rb" energy=(\S+) ", self.read("r.xyz"))]
            for found, expected in zip(energies, (-6, -6, -1)):  # as many bonds of 1 eV as there are pairs
                self.assertAlmostEqual(found, expected, places=4)
            self.assertEqual(len(energies), 3)
        result = run("relax", many, "--model", "analytic", "--steps", "1")
        self.assert_fails(result, 1, "3 of 3 structures did not converge")
        self.assertEqual(result.stdout.count("not converged"), 3)
        self.assert_fails(run("relax", many, "--model", "analytic", "--cell"), 3, "many.xyz: frame 0", "periodic")
        self.assert_fails(run("relax", many, "--pressure", "3"), 2, "--pressure")
        self.assert_fails(run("relax", self.path("e.xyz", "")), 3, "e.xyz")

    def test_bad_usage(self):
        good = ("--steps", "5")
        for words, code, arguments in [
            (["--ensemble"], 2, ("--model", "analytic", "--steps", "1", "--dt", "1")),
            (["nvu"], 2, ("--ensemble", "nvu", "--steps", "1", "--dt", "1")),
            (["--temperature"], 2, ("--ensemble", "nvt", "--steps", "1", "--dt", "1")),
            (["--temperature"], 2, ("--ensemble", "nve", "--steps", "1", "--dt", "1")),
            (["--pressure"], 2, ("--ensemble", "npt", "--steps", "1", "--dt", "1", "--temperature", "9")),
            (["time step"], 2, ("--ensemble", "nve", "--steps", "1", "--dt", "nan", "--temperature", "9")),
            (["nan K"], 2, ("--ensemble", "nvt", "--steps", "1", "--dt", "1", "--temperature", "nan")),
            (["--thermostat"], 2, (*NVE, *good, "--thermostat", "langevin")),
            (["--full-cell"], 2, (*NVE, *good, "--full-cell")),
            (["--fix", "no atom 4"], 2, (*NVE, *good, "--fix", "0-4")),
            (["--fix", "x"], 2, (*NVE, *good, "--fix", "x")),
            (["--frame 3"], 2, (*NVE, *good, "--frame", "3")),
            (["t.dcd"], 2, (*NVE, *good, "--output", self.path("t.dcd"))),
            (["cluster.xyz", "already exists"], 2, (*NVE, *good, "--output", self.cluster)),
            (["no/where.xyz"], 3, (*NVE, *good, "--output", self.path("no/where.xyz"))),
            (["cluster.xyz", "direction 1"], 3, ("--model", "analytic", "--ensemble", "npt", "--steps", "1", "--dt", "1", "--temperature", "9", "--pressure", "1")),
        ]:
            self.assert_fails(run("md", self.cluster, *arguments), code, *words)
        self.assert_fails(self.md("--steps", "5", "--log", "/dev/full"), 3, "/dev/full")
        self.assertEqual(self.read("cluster.xyz").decode(), CLUSTER)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
