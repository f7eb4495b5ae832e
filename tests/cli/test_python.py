# SPDX-License-Identifier: MIT
"""The command with Python models: the same files, flags and exit codes as with native ones. And a host
program that is a Python itself. Usage: test_python.py MLFF PYTHON LIBRARY"""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

from command_test import CommandTest

MLFF, PYTHON, LIBRARY = sys.argv[1:4]
CALCULATORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python", "calculators.py")
WATER = "3\nProperties=species:S:1:pos:R:3\nO 0 0 0\nH 0.9572 0 0\nH -0.239987 0.926627 0\n"
CRYSTAL = '2\nLattice="6.1 0.2 0 0 6.3 0.1 0.3 0 6.2" pbc="T T T" Properties=species:S:1:pos:R:3\nSi 0 0 0\nSi 1.4 1.3 1.5\n'


# The energy of water by ctypes; its own standard output still works afterwards.
HOST_PROGRAM = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.mlff_last_error.restype = ctypes.c_char_p
class System(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("count", ctypes.c_int64), ("numbers", ctypes.c_void_p), ("positions", ctypes.c_void_p), ("cell", ctypes.c_void_p),
                ("periodic", ctypes.c_uint8 * 3), ("charge", ctypes.c_double), ("spin", ctypes.c_double)]
class Result(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("energy", ctypes.c_void_p)] + [("unused%d" % i, ctypes.c_void_p) for i in range(6)]
numbers = (ctypes.c_int32 * 3)(8, 1, 1)
positions = (ctypes.c_double * 9)(0, 0, 0, 0.9572, 0, 0, -0.239987, 0.926627, 0)
energy, model, session = ctypes.c_double(), ctypes.c_void_p(), ctypes.c_void_p()
system = System(ctypes.sizeof(System), 3, ctypes.addressof(numbers), ctypes.addressof(positions))
result = Result(ctypes.sizeof(Result), ctypes.addressof(energy))
if library.mlff_model_load(sys.argv[2].encode(), ctypes.byref(model)) or library.mlff_session_create(model, None, ctypes.byref(session)) or \\
        library.mlff_session_evaluate(session, ctypes.byref(system), ctypes.byref(result)):
    print(library.mlff_last_error().decode())
else:
    print("energy %.6f" % energy.value)
