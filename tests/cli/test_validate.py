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
        self.assertRegex(result.stdout, r"\nPASS: \d+ checks of 1 system; \d undecided, for which this run is too short: about --steps \d+ would decide\n(recommendation: .+\n)+$")
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
            markdown = file.read()
        self.assertIn("**PASS", markdown)
        self.assertEqual([r["about"] for r in document["recommendations"]], ["time step", "precision", "length", "use"])
        for recommendation in document["recommendations"]:
            self.assertIn(f"\nrecommendation: {recommendation['sentence']}\n", result.stdout)
            self.assertIn(f"\n- {recommendation['about']}: {recommendation['sentence'][:20]}", markdown)
        self.assertRegex(document["recommendations"][0]["sentence"], r"^keep the time step of 0.5 fs for now: the fastest vibrations, of H in water, have a period of about \d+(\.\d)? fs, ")
        self.assertEqual(system["fastest_vibration"]["element"], "H")
        self.assertTrue(7 < system["fastest_vibration"]["period_fs"] < 14, system["fastest_vibration"])
        self.assertEqual((document["against_steps"], system["against"]), (None, None))
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
        self.assertRegex(enough.stdout, r"\nPASS: \d+ checks of 1 system\n(recommendation: .+\n)+$")

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
        self.assertRegex(result.stdout, r"\nrecommendation: add structures like those of water to the training set: forces on [OH] differ from the other model by \S+ eV/A rms ")

    def test_against_itself_nothing_differs(self):
        document = json.loads(run(*SHORT, "--against", STUDENT, "--json", "-").stdout)
        self.assertEqual((document["verdict"], document["against_steps"]), ("pass", 200))
        system, = document["systems"]
        other = system["against"]
        self.assertEqual((other["steps"], other["broke"]), (200, None))
        self.assertEqual(system["forces"]["against"]["force_rmse_eV_per_A"], 0)
        self.assertEqual(system["forces"]["against"]["elements"], {"H": 0, "O": 0})
        self.assertEqual([(pair["pair"], pair["shift_angstrom"], pair["uncertainty_angstrom"]) for pair in other["pair_distances"]], [("H-H", 0, 0), ("H-O", 0, 0)])
        for key in ("nve", "fastest_vibration", "curves"):
            self.assertEqual(other[key], system[key])
        own = {check["name"]: check for check in system["checks"]}
        self.assertGreaterEqual(len(other["checks"]), 12)
        for check in other["checks"]:
            self.assertEqual(check, own[check["name"]])
        self.assertEqual(own["pair distances in a bath against the other model, worst pair"]["verdict"], "pass")

    def test_another_model_runs_beside_this_one(self):
        result = run("--systems", "ethanol", "--steps", "200", "--device", "cpu", "--against", "analytic", "--against-steps", "300", "--report", self.path("report"))
        self.assertEqual((result.returncode, result.stderr), (1, ""), result.stdout)
        self.assertRegex(result.stdout, r"FAIL  pair distances in a bath against the other model, worst pair: \S+ \+- \S+ A, allowed at most 0.1 \(H-H; farther apart by \S+ A in the mean, most near \S+ A\)\n")
        self.assertIn("  beside the other model, 300 steps from the same start with the same random numbers: it fails 1 check itself:\n", result.stdout)
        self.assertRegex(result.stdout, r"\n    energy drift: \S+ \+- \S+ meV/atom/ns, other model \S+ \+- \S+ meV/atom/ns\n")
        self.assertRegex(result.stdout, r"\n    fluctuation of the energy: \S+ meV/atom, other model \S+ meV/atom\n")
        self.assertRegex(result.stdout, r"\n    mean length of a bond, against the start: \S+%, other model \S+% \(fails\)\n")
        self.assertRegex(result.stdout, r"\nrecommendation: judge differences from the other model with care, because it fails itself \(ethanol: mean length of a bond, ")
        with open(self.path("report/report.json")) as file:
            system, = json.load(file)["systems"]
        self.assertEqual([check["name"] for check in system["checks"] if check["verdict"] == "fail" and "the other model" not in check["name"]], [])
        self.assertEqual([check["name"] for check in system["against"]["checks"] if check["verdict"] == "fail"], ["mean length of a bond, against the start"])
        self.assertEqual({pair["pair"] for pair in system["against"]["pair_distances"]}, {"H-H", "H-C", "H-O", "C-C", "C-O"})
        with open(self.path("report/report.md")) as file:
            self.assertRegex(file.read(), r"\n\| mean length of a bond, against the start \| \S+% \| \S+% \| fail \|\n")

    def test_the_other_model_may_only_evaluate_or_break(self):
        document = json.loads(run(*SHORT, "--against", "analytic", "--against-steps", "0", "--json", "-").stdout)
        system, = document["systems"]
        self.assertEqual((document["against_steps"], system["against"]), (0, None))
        self.assertGreater(system["forces"]["against"]["force_rmse_eV_per_A"], 0.1)
        self.assertNotIn("pair distances in a bath against the other model, worst pair", [check["name"] for check in system["checks"]])
        result = run(*SHORT, "--against", self.student_with_scales(1000), "--report", self.path("report"))
        self.assertRegex(result.stdout, r"  beside the other model, 200 steps from .*: it broke itself, .* broke at step \d+: ")
        self.assertRegex(result.stdout, r"\nrecommendation: do not take the other model for the truth in water: it breaks itself, ")
        with open(self.path("report/report.json")) as file:
            system, = json.load(file)["systems"]
        self.assertIsNone(system["broke"])
        self.assertGreater(system["against"]["broke"]["step"], 0)
        self.assertEqual(system["against"]["pair_distances"], [])

    def test_progress_on_a_terminal_only(self):
        ours, terminal = pty.openpty()
        process = subprocess.Popen([MLFF, "validate", "--systems", "water", "--steps", "100", "--device", "cpu", "--against", "analytic"], stdout=subprocess.PIPE, stderr=terminal)
        os.close(terminal)
        text = b""
        try:
            while data := os.read(ours, 65536):
                text += data
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        shown = process.communicate(timeout=60)[0]
        self.assertRegex(text, rb"\[1/1\] water: other model, NVT, \d+ %")
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
        self.assert_fails(run("--against", "builtin", "--against-steps", "20"), 2, "--against-steps 20: expected at least 100, or 0 for none")
        self.assert_fails(run("--against", "builtin", "--against-steps", "-1"), 2, "--against-steps")
        self.assert_fails(run("--against-steps", "200"), 2, "--against")
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
