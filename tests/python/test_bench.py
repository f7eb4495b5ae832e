# SPDX-License-Identifier: MIT
"""mlff.bench: figures of devices, memory, timers, streams, statistics and comparisons. With MLFF_REQUIRE_GPU set there must be a GPU.

  test_bench.py MLFF GOLDEN_DIR SYSTEMS_DIR README"""
import contextlib
import io
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np
from ase import Atoms
from ase.calculators.calculator import Calculator
from ase.calculators.emt import EMT

import mlff
from mlff import bench
from mlff.ase import MLFFCalculator
from numbers_test import MLFF, NumbersTest, benzene, water_box

README = sys.argv[4]
QUICK = {"warm_up_calls": 1, "warm_up_seconds": 0, "least_samples": 5, "most_samples": 5}
HAS_GPU = bool(mlff.devices())
DEVICES = ["cpu"] + ["cuda:0"] * HAS_GPU
BAD_DEVICES = (("toaster", mlff.ArgumentError, "none of auto, cpu"), ("cuda:1000", mlff.DeviceError, "there is no GPU 1000"), (3, mlff.ArgumentError, "device is 3, expected a name"))


class Devices(NumbersTest):
    def test_a_gpu_is_there_if_one_must_be(self):
        self.assertTrue(HAS_GPU or not os.environ.get("MLFF_REQUIRE_GPU"), mlff.why_no_device())

    def test_figures(self):
        doctor = json.loads(subprocess.run([MLFF, "doctor", "--json", "-"], capture_output=True, text=True, timeout=100).stdout)
        cpu = mlff.device_info("cpu")
        self.assertEqual((cpu.kernels, cpu.core_count), (doctor["kernels"], doctor["cores"]))
        self.assertEqual((cpu.compute_capability, cpu.multiprocessor_count, cpu.memory_bandwidth), (0, 0, 0.0))
        self.assertTrue(2**20 < cpu.memory_bytes <= doctor["memory_bytes"])
        self.assertEqual(mlff.device_info(), mlff.device_info("cuda:0" if HAS_GPU else "cpu"))
        for index, expected in enumerate(doctor["gpus"]):
            gpu = mlff.device_info(f"cuda:{index}")
            for name in set(expected) - {"free_memory_bytes"}:
                self.assertEqual(getattr(gpu, name) or None, expected[name], name)
            self.assertGreater(gpu.cuda_driver_version, 0)

    def test_memory(self):
        for device in DEVICES:
            memory = mlff.device_memory(device)
            self.assertTrue(0 < memory.free < memory.total, memory)
            self.assertEqual(memory.used, memory.total - memory.free)
            self.assertEqual(memory.process > 0, device == "cpu")
            bench.synchronize(device)

    def test_devices_that_are_none(self):
        for device, kind, words in BAD_DEVICES:
            for call in (mlff.device_info, mlff.device_memory, bench.synchronize, bench.stream, bench.timer, bench.memory_watch):
                with self.assertRaisesRegex(kind, words):
                    call(device)
            with self.assertRaisesRegex(kind, words):
                bench.measure(lambda: None, device=device, **QUICK)


class TimersAndStreams(NumbersTest):
    def test_a_timer(self):
        for device in DEVICES:
            with bench.stream(device) as stream:
                self.assertEqual(stream.ptr > 0, device != "cpu")
                self.assertEqual(stream.__cuda_stream__(), (0, stream.ptr))
                timer = bench.timer(device, stream)
                with self.assertRaisesRegex(mlff.ArgumentError, "not started"):
                    timer.seconds
                for _ in range(2):
                    begin = time.perf_counter()
                    with timer as same:
                        time.sleep(0.02)
                    around = time.perf_counter() - begin
                    self.assertIs(same, timer)
                    self.assertTrue(0.015 <= timer.seconds <= around + 1e-4, (timer.seconds, around))
            with self.assertRaisesRegex(mlff.ArgumentError, "closed"):
                stream.synchronize()
            with timer:  # keeps the stream that was closed
                pass
            self.assertTrue(0 <= timer.seconds < 10)

    def test_streams_that_are_none(self):
        for wrong in ("stream", True, -1, 1.5):
            with self.assertRaisesRegex(mlff.ArgumentError, "expected a stream or its pointer"):
                bench.timer("cpu", wrong)
        with self.assertRaisesRegex(mlff.ArgumentError, "only GPUs have streams"):
            bench.timer("cpu", 4096)

    def test_an_error_in_a_block_arrives(self):
        for make in (bench.stream, bench.timer, bench.memory_watch):
            with self.assertRaises(ZeroDivisionError):
                with make("cpu"):
                    1 / 0


