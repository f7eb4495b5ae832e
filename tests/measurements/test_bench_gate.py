# SPDX-License-Identifier: MIT
"""scripts/bench-gate itself: what it says of counts that are given, and that it catches a kernel which does its work twice."""
import importlib.machinery
import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "bench-gate"
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("bench_gate", str(SCRIPT))
gate = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_gate", loader))
loader.exec_module(gate)
CASE, QUICK_CASE = "student mixed", "neighbour list"


def run(*options, path=None):
    run = subprocess.run([sys.executable, str(SCRIPT), "--program", PROGRAM, *options], text=True, capture_output=True, env=None if path is None else {"PATH": path})
    return run.returncode, run.stdout + run.stderr


class Comparison(unittest.TestCase):
    def line(self, before, now):
        (found,) = gate.compare({"x": before}, {"x": now})
        return found

    def test_growth_beyond_the_limit_fails_and_is_named(self):
        text, is_good = self.line(1000000, 1030001)
        self.assertFalse(is_good)
        for part in ("FAIL", "x:", "1,030,001", "1,000,000", "+3.00 %"):
            self.assertIn(part, text)

    def test_growth_within_the_limit_passes(self):
        for now in (1030000, 1000000, 900001):
            text, is_good = self.line(1000000, now)
            self.assertTrue(is_good)
            self.assertTrue(text.startswith("pass"), text)

    def test_a_big_drop_is_reported_with_what_to_do(self):
        text, is_good = self.line(1000000, 899999)
        self.assertTrue(is_good)
        self.assertIn("--update", text)

    def test_a_case_without_a_stored_count_fails(self):
        ((text, is_good),) = gate.compare({}, {"x": 5})
        self.assertFalse(is_good)
        self.assertIn("--update", text)

    def test_files_that_are_none_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "counts.json"
            for text in ("", "[]", "{}", '{"format": "mlff-instruction-counts", "counts": {"a": {"x": -1}}}', '{"format": "mlff-instruction-counts", "counts": {"a": 3}}'):
                path.write_text(text)
                with self.assertRaises(gate.Refusal, msg=text) as found:
                    gate.read_counts(path)
                self.assertIn(str(path), str(found.exception))

    def test_the_stored_counts_can_be_read(self):
        self.assertTrue(gate.read_counts(gate.COUNTS)["counts"])

    def test_without_valgrind_it_is_skipped(self):
        code, said = run(path="/nonexistent")
        self.assertEqual(code, 77, said)
        self.assertIn("valgrind is not installed", said)

    def test_without_the_program_it_says_what_builds_it(self):
        code, said = run("--program", "/nonexistent/program")
        self.assertEqual(code, 2, said)
        self.assertIn("scripts/test", said)
        code, said = run("--aarch64", "--program", "/nonexistent/program")
        self.assertEqual(code, 2, said)
        self.assertIn("scripts/test --aarch64", said)


@unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed")
class Counting(unittest.TestCase):
    """An absent entry is named before anything is counted, entries of others stay, the same count comes twice, a slow kernel is caught: three runs that count."""

    def test_a_kernel_that_works_twice_is_caught(self):
        with tempfile.TemporaryDirectory() as folder:
            counts, found = f"{folder}/counts.json", pathlib.Path(folder) / "found.json"
            elsewhere = {"vax, g++ 12, plain": {CASE: 7}}
            pathlib.Path(counts).write_text(json.dumps({"format": "mlff-instruction-counts", "counts": elsewhere}))
            code, said = run("--counts", counts, "--json", str(found))  # all cases, none of them counted
            if "cannot run the" in said or "which kernels" in said:
                self.skipTest(said.strip())
            self.assertEqual(code, 77, said)
            self.assertRegex(said, r"no counts are stored for [\w-]+, \S+ \d+, \w+; run scripts/bench-gate --update to add them")
            self.assertFalse(found.exists())

            code, said = run("--counts", counts, "--only", QUICK_CASE, "--only", CASE, "--update")
            self.assertEqual(code, 0, said)
            document = json.loads(pathlib.Path(counts).read_text())["counts"]
            self.assertEqual({key: document.pop(key) for key in elsewhere}, elsewhere)
            ((key, stored),) = document.items()
            self.assertEqual(set(stored), {CASE, QUICK_CASE})
            code, said = run("--counts", counts, "--only", QUICK_CASE, "--json", str(found))
            self.assertEqual(code, 0, said)
            again = json.loads(found.read_text())
            self.assertEqual(again["key"], key)
            self.assertLess(abs(again["counts"][QUICK_CASE] / stored[QUICK_CASE] - 1), 0.005)

            code, said = run("--counts", counts, "--only", CASE, "--slow-kernel", "--json", str(found))
            self.assertEqual(code, 1, said)
            self.assertIn(f"FAIL  {CASE}", said)
            self.assertGreater(json.loads(found.read_text())["counts"][CASE], 1.03 * stored[CASE])


if __name__ == "__main__":
    unittest.main()
