# SPDX-License-Identifier: MIT
"""The GPU comparison without a GPU: reading what ncu writes, adding it up, and the tables made of it."""
import json
import math
import pathlib
import sys
import tempfile
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "measurements"
sys.path[:0] = [str(BENCH), str(BENCH / "gpu_vs_peers")]
import ncu
import tables
from store import Store, is_within

FFMA, FADD, FMUL = (ncu.THREAD_INSTRUCTIONS.format(name) for name in ("ffma", "fadd", "fmul"))
SM = ncu.PERCENT["SM"]
# Two launches of one kernel template and one of another; 20 and 60 us, 20 us.
WIDE = f'''==PROF== Connected to process 42 (python3)
a line of the program
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","{ncu.DRAM}","{ncu.TIME}","{FADD}","{FFMA}","{FMUL}","{SM}","{ncu.TENSOR['fp16_mma'][0]}"
"","","","","","","","","","","","byte","ns","inst","inst","inst","%","n/a"
"0","42","python3","host","void mlff::cuda::(anonymous namespace)::sum_messages<float, mlff::Set<(int)4, (bool)1>>(View<float>, int)","1","7","(256, 1, 1)","(96, 1, 1)","0","9.0","1,000,000","20,000","100","1,000,000","200","50.00","n/a"
"1","42","python3","host","void mlff::cuda::<unnamed>::sum_messages<float, (int)1>(View<float>, int)","1","7","(256, 1, 1)","(96, 1, 1)","0","9.0","3,000,000","60,000","100","2,000,000","200","10.00","n/a"
"2","42","python3","host","place_atoms(CellGrid, const double *)","1","7","(256, 1, 1)","(96, 1, 1)","0","9.0","0","20,000","0","0","0","1.00","n/a"
==PROF== Disconnected from process 42
'''
LONG = f'''"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"
"0","42","p","h","void fp16_mma_kernel(unsigned int, float *)","1","7","(1, 1, 1)","(1, 1, 1)","0","9.0","Command line profiler metrics","{ncu.TIME}","us","1.5"
"0","42","p","h","void fp16_mma_kernel(unsigned int, float *)","1","7","(1, 1, 1)","(1, 1, 1)","0","9.0","Command line profiler metrics","{ncu.TENSOR['fp16_mma'][0]}","","2,048"
'''


class Profile(unittest.TestCase):
    def test_names_lose_templates_and_namespaces(self):
        for name, short in (("void mlff::cuda::(anonymous namespace)::sum_messages<float, Set<(int)4>>(View<float>)", "sum_messages"),
                            ("void cub::Scan<cub::Policy<int>::Max>(int *)", "Scan"), ("gather_kernel", "gather_kernel"),
                            ("void A<(int)3>::run<float>(int)", "run")):
            self.assertEqual(ncu.short_name(name), short)

    def test_both_forms_of_the_table(self):
        launches = ncu.parse(WIDE)
        self.assertEqual(len(launches), 3)
        self.assertAlmostEqual(launches[0][ncu.TIME], 20e-6)
        self.assertEqual(launches[1][FFMA], 2e6)
        self.assertIsNone(launches[0][ncu.TENSOR["fp16_mma"][0]])
        self.assertAlmostEqual(ncu.parse(LONG)[0][ncu.TIME], 1.5e-6)
        self.assertEqual(ncu.parse("==ERROR== no permission\n"), [])

    def test_launches_are_added_up(self):
        messages, place = ncu.add_up(ncu.parse(WIDE))
        self.assertEqual((messages["name"], messages["launches"], place["name"]), ("sum_messages", 2, "place_atoms"))
        self.assertAlmostEqual(messages["seconds"], 80e-6)
        self.assertAlmostEqual(messages["percent"][SM], (20 * 50 + 60 * 10) / 80)
        rates = ncu.rates(messages)
        self.assertAlmostEqual(rates["fp32"] * 80e-6, 2 * 3e6 + 200 + 400)
        self.assertAlmostEqual(rates["DRAM"] * 80e-6, 4e6)
        self.assertNotIn("fp64", rates)
        self.assertNotIn("fp16_mma", rates)

    def test_nearest_limit(self):
        messages = ncu.add_up(ncu.parse(WIDE))[0]
        self.assertEqual(ncu.closest_limit(messages, {"copy_bytes": 1e11})[0], "DRAM")
        self.assertEqual(ncu.closest_limit(messages, {"copy_bytes": 1e13}), ("SM", 0.2))
        self.assertIsNone(ncu.closest_limit({"seconds": 1.0, "sums": {}, "percent": {}}, {}))

    def test_tensor_counters_are_calibrated(self):
        self.assertEqual(ncu.calibrate(ncu.parse(LONG), {"fp16_mma_kernel": 4096}), {"fp16_mma": 2.0})


