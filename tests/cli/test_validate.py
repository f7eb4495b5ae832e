# SPDX-License-Identifier: MIT
"""mlff validate: the embedded student passes, broken copies of it fail in words. Usage: test_validate.py MLFF STUDENT.safetensors DOCUMENTATION.md"""
import json
import os
import pty
import re
import struct
import subprocess
import sys
import unittest

from command_test import CommandTest

MLFF, STUDENT, DOCUMENTATION = sys.argv[1:4]
SHORT = ["--systems", "water", "--steps", "200", "--device", "cpu", "--threads", "2"]


def run(*arguments):
    return subprocess.run([MLFF, "validate", *arguments], capture_output=True, text=True, timeout=60)


class Validate(CommandTest):
    def student_with_scales(self, factor):
        """A copy of the student whose learned energies are multiplied; repulsion and energies of single atoms stay."""
        with open(STUDENT, "rb") as file:
            data = bytearray(file.read())
        header_size = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + header_size])["scales"]
        self.assertEqual(header["dtype"], "F64")
        begin, end = (8 + header_size + offset for offset in header["data_offsets"])
        form = f"<{(end - begin) // 8}d"
        data[begin:end] = struct.pack(form, *(factor * scale for scale in struct.unpack(form, data[begin:end])))
        path = self.path(f"scaled_{factor}.safetensors")
        with open(path, "wb") as file:
            file.write(data)
        return path

    def test_the_embedded_student_passes(self):
        report = self.path("report")
        result = run(*SHORT, "--report", report)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        self.assertRegex(result.stdout, r"\nPASS: \d+ checks of 1 system; \d undecided, for which this run is too short: about --steps \d+ would decide\n$")
        self.assertRegex(result.stdout, r"^water \(H2O, 3 atoms\): pass, \d undecided\n")
        self.assertRegex(result.stdout, r"\n  undecided  mean temperature in a bath: \S+ \+- \S+% off, allowed -3 to 3 \(about \d+ steps would decide\)\n")
        self.assertEqual(sorted(os.listdir(report)), ["report.html", "report.json", "report.md"])
        with open(os.path.join(report, "report.json")) as file:
            document = json.load(file)
        self.assertEqual((document["verdict"], document["model"], document["steps"]), ("pass", "builtin", 200))
        system, = document["systems"]
        self.assertEqual((system["name"], system["formula"], system["atoms"], system["broke"]), ("water", "H2O", 3, None))
        self.assertGreaterEqual(len(system["checks"]), 12)
        undecided = {check["name"] for check in system["checks"] if check["verdict"] == "undecided"}
        self.assertLessEqual({"mean temperature in a bath", "distribution of the temperature", "equipartition, worst element"}, undecided)
        self.assertLessEqual(undecided, {"mean temperature in a bath", "distribution of the temperature", "equipartition, worst element", "energy drift"})
        self.assertEqual({check["name"] for check in system["checks"] if check["deciding_steps"]}, undecided)
        for counts in (document, system):
            self.assertEqual((counts["passed"], counts["failed"], counts["undecided"]), (len(system["checks"]) - len(undecided), 0, len(undecided)))
            self.assertEqual(counts["deciding_steps"], max(check["deciding_steps"] or 0 for check in system["checks"]))
        self.assertLess(system["forces"]["reference"]["worst_force_eV_per_A"], 0.01)
        self.assertGreater(system["forces"]["reference"]["frames"], 10)
        with open(os.path.join(report, "report.md")) as file:
            self.assertIn("**PASS", file.read())
        # The same again, number for number, but for one limit that nothing meets.
        strict = json.loads(run(*SHORT, "--thresholds", self.path("t.json", '{"closest_contact": 2}'), "--json", "-").stdout)
        self.assertEqual(strict["verdict"], "fail")
        self.assertEqual([check["name"] for check in strict["systems"][0]["checks"] if check["verdict"] == "fail"], ["closest contact"])
        self.assertEqual(strict["systems"][0]["nve"], system["nve"])
        self.assertEqual(strict["thresholds"] | {"closest_contact": document["thresholds"]["closest_contact"]}, document["thresholds"])

    def test_the_steps_that_it_asks_for_decide(self):
        options = ["--model", "analytic", "--systems", "water", "--device", "cpu", "--thresholds", self.path("wide.json", '{"temperature_percent": 30, "equipartition_percent": 50}')]
        brief = json.loads(run(*options, "--steps", "200", "--json", "-").stdout)
        self.assertGreater(brief["undecided"], 2)
        enough = run(*options, "--steps", str(brief["deciding_steps"]))
        self.assertEqual((enough.returncode, enough.stderr), (0, ""), enough.stdout)
        self.assertRegex(enough.stdout, r"\nPASS: \d+ checks of 1 system\n$")

    def test_a_broken_student_fails(self):
        # Attraction where there was repulsion: the molecule falls to pieces or into itself.
        result = run(*SHORT, "--model", self.student_with_scales(-1), "--report", self.path("report"))
        self.assertEqual((result.returncode, result.stderr), (1, ""), result.stdout)
        self.assertIn("FAIL: 1 of 1 system; water: ", result.stdout)
        self.assertRegex(result.stdout, r"length of a bond at any time, against the start is \S+%, allowed at most")
        # Forces so large that a time step goes too far.
        result = run(*SHORT, "--model", self.student_with_scales(1000))
        self.assertEqual((result.returncode, result.stderr), (1, ""), result.stdout)
        self.assertRegex(result.stdout, r"water: (NVT|NVE|the relaxation) broke at step \d+: .*; closest: ")

    def test_against_another_model(self):
        scaled = self.student_with_scales(2)
        result = run(*SHORT, "--model", scaled, "--against", "builtin")
        self.assertEqual((result.returncode, result.stderr), (1, ""), result.stdout)
        self.assertRegex(result.stdout, r"FAIL  forces against the other model, rms: \S+ eV/A, allowed at most 0.15 \(worst: atom \d \([OH]\) in step \d+ of NV[TE], ")
        self.assertRegex(result.stdout, r"pass  forces against the fp64 reference, worst atom: ")
        same = json.loads(run(*SHORT, "--against", STUDENT, "--json", "-").stdout)
        self.assertEqual(same["verdict"], "pass")
        self.assertLess(same["systems"][0]["forces"]["against"]["force_rmse_eV_per_A"], 1e-4)

    def test_progress_on_a_terminal_only(self):
        ours, terminal = pty.openpty()
        process = subprocess.Popen([MLFF, "validate", "--systems", "water", "--steps", "100", "--device", "cpu"], stdout=subprocess.PIPE, stderr=terminal)
        os.close(terminal)
        text = b""
        try:
            while data := os.read(ours, 65536):
                text += data
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        shown = process.communicate(timeout=60)[0]
        self.assertRegex(text, rb"\[1/1\] water: NVT, \d+ %")
        self.assertTrue(text.endswith(b"\r\x1b[K"), "the line is gone at the end")
        self.assertNotIn(b"\r", shown)

    def test_a_file_of_the_user(self):
        frames = self.path("two.xyz", "2\n\nO 0 0 0\nH 0 0 0.96\n" + "3\n\nO 0 0 0\nH 0.96 0 0\nH -0.24 0.93 0\n")
        document = json.loads(run("--systems", frames, "--steps", "100", "--model", "analytic", "--device", "cpu", "--json", "-").stdout)
        self.assertEqual([system["name"] for system in document["systems"]], [frames + " frame 1", frames + " frame 2"])

    def test_bad_usage_and_input(self):
        self.assert_fails(run("--systems", "watr"), 2, "watr", "water-box")
        self.assert_fails(run("--steps", "20"), 2, "--steps")
        self.assert_fails(run("--steps", "200", "--long"), 2, "--long")
        self.assert_fails(run("--dt", "nan"), 2, "--dt")
        self.assert_fails(run("--temperature", "0"), 2, "--temperature")
        self.assert_fails(run("--systems", "silicon"), 3, "Si")
        self.assert_fails(run("--systems", self.path("none.xyz")), 3, "none.xyz")
        self.assert_fails(run("--systems", self.path("flat.xyz", '2\nLattice="0 0 0 0 5 0 0 0 5" pbc="T T T"\nO 0 0 0\nH 0 0 1\n')), 3, "flat.xyz")
        self.assert_fails(run("--thresholds", self.path("t.json", '{"drfit": 1}')), 3, "drfit")
        self.assert_fails(run("--thresholds", self.path("none.json")), 3, "none.json")
        self.assert_fails(run("--json", "/no/such/folder/x.json"), 3, "/no/such/folder")
        self.assert_fails(run("--report", self.path("t.json")), 3, "--report")
        self.assert_fails(run("--model", "/no/such.model"), 3, "/no/such.model")
        self.assert_fails(run("--against", "/no/such.model"), 3, "/no/such.model")

    def test_defaults_are_documented(self):
        with open(DOCUMENTATION) as file:
            documented = {key: float(value) for key, value in re.findall(r"^\| `(\w+)` \| ([\d.e-]+) \|", file.read(), re.MULTILINE)}
        self.assertEqual(documented, json.loads(run("--systems", "water", "--steps", "100", "--device", "cpu", "--json", "-").stdout)["thresholds"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