def keeps_peak():
    """Whether the kernel lets a process begin its peak of memory anew."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        return True
    except OSError:
        return False


class Memory(NumbersTest):
    def test_growth_and_peak(self):
        with bench.memory_watch("cpu") as watch:
            block = np.ones(4_000_000)
            del block
        if keeps_peak():
            self.assertGreater(watch.peak - watch.first, 30_000_000)
        self.assertLess(watch.growth, 10_000_000)
        self.assertFalse(watch.is_leak, watch)
        kept = []
        with bench.memory_watch("cpu") as watch:
            for _ in range(6):
                kept.append(np.ones(500_000))
                watch.read()
        self.assertTrue(watch.is_leak and watch.is_trend, watch)
        self.assertEqual((watch.reading_count, watch.growth), (8, watch.used - watch.first))
        self.assertGreater(watch.growth, 20_000_000)
        self.assertIn("a leak", repr(watch))

    def test_a_session_does_not_leak(self):
        numbers, positions = benzene()
        for device in DEVICES:
            session = mlff.Session("builtin", device=device, threads=1)

            def piece():
                for _ in range(20):
                    session.evaluate(numbers, positions)

            piece()
            with bench.memory_watch(device) as watch:
                for _ in range(6):
                    piece()
                    watch.read()
            self.assertFalse(watch.is_leak, watch)
            self.assertGreaterEqual(watch.peak, watch.used)

    def test_wrong_use(self):
        watch = bench.memory_watch("cpu")
        for wrong in (watch.read, lambda: watch.used):
            with self.assertRaisesRegex(mlff.ArgumentError, "with block"):
                wrong()
        with self.assertRaisesRegex(mlff.ArgumentError, "poll_seconds is -1"):
            bench.memory_watch("cpu", poll_seconds=-1)


class Statistics(NumbersTest):
    def test_numbers_of_numpy(self):
        samples = np.random.default_rng(5).lognormal(size=200)
        found = bench.statistics(samples, items=3)
        expected = {"mean": samples.mean(), "median": np.median(samples), "std": samples.std(ddof=1), "minimum": samples.min(), "maximum": samples.max(),
                    "p95": np.percentile(samples, 95), "p99": np.percentile(samples, 99), "throughput": 3 / np.median(samples)}
        for name, value in expected.items():
            self.assert_close(getattr(found, name), value, 1e-12 * abs(value), name)
        low, high = found.interval
        # By ranks: the number of samples below the median is binomial.
        by_rank = np.percentile(samples, [50 - 98 / math.sqrt(200), 50 + 98 / math.sqrt(200)])
        self.assertTrue(low < found.median < high)
        self.assert_close([low, high], by_rank, 0.25 * (high - low))
        self.assertEqual(found.interval, bench.statistics(samples).interval, "always the same")
        self.assertEqual(bench.statistics([2.0]).std, 0.0)

    def test_samples_that_are_none(self):
        for wrong, words in (([], "at least one sample"), ([1.0, math.nan], "finite"), ([math.inf], "finite"), ([[1.0]], "expected a list"), (["a"], "real numbers")):
            with self.assertRaisesRegex(mlff.ArgumentError, words):
                bench.statistics(wrong)
        with self.assertRaisesRegex(mlff.ArgumentError, "items is 0"):
            bench.statistics([1.0], items=0)

    def test_measure(self):
        calls = []
        found = bench.measure(lambda: calls.append(time.sleep(0.004)), items=10, **QUICK)
        self.assertEqual((len(calls), len(found.samples)), (6, 5))
        self.assertTrue((found.samples >= 0.004).all() and found.median < 1)
        self.assertEqual(found.throughput, 10 / found.median)
        self.assertRegex(str(found), r"^median \d.* ms \(.* to .*\), mean .*; 5 samples, \d outliers$")
        self.assertEqual(json.loads(json.dumps(found.to_dict()))["samples"], found.samples.tolist())
        begin = time.perf_counter()
        many = bench.measure(lambda: None, warm_up_seconds=0, seconds=0.02, most_samples=10_000_000)
        self.assertGreater(len(many.samples), 20)
        self.assertLess(time.perf_counter() - begin, 20)

    def test_what_a_function_raises(self):
        calls = []

        def third_fails():
            calls.append(1)
            if len(calls) == 3:
                raise LookupError("the third")

        with self.assertRaisesRegex(LookupError, "the third"):
            bench.measure(third_fails, **QUICK)
        self.assertEqual(len(calls), 3)

    def test_wrong_rules(self):
        for name, wrong in (("seconds", math.nan), ("seconds", -1), ("warm_up_calls", 1.5), ("least_samples", 0), ("most_samples", 4), ("warm_up_seconds", "1")):
            with self.assertRaisesRegex(mlff.ArgumentError, name):
                bench.measure(lambda: None, **{**QUICK, name: wrong})
        with self.assertRaisesRegex(mlff.ArgumentError, "a str cannot be called"):
            bench.measure("function", **QUICK)


class Zero(Calculator):
    """Zero everywhere; remembers what it was asked to calculate."""

    implemented_properties = ["energy", "forces"]
    energy = 0.0

    def __init__(self):
        super().__init__()
        self.asked = []

    def calculate(self, atoms=None, properties=("energy",), system_changes=()):
        self.asked.append((properties, system_changes))
        self.results = {"energy": self.energy, "forces": np.zeros((len(atoms), 3))}


class Comparisons(NumbersTest):
    def compare(self, *arguments, **named):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            found = bench.compare(*arguments, **{**QUICK, **named})
        return found, output.getvalue()

    def test_functions(self):
        found, printed = self.compare({"slow": lambda: time.sleep(0.01), "fast": lambda: time.sleep(0.001)})
        self.assertEqual(printed, str(found) + "\n")
        self.assertEqual([row.name for row in found], ["slow", "fast"])
        self.assertEqual((found["slow"].speed, found.atom_count), (1.0, None))
        low, high = found["fast"].speed_interval
        self.assertTrue(low <= found["fast"].speed <= high)
        self.assertGreater(found["fast"].speed, 1.5)
        head, first, second = printed.splitlines()
        self.assertRegex(head, r"^name +median/ms +95 % +mean +std +P95 +P99 +calls/s +speed +95 %$")
        self.assertTrue(first.startswith("slow") and second.startswith("fast"))
        with self.assertRaises(KeyError):
            found["other"]

    def test_sessions_and_calculators(self):
        numbers, positions, cell = water_box()
        atoms = Atoms(numbers, positions, cell=cell, pbc=True)
        exact = mlff.Session("builtin", device="cpu", precision="fp64", threads=1)
        candidates = {"fp64": exact, "mixed": mlff.Session("builtin", device="cpu", precision="mixed", threads=1), "ASE": MLFFCalculator("builtin", device="cpu", precision="fp64", threads=1),
                      "zero": Zero(), "function": lambda: None}
        wanted = exact.evaluate(numbers, positions, cell)
        for given in (atoms, mlff.System(numbers, positions, cell), (numbers, positions, cell), {"numbers": numbers, "positions": positions, "cell": cell}):
            found, _ = self.compare(candidates, given, show=False, **({"least_samples": 2, "most_samples": 2} if given is not atoms else {}))
            self.assert_close(found["fp64"].energy, wanted.energy, 0.0)
            self.assert_close(found["fp64"].forces, wanted.forces, 0.0)
            self.assertEqual((found["fp64"].energy_difference, found["fp64"].force_difference, found.atom_count), (0.0, 0.0, len(numbers)))
            self.assert_close(found["ASE"].force_difference, 0.0, 1e-10)
            self.assert_close(found["mixed"].force_difference, np.abs(found["mixed"].forces - wanted.forces).max(), 0.0)
            self.assertTrue(0 < found["mixed"].force_difference < 1e-3)
            self.assert_close(found["zero"].energy_difference, -wanted.energy / len(numbers), 1e-12)
            self.assert_close(found["zero"].force_difference, np.abs(wanted.forces).max(), 0.0)
            self.assertIsNone(found["function"].energy)
        self.assertEqual(found["fp64"].measurement.throughput, len(numbers) / found["fp64"].measurement.median)
        asked = candidates["zero"].asked
        self.assertGreater(len(asked), 4 * 2 * 2, "nothing is taken from ASE's memory of the last call")
        self.assertEqual(len(asked[0][1]), 6, "all is new")
        self.assertEqual(asked[1], (["energy", "forces"], ["positions"]), "then the atoms have moved")

    def test_texts(self):
        atoms, bad = Atoms("Cu2", [[0, 0, 0], [0, 0, 2.5]]), Zero()
        bad.energy = math.nan
        found, printed = self.compare({"a|b": EMT(), "bad": bad}, atoms)
        self.assertRegex(printed.splitlines()[0], r"atoms/s +speed +95 % +dE/\(eV/atom\) +max dF/\(eV/A\)$")
        self.assertIn("not finite", printed.splitlines()[2])
        lines = found.to_markdown().splitlines()
        self.assertEqual(lines[1], "| --- |" + " ---: |" * 11)
        self.assertTrue(lines[2].startswith(r"| a\|b | "))
        self.assertEqual({line.replace(r"\|", "").count("|") for line in lines}, {13})
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "found.json")
            text = found.to_json(path)
            with open(path) as file:
                self.assertEqual(file.read(), text + "\n")
        data = json.loads(text)
        self.assertEqual((data["reference"], data["atom_count"], [row["name"] for row in data["rows"]]), ("a|b", 2, ["a|b", "bad"]))
        self.assertEqual(data["rows"][0]["samples"], found["a|b"].measurement.samples.tolist())
        self.assertEqual((data["rows"][1]["energy"], data["rows"][1]["energy_difference"]), (None, None))

    def test_wrong_use(self):
        session = mlff.Session("analytic", device="cpu", threads=1)
        for candidates, atoms, words in (({}, None, "dictionary"), ([len], None, "dictionary"), ({"text": "text"}, None, "'text' is a str"), ({"session": session}, None, "needs atoms"),
                                         ({"session": session}, 3, "atoms is a int")):
            with self.assertRaisesRegex(mlff.ArgumentError, words):
                bench.compare(candidates, atoms, **QUICK)
        with self.assertRaises(mlff.StructureError):
            bench.compare({"session": session}, ([8, 8], np.zeros((2, 3))), **QUICK)

    def test_on_a_gpu(self):
        if not HAS_GPU:
            self.skipTest("no GPU")
        numbers, positions, cell = water_box()
        found, _ = self.compare({device: mlff.Session("builtin", device=device, precision="fp64") for device in DEVICES}, (numbers, positions, cell), device="cuda:0")
        self.assertLess(found["cuda:0"].force_difference, 1e-6)


class Documentation(NumbersTest):
    def test_the_example_of_the_page(self):
        with open(os.path.join(os.path.dirname(README), "..", "..", "docs", "python.md")) as file:
            example, = re.findall(r"## Measurements\n.*?```python\n(.*?)```", file.read(), re.S)
        found = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, timeout=120)
        self.assertEqual(found.returncode, 0, found.stderr)
        lines = found.stdout.splitlines()
        self.assertRegex(lines[0], r"^median .*samples, \d+ outliers$")
        self.assertEqual([line.split()[0] for line in lines[1:4]], ["name", "default", "fp64"])
        self.assertEqual((len(lines), lines[5].split()[-1]), (7, "False"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