class Results(unittest.TestCase):
    def test_nan_is_not_within(self):
        self.assertFalse(is_within(math.nan, 1e9))
        self.assertFalse(is_within(None, 1e9))
        self.assertFalse(is_within(math.inf, 1e9))
        self.assertFalse(is_within(-2.0, 1.0))
        self.assertTrue(is_within(1e-4, 1e-3))

    def test_store_keeps_what_it_has(self):
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "r.json")
            Store(path).put("speed", "a", {"x": 1})
            Store(path).put("speed", "b", {"x": 2})
            self.assertEqual(json.loads(pathlib.Path(path).read_text())["speed"], {"a": {"x": 1}, "b": {"x": 2}})

    def lines(self, results):
        """All tables of a store with these results (None: no file)."""
        stored = tables.RESULTS
        with tempfile.TemporaryDirectory() as folder:
            tables.RESULTS = pathlib.Path(folder)
            try:
                if results is not None:
                    (tables.RESULTS / "gpu_vs_peers.json").write_text(json.dumps(results))
                return {name: "\n".join(tables.TABLES[name]()) for name in ("gpu_vs_peers", "gpu_peaks", "gpu_profile_12288", "gpu_profile_3")}
            finally:
                tables.RESULTS = stored

    def test_tables_without_results(self):
        for results in (None, {}, {"speed": {}, "peaks": {}, "profile": {}}):
            for text in self.lines(results).values():
                self.assertIn("not measured", text)

    def test_tables_with_some_results(self):
        figures = {"median_ms": 24.0, "min_ms": 23.0, "max_ms": 25.0, "calls": 20, "memory_mb": 1300.0}
        slower = {**figures, "median_ms": 60.0}
        case = {"model": "mp0-medium", "atoms": 12288, "precision": "mixed", "mlff": figures, "cueq": slower, "cueq-stress": {"error": "out of memory"},
                "force_difference": {"cueq": 2e-5}}
        kernels = ncu.add_up(ncu.parse(WIDE))
        text = self.lines({"speed": {"mp0-medium:12288:mixed": case}, "peaks": {"copy_bytes": 4.3e12},
                           "profile": {"mp0-medium:12288:mixed": {"seconds": 1e-4, "launches": 3, "kernels": kernels}}})
        self.assertIn("| mp0-medium, 12,288, mixed | 24.00 (23.00-25.00) | 1.95 | 0.95 us/atom, missed 2.06x | 60.00 (23.00-25.00) | **2.5x** | 2e-05 |",
                      text["gpu_vs_peers"])
        self.assertIn("cuEquivariance with stress, mp0-medium, 12,288 atoms: not measured.", text["gpu_vs_peers"])
        self.assertIn("mp0-small, 12,288, mixed | not measured", text["gpu_vs_peers"])
        self.assertIn("4.3 TB/s", text["gpu_peaks"])
        self.assertIn("| `sum_messages` | 2 | 80.0 | 80.0% |", text["gpu_profile_12288"])
        self.assertIn("not measured", text["gpu_profile_3"])


if __name__ == "__main__":
    unittest.main()