library.mlff_session_free(session)
library.mlff_model_free(model)
print("goes on")
"""


def processes_named(name):
    found = set()
    for entry in os.listdir("/proc"):
        try:
            with open("/proc/%s/cmdline" % entry, "rb") as file:
                if entry.isdigit() and name in file.read():
                    found.add(int(entry))
        except OSError:  # no process, or gone
            pass
    return found


class PythonModels(CommandTest):
    def setUp(self):
        super().setUp()
        self.environment = self.path("environment")
        subprocess.run([PYTHON, "-I", "-m", "venv", "--without-pip", "--system-site-packages", self.environment], check=True)

    def model(self, factory, options=""):
        return "python:%s:%s?env=%s%s" % (CALCULATORS, factory, self.environment, options)

    def run_mlff(self, *arguments):
        return subprocess.run([MLFF, *arguments], capture_output=True, text=True, cwd=self.folder)

    def frames(self, *arguments):
        result = self.run_mlff("eval", *arguments, "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["frames"]

    def assert_same(self, found, expected, tolerance):
        self.assertEqual(type(found) is list, type(expected) is list)
        if isinstance(found, list):
            self.assertEqual(len(found), len(expected))
            for one, other in zip(found, expected):
                self.assert_same(one, other, tolerance)
        else:
            self.assertLessEqual(abs(found - expected), tolerance)

    def test_eval_gives_the_numbers_of_the_native_model_and_nothing_else_on_standard_output(self):
        file = self.path("both.xyz", WATER + CRYSTAL)
        for host in "process", "inprocess":
            found = self.frames(file, "--model", self.model("Talks", "&host=" + host))
            expected = self.frames(file, "--model", "analytic")
            for key in "energy", "forces", "atom_energies":
                for one, other in zip(found, expected):
                    self.assert_same(one[key], other[key], 1e-9)
            self.assertIsNone(found[0]["stress"])
            self.assert_same(found[1]["stress"], expected[1]["stress"], 1e-11)

    def test_what_a_calculator_does_not_give_is_null(self):
        frames = self.frames(self.path("both.xyz", WATER + CRYSTAL), "--model", self.model("EnergyOnly"), "--output", self.path("out.xyz"))
        for frame in frames:
            self.assertIsNone(frame["atom_energies"])
            self.assertIsNone(frame["stress"])
        with open(self.path("out.xyz")) as file:
            written = file.read()
        self.assertNotIn("stress", written)
        self.assertNotIn("energies", written)

    def test_dynamics_and_relaxation(self):
        for factory in "Pairs", "EnergyOnly":
            crystal = self.path("crystal.xyz", CRYSTAL)
            energies = []
            for model in self.model(factory), "analytic":
                result = self.run_mlff("md", crystal, "--model", model, "--ensemble", "nve", "--steps", "5", "--dt", "1", "--temperature", "300", "--seed", "1", "--overwrite", "--output", self.path("end.xyz"))
                self.assertEqual(result.returncode, 0, result.stderr)
                energies.append(self.frames(self.path("end.xyz"), "--model", "analytic")[-1]["energy"])
                result = self.run_mlff("relax", crystal, "--model", model, "--output", self.path("relaxed.xyz"))
                self.assertEqual(result.returncode, 0, result.stderr)
                energies.append(self.frames(self.path("relaxed.xyz"), "--model", "analytic")[0]["energy"])
                with open(self.path("relaxed.xyz")) as file:
                    self.assertEqual("stress" in file.read(), model == "analytic" or factory == "Pairs")
            self.assert_same(energies[:2], energies[2:], 1e-6)

    def test_bench_alone_and_beside_a_native_model(self):
        result = self.run_mlff("bench", "--quick", "--steps", "20", "--sizes", "10,20", "--model", self.model("Waves"), "--json", self.path("b.json"))
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        with open(self.path("b.json")) as file:
            found = json.load(file)
        rows = {suite: [row for row in found["rows"] if row["suite"] == suite] for suite in ("latency", "throughput", "md", "memory", "neighbors", "load")}
        self.assertEqual({suite: len(of) for suite, of in rows.items()}, {"latency": 2, "throughput": 2, "md": 1, "memory": 3, "neighbors": 0, "load": 2})
        for words in "errors of energies and forces", "neighbours", "memory above":
            self.assertTrue([why for why in found["left_out"] if words in why], words)
        for row in rows["latency"] + rows["throughput"] + rows["md"]:  # nothing is timed that the calculator only remembers
            self.assertGreaterEqual(row["minimum"], 0.002 * (8 if row["name"].startswith("8 x") else 1), row["name"])
        for row in rows["memory"]:  # that of the Python process is in it: numpy alone takes more
            self.assertGreater(row["median"], 10e6)
        self.assertIn("growth of the memory of the process", [check["name"] for check in rows["md"][0]["checks"]])

        result = self.run_mlff("bench", "--quick", "--sizes", "10", "--compare", "analytic,threads=1", "--compare", self.model("Waves"), "--json", self.path("c.json"), "--report", self.path("report"))
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        with open(self.path("c.json")) as file:
            found = json.load(file)
        native, python = found["sizes"][0]["entries"]
        self.assertEqual([one["label"] for one in found["implementations"]][1], "python:calculators.py:Waves, cpu, fp64")
        self.assertEqual(len(native["samples"]), len(python["samples"]))
        self.assertLess(python["speed_up"], 1)
        self.assertEqual((len(native["checks"]), len(python["checks"])), (1, 0))
        self.assertIn("no reference but itself", found["left_out"][0])

    def test_errors(self):
        water = self.path("water.xyz", WATER)
        far = self.path("far.xyz", WATER.replace("O 0 0 0", "O 60 0 0"))
        self.assert_fails(self.run_mlff("eval", water, "--model", "python:a?host=b"), 2, "host=b")
        self.assert_fails(self.run_mlff("eval", water, "--model", self.model("Nobody")), 3, "has no callable 'Nobody'")
        self.assert_fails(self.run_mlff("eval", water, "--model", self.model("needs_absent_module")), 3, "a_module_that_is_not_there")
        self.assert_fails(self.run_mlff("eval", far, "--model", self.model("Misbehaves", "&what=raises")), 3, "frame 0", "ValueError: the orbitals did not converge", "traceback")
        self.assert_fails(self.run_mlff("eval", far, "--model", self.model("Misbehaves", "&what=kills")), 4, "ended unexpectedly", "signal 9")
        self.assert_fails(self.run_mlff("eval", water, "--model", self.model("Pairs"), "--device", "cuda"), 4, "device 'cuda'")

    def test_the_process_of_python_ends_with_the_command_that_is_killed(self):
        before = processes_named(b"mlff-python-host")
        crystal = self.path("crystal.xyz", CRYSTAL)
        command = subprocess.Popen([MLFF, "md", crystal, "--model", self.model("Pairs"), "--ensemble", "nve", "--steps", "1000000", "--dt", "1", "--temperature", "300"], stdout=subprocess.DEVNULL)
        deadline = time.time() + 20
        mine = set()
        while not mine and time.time() < deadline:
            time.sleep(0.05)
            mine = {p for p in processes_named(b"mlff-python-host") - before if self.parent_of(p) == command.pid}
        self.assertEqual(len(mine), 1)
        command.send_signal(signal.SIGKILL)
        command.wait()
        deadline = time.time() + 1
        while mine & processes_named(b"mlff-python-host") and time.time() < deadline:
            time.sleep(0.02)
        self.assertFalse(mine & processes_named(b"mlff-python-host"))

    def test_a_host_that_is_a_python_lends_its_interpreter_or_is_refused(self):
        other = self.path("other")
        subprocess.run([PYTHON, "-I", "-m", "venv", "--without-pip", "--system-site-packages", other], check=True)
        for host, environment, words in (
            ("inprocess", self.environment, "energy -2.359047"),
            ("process", other, "energy -2.359047"),
            ("inprocess", other, "host=process"),
        ):
            model = "python:%s:Pairs?env=%s&host=%s" % (CALCULATORS, environment, host)
            result = subprocess.run(
                [os.path.join(self.environment, "bin", "python3"), "-c", HOST_PROGRAM, LIBRARY, model],
                capture_output=True, text=True, env=dict(os.environ, MLFF_PYTHON_LIBRARY=os.path.join(os.path.dirname(MLFF), "libmlff_python.so")),
            )
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(words, result.stdout)
            self.assertTrue(result.stdout.endswith("goes on\n"))

    @staticmethod
    def parent_of(process):
        try:
            with open("/proc/%d/stat" % process) as file:
                return int(file.read().rsplit(") ", 1)[1].split()[1])
        except OSError:
            return -1


if __name__ == "__main__":
    if subprocess.run([PYTHON, "-I", "-c", "import numpy"], capture_output=True).returncode != 0:
        print("skipped: %s has no numpy (python3-numpy)" % PYTHON)
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
