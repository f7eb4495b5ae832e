# SPDX-License-Identifier: MIT
"""The command line: its output, its exit codes and its messages. Usage: test_cli.py MLFF GOLDEN_DIR [SHARED_GOLDEN_DIR]"""
import glob
import hashlib
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from command_test import CommandTest

MLFF, GOLDEN_DIR = sys.argv[1], sys.argv[2]
IS_SANITIZED = "ASAN_OPTIONS" in os.environ  # set by CTest for that build
os.environ["MLFF_CALIBRATIONS"] = os.path.devnull  # those of the user's are not for tests
SHARED_DIR = sys.argv[3] if len(sys.argv) > 3 and os.path.isdir(sys.argv[3]) else None

WATER = """3
Lattice="5 0 0 0 6 0 0 0 7" Properties=species:S:1:pos:R:3 pbc="T T T"
O 0 0 0
H 0.96 0 0
H -0.24 0.93 0
"""
NEQUIP_DIR = pathlib.Path(__file__).parents[1] / "golden/nequip"
PAINN_MODEL = pathlib.Path(__file__).parents[1] / "golden/painn/one_block_no_repulsion.safetensors"
MOLECULE = "2\n\nC 0 0 0\nO 0 0 1.13\n"


def run(*arguments, stdin=None):
    return subprocess.run([MLFF, *arguments], input=stdin, capture_output=True, text=True, timeout=60)


def without_doubts(stderr):
    """Without the lines about atoms that are unlike training, as in MOLECULE."""
    return "".join(line for line in stderr.splitlines(keepends=True) if " in training; expect force errors above " not in line)


class CommandLine(CommandTest):
    def test_help_and_version(self):
        self.assertIn("eval", run("--help").stdout)
        self.assertRegex(run("--version").stdout, r"^mlff \d+\.\d+\.\d+$")
        self.assertEqual(run("--help").returncode, 0)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_lost_output_is_an_error(self):
        water, model = self.path("w.xyz", WATER), os.path.join(GOLDEN_DIR, "p10_mace_1layer_c1_ell1.model")
        commands = [["--help"], ["--version"], ["eval", water], ["eval", water, "--json", "-"], ["md", water, "--ensemble", "nve", "--dt", "0.5", "--temperature", "10", "--steps", "2", "--output", self.path("t.xyz")],
                    ["relax", water, "--fmax", "1000", "--output", self.path("r.xyz")], ["model", "info", model], ["model", "info", model, "--json", "-"], ["model", "list"],
                    ["model", "convert", model, self.path("c.safetensors")], ["compare", "builtin", "builtin", water], ["doctor"]]
        for command in commands[:4] if IS_SANITIZED else commands:
            with self.subTest(command=command), open("/dev/full", "w") as full:
                result = subprocess.run([MLFF, *command], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
                self.assertEqual(result.returncode, 3, result.stderr)
                self.assertRegex(result.stderr, r"^mlff: standard output: cannot write")

    def test_bad_usage(self):
        self.assert_fails(run(), 2, "--help")
        self.assert_fails(run("frobnicate"), 2, "frobnicate")
        self.assert_fails(run(), 2, "(try 'mlff --help')")
        for command in ("eval", "md", "relax", "plan", "serve", "compare", "distill", "model", "model info", "model convert", "model add", "model remove"):
            self.assert_fails(run(*command.split()), 2, "required", f"(try 'mlff {command} --help')")
        self.assert_fails(run("eval"), 2, "FILE")
        self.assert_fails(run("md", self.path("w.xyz", WATER), "--ensemble", "nvt", "--steps", "1", "--dt", "1"), 2, "--temperature", "(try 'mlff md --help')")
        self.assert_fails(run("eval", "x.xyz", "--nonsense"), 2, "nonsense")
        self.assert_fails(run("model"), 2)
        self.assert_fails(run("eval", self.path("w.xyz", WATER), "--precision", "fp8"), 2, "fp8")
        self.assert_fails(run("eval", self.path("w.xyz", WATER), "--device", "toaster"), 2, "toaster")
        self.assert_fails(run("eval", self.path("w.xyz", WATER), "--threads", "-2"), 2, "thread")

    def test_expected_errors(self):
        peroxide = self.path("h2o2.xyz", "4\n\nO 0 0.73 -0.05\nO 0 -0.73 -0.05\nH 0.8 0.9 0.4\nH -0.8 -0.9 0.4\n")
        result = run("eval", peroxide, "--device", "cpu", "--json", "-", "--output", self.path("out.xyz"))
        self.assertEqual(result.returncode, 0)
        trust = json.loads(result.stdout)["frames"][0]["trust"]
        self.assertEqual(trust["outside"], [0, 1, 2, 3])
        self.assertEqual(trust["max_expected_error"], max(trust["expected_errors"]))
        self.assertGreater(min(trust["expected_errors"]), 0.2)
        self.assertEqual(len(trust["novelties"]), 4)
        self.assertRegex(result.stderr, r"h2o2.xyz: frame 0: atoms 0, 1, 2, 3 \(O O H H\) are unlike most atoms in training; expect force errors above 0.2\d* eV/A")
        self.assertIn("expected_errors:R:1:novelties:R:1", pathlib.Path(self.path("out.xyz")).read_text())
        quiet = run("eval", self.path("w.xyz", WATER), "--device", "cpu")
        self.assertIn("expected error/(eV/A)", quiet.stdout)
        self.assertEqual(quiet.stderr, "")

    def test_trust_fit(self):
        # Frames of a model of its own: the true forces are those of another one, so that there are errors.
        frames = []
        for i in range(60):
            z = 0.95 + 0.002 * i
            frames.append(f"3\nProperties=species:S:1:pos:R:3 molecule=m{i % 12}\nO 0 0 0\nH {z} 0.1 0\nH -0.2 {z} {0.01 * i}\n")
        labelled = self.path("labelled.xyz")
        assert run("eval", self.path("frames.xyz", "".join(frames * 3)), "--model", "builtin", "--device", "cpu", "--output", labelled).returncode == 0
        model = self.path("m.safetensors")
        shutil.copy(PAINN_MODEL, model)
        few = run("trust", "fit", model, self.path("w.xyz", WATER), "--device", "cpu")
        self.assert_fails(few, 3, "no column forces:R:3")
        result = run("trust", "fit", model, labelled, "--device", "cpu", "--json", self.path("card.json"), "--report", self.path("report"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("count as unseen", result.stderr)
        card = json.loads(pathlib.Path(self.path("card.json")).read_text())
        self.assertEqual(card["fitted_atoms"], 540)
        self.assertGreater(card["judgement"]["rank_correlation"], 0.5)
        self.assertTrue(pathlib.Path(self.path("report"), "calibration.html").exists())
        frame = json.loads(run("eval", self.path("w.xyz", WATER), "--model", model, "--device", "cpu", "--json", "-").stdout)["frames"][0]
        self.assertEqual(len(frame["trust"]["expected_errors"]), 3)
        other = self.path("other.safetensors")
        pathlib.Path(other).write_bytes(pathlib.Path(model).read_bytes()[:-1] + b"\1")
        pathlib.Path(other + ".trust").write_bytes(pathlib.Path(model + ".trust").read_bytes())
        self.assert_fails(run("eval", self.path("w.xyz", WATER), "--model", other), 3, "fitted to another model")
        self.assert_fails(run("trust", "fit", "builtin", labelled), 2, "--output")
        self.assert_fails(run("trust", "fit", "zbl", labelled, "--output", self.path("z.trust")), 3, "zbl")

    def test_eval_json(self):
        path = self.path("w.xyz", WATER + MOLECULE)
        result = run("eval", path, "--device", "cpu", "--json", "-")
        self.assertEqual((result.returncode, without_doubts(result.stderr)), (0, ""))
        document = json.loads(result.stdout)
        self.assertEqual(document["model"], "builtin")
        self.assertEqual((document["device"], document["precision"]), ("cpu", "mixed"))
        water, molecule = document["frames"]
        self.assertEqual((water["atoms"], len(water["forces"]), len(water["stress"])), (3, 3, 6))
        self.assertIsNone(molecule["stress"])
        for frame in document["frames"]:
            self.assertTrue(math.isfinite(frame["energy"]))
            self.assertAlmostEqual(sum(frame["atom_energies"]), frame["energy"], places=10)
            for k in range(3):
                self.assertAlmostEqual(sum(force[k] for force in frame["forces"]), 0.0, places=10 if document["precision"] == "fp64" else 5)

    def test_eval_of_committees(self):
        path, out = self.path("w.xyz", WATER + MOLECULE), self.path("o.xyz")
        members = ["builtin", "self-test+zbl"]
        listed = self.path("members.txt", "mlff committee\n# as heavy as three\nbuiltin weight=3\nself-test+zbl\n")

        def frames(model):
            result = run("eval", path, "--model", model, "--device", "cpu", "--precision", "fp64", "--output", out, "--json", "-")
            self.assertEqual((result.returncode, without_doubts(result.stderr)), (0, ""))
            return json.loads(result.stdout)["frames"]

        alone = [frames(member) for member in members]
        self.assertNotIn("sigma", alone[0][0])
        with open(out) as file:
            self.assertNotIn("sigma", file.read())
        for model, weights in ((",".join(members), (0.5, 0.5)), (listed, (0.75, 0.25))):
            for index, frame in enumerate(frames(model)):
                first, second = (results[index] for results in alone)
                apart = math.sqrt(weights[0] * weights[1])  # of two numbers whose difference is 1

                def mean(one, other):
                    return weights[0] * one + weights[1] * other
                self.assertAlmostEqual(frame["energy"], mean(first["energy"], second["energy"]), places=8)
                self.assertAlmostEqual(frame["sigma"]["energy_per_atom"], apart * abs(first["energy"] - second["energy"]) / frame["atoms"], places=8)
                self.assertEqual(len(frame["sigma"]["forces"]), frame["atoms"])
                for force, sigma, one, other in zip(frame["forces"], frame["sigma"]["forces"], first["forces"], second["forces"]):
                    self.assertAlmostEqual(sigma, apart * math.dist(one, other), places=8)
                    for k in range(3):
                        self.assertAlmostEqual(force[k], mean(one[k], other[k]), places=8)
                self.assertEqual(frame["sigma"]["max_force"], max(frame["sigma"]["forces"]))
            with open(out) as file:
                text = file.read()
            self.assertIn("sigma_forces:R:1", text)
            self.assertIn(f"sigma_max_force={frame['sigma']['max_force']!r}", text)
        self.assertIn("max sigma_F", run("eval", path, "--model", listed, "--device", "cpu").stdout)

        info = json.loads(run("model", "info", listed, "--json", "-").stdout)
        self.assertEqual([(member["name"], member["weight"]) for member in info["members"]], [("builtin", 0.75), ("self-test+zbl", 0.25)])
        self.assertRegex(run("model", "info", listed).stdout, r"member +self-test\+zbl, Sum, weight 0.25\n")
        self.assert_fails(run("eval", path, "--model", "builtin,"), 2, "no model beside it")
        self.assert_fails(run("eval", path, "--model", self.path("one.txt", "mlff committee\nbuiltin\n")), 3, "one.txt", "two or more")
        self.assert_fails(run("eval", path, "--model", self.path("bad.txt", "mlff committee\nbuiltin\nzbl weight=-1\n")), 3, "bad.txt: line 3", "weight")

    def test_eval_prints_forces_of_a_few_atoms(self):
        def printed(*arguments):
            """{(frame, atom): (element, forces)} of the second table."""
            result = run("eval", *arguments, "--device", "cpu")
            self.assertEqual((result.returncode, without_doubts(result.stderr)), (0, ""))
            rows = result.stdout.partition("Fz/(eV/A)\n")[2].split("\n")
            return {(int(row[0]), int(row[1])): (row[2], [float(word) for word in row[3:]]) for row in map(str.split, rows) if row}

        few, many = self.path("few.xyz", 6 * WATER + MOLECULE), self.path("many.xyz", 7 * WATER)  # 20 and 21 atoms
        frames = json.loads(run("eval", few, "--device", "cpu", "--json", "-").stdout)["frames"]
        expected = {(i, j): force for i, frame in enumerate(frames) for j, force in enumerate(frame["forces"])}
        found = printed(few)
        self.assertEqual(list(found), list(expected))
        self.assertEqual([element for element, _ in found.values()], 6 * ["O", "H", "H"] + ["C", "O"])
        for place, (_, force) in found.items():
            self.assertEqual(len(force), 3)
            for number, exact in zip(force, expected[place]):
                self.assertLessEqual(abs(number - exact), 5.1e-7)
        self.assertEqual(printed(many), {})
        self.assertEqual(len(printed(many, "--forces")), 21)

    def test_eval_to_files_and_from_standard_input(self):
        path, out, js = self.path("w.xyz", WATER), self.path("o.xyz"), self.path("o.json")
        result = run("eval", path, "--json", js, "--output", out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("energy", result.stdout)
        with open(js) as file:
            energy = json.load(file)["frames"][0]["energy"]
        with open(out) as file:
            text = file.read()
        self.assertIn("forces:R:3", text)
        self.assertIn(f"energy={energy!r}", text)
        again = json.loads(run("eval", "-", "--json", "-", stdin=text).stdout)
        self.assertEqual(again["frames"][0]["energy"], energy)
        self.assertEqual(sorted(os.listdir(self.folder)), ["o.json", "o.xyz", "w.xyz"], "no temporary files are left")

    def test_output_goes_where_a_link_leads_to(self):
        os.mkdir(self.path("far"))
        for link, target in (("new.xyz", "far/new.xyz"), ("old.xyz", self.path("far/old.xyz", "old")), ("twice.xyz", "new.xyz")):
            os.symlink(target, self.path(link))
            self.assertEqual(run("eval", self.path("w.xyz", WATER), "--output", self.path(link)).returncode, 0)
            self.assertTrue(os.path.islink(self.path(link)))
            with open(self.path(link)) as file:
                self.assertIn("energy=", file.read())
        self.assertEqual(sorted(os.listdir(self.path("far"))), ["new.xyz", "old.xyz"])

    def test_descriptors_and_exact_radial_functions(self):
        model, path, out = os.path.join(GOLDEN_DIR, "p09_l2_ell3.model"), self.path("w.xyz", WATER), self.path("o.xyz")
        arguments = ("eval", path, "--model", model, "--json", "-", "--precision", "fp64")
        tables = json.loads(run(*arguments).stdout)["frames"][0]
        exact = json.loads(run(*arguments, "--exact-radial", "--descriptors", "--output", out).stdout)["frames"][0]
        self.assertNotIn("descriptors", tables)
        self.assertNotEqual(tables["energy"], exact["energy"], "the flag changes how it is computed")
        self.assertAlmostEqual(tables["energy"], exact["energy"], places=8)
        reference = json.loads(run("eval", path, "--model", model, "--json", "-", "--device", "reference").stdout)["frames"][0]
        self.assertAlmostEqual(reference["energy"], exact["energy"], places=11)
        width = json.loads(run("model", "info", model, "--json", "-").stdout)["descriptors"]
        self.assertEqual([len(row) for row in exact["descriptors"]], [width] * 3)
        with open(out) as file:
            self.assertIn(f"descriptors:R:{width}", file.read())
        self.assert_fails(run("eval", path, "--model", "analytic", "--descriptors"), 3, "this model has none")

    def test_dispersion(self):
        """--d3 is a part of the name of the model, wherever it stands."""
        for command in ("eval", "md", "relax", "bench", "verify", "validate", "plan", "serve", "distill"):
            self.assertIn("--d3 FUNCTIONAL", run(command, "--help").stdout)
        self.assertRegex(run("compare", "--help").stdout, r"(?s)--d3-a FUNCTIONAL.*--d3-b FUNCTIONAL")
        path = self.path("w.xyz", WATER + MOLECULE)
        frames = lambda *arguments: json.loads(run("eval", path, "--precision", "fp64", "--json", "-", *arguments).stdout)
        added = frames("--d3", "pbe:zero", "--model", "self-test")
        self.assertEqual(added["model"], "self-test+d3:pbe:zero")
        self.assertEqual(added, frames("--model", "self-test+d3:pbe:zero"))
        self.assertEqual(added, frames("--model", "self-test", "--d3", "pbe:zero"))
        self.assertNotEqual(added["frames"][0]["energy"], frames("--model", "self-test", "--d3", "pbe")["frames"][0]["energy"])
        self.assertEqual(frames("--d3", "s8=0.7,a1=0.4,a2=4.4")["model"], "builtin+d3:s8=0.7,a1=0.4,a2=4.4")
        alone, dispersion = frames("--model", "self-test"), frames("--model", "d3:pbe:zero")
        for whole, model, term in zip(added["frames"], alone["frames"], dispersion["frames"]):
            flat = lambda frame: [frame["energy"], *frame["atom_energies"], *(x for row in frame["forces"] for x in row), *(frame["stress"] or [])]
            self.assertNotEqual(term["energy"], 0)
            for found, a, b in zip(flat(whole), flat(model), flat(term)):
                self.assertTrue(abs(found - (a + b)) <= 1e-10 * max(1, abs(found)), (found, a, b))
        self.assertEqual(frames("--model", "d3:pbe:zero+self-test")["frames"][1]["energy"], added["frames"][1]["energy"])
        for model in ("d3:pbe", "self-test+d3:pbe"):
            self.assertRegex(run("model", "info", model).stdout, r"(?m)^range +3\d\.\d+ angstrom$")
        self.assertNotIn("range", run("model", "info", "builtin+zbl").stdout)
        committee = frames("--model", "builtin,self-test+zbl", "--d3", "pbe")
        self.assertEqual(committee, frames("--model", "builtin+d3:pbe,self-test+zbl+d3:pbe"))
        self.assertEqual(committee["model"], "builtin+d3:pbe,self-test+zbl+d3:pbe")
        listed = self.path("members", "mlff committee\nbuiltin+d3:pbe\nself-test+zbl+d3:pbe\n")
        self.assertEqual(committee["frames"], frames("--model", listed)["frames"])
        self.assert_fails(run("eval", path, "--model", listed, "--d3", "pbe"), 3, "a committee cannot be a part of a sum")
        result = run("compare", "builtin", "builtin+d3:pbe", path, "--d3-a", "pbe", "--tolerance-forces", "0", "--tolerance-energy", "0")
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        self.assertEqual(run("compare", "builtin", "builtin", path, "--d3-b", "pbe").returncode, 1)
        result = run("md", path, "--ensemble", "nve", "--dt", "0.5", "--temperature", "10", "--steps", "2", "--d3", "pbe", "--checkpoint", self.path("md.restart"))
        self.assertIn("model builtin+d3:pbe, cpu", result.stdout, result.stderr)

        self.assert_fails(run("eval", path, "--model", "builtin+d3:pbe", "--d3", "pbe"), 2, "mlff: model 'builtin+d3:pbe' has the term d3:pbe already: dispersion would be counted twice with d3:pbe (try 'mlff eval --help')")
        self.assert_fails(run("eval", path, "--d3", ""), 2, "mlff: d3 '': expected one functional, such as pbe:zero, or parameters, such as s8=0.7,a1=0.4,a2=4.4")
        self.assert_fails(run("relax", path, "--d3", "pbe+zbl"), 2, "d3 'pbe+zbl': expected one functional")
        self.assert_fails(run("bench", "--model", "python:tblite", "--d3", "pbe"), 2, "model 'python:tblite': Python models cannot be in a sum")
        self.assert_fails(run("eval", path, "--d3", "no-such-functional"), 2, "no-such-functional")
        for spec in ("builtin+d3:pbe,threads=1", "d3:s8=0.7,a1=0.4,a2=4.4"):
            self.assert_fails(run("bench", "--d3", "pbe", "--compare", "builtin", "--compare", spec), 2, "has the term d3:", "already")

    def test_charge_and_spin_that_are_not_used_are_one_warning(self):
        ion = WATER.replace("pbc=", "charge=1 spin=2 pbc=")
        path, relaxed = self.path("ions.xyz", 3 * ion), self.path("relaxed.xyz")
        for command in (["eval", path], ["relax", path, "--fmax", "1000", "--output", relaxed], ["compare", "analytic", "analytic", path]):
            with self.subTest(command=command):
                result = run(*command, *([] if command[0] == "compare" else ["--model", "analytic"]))
                self.assertEqual(result.returncode, 0, result.stderr)
                models = 2 if command[0] == "compare" else 1
                self.assertEqual(result.stderr.count("mlff: warning: a total charge is given, but the model (AnalyticPairPotential) does not use it"), models, result.stderr)
                self.assertEqual(result.stderr.count("mlff: warning: a spin multiplicity is given"), models, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 2 * models, result.stderr)
        takes_both = os.path.join(GOLDEN_DIR, "p08_omol_like_f32.model")
        for model in (takes_both, takes_both + "+zbl"):
            with self.subTest(model=model):
                result = run("eval", path, "--model", model)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
        neutral = self.path("neutral.xyz", WATER.replace("pbc=", "charge=0 spin=1 pbc="))
        self.assertEqual(run("eval", neutral).stderr, "")

    def test_bad_input(self):
        self.assert_fails(run("eval", "/no/such.xyz"), 3, "/no/such.xyz")
        self.assert_fails(run("eval", self.path("a.xyz", "2\n\nC 0 0 0\nO 0 zero 1\n")), 3, "a.xyz:4:5", "zero")
        self.assert_fails(run("eval", self.path("b.xyz", "1\n\nDs 0 0 0\n")), 3, "frame 0", "Ds")
        self.assert_fails(run("eval", self.path("empty.xyz", "")), 3, "no frame")
        self.assert_fails(run("eval", self.path("w.xyz", WATER), "--model", self.path("m.model", "nonsense")), 3, "m.model")
        flat = WATER.replace("0 6 0", "5 0 0")
        self.assert_fails(run("eval", self.path("flat.xyz", flat)), 3, "frame 0")
        self.assert_fails(run("eval", self.path("w.xyz", WATER), "--head", "nobody"), 2, "nobody", "Default")

    def test_a_broken_frame_leaves_no_half_output(self):
        path, out, js = self.path("w.xyz", WATER + "1\n\nDs 0 0 0\n"), self.path("o.xyz"), self.path("o.json")
        with open(out, "w") as file:
            file.write("precious")
        self.assert_fails(run("eval", path, "--output", out, "--json", js), 3, "frame 1")
        with open(out) as file:
            self.assertEqual(file.read(), "precious")
        self.assertFalse(os.path.exists(js))
        self.assertEqual(run("eval", path, "--json", "-").stdout, "")

    def doctor(self, code=0, **variables):
        """The report of mlff doctor in an environment that has only these variables of those it asks for."""
        asked = ("VIRTUAL_ENV", "MLFF_PYTHON_ENV", "MLFF_MODELS", "MLFF_CPU", "WSL_INTEROP")
        environment = {**{name: value for name, value in os.environ.items() if name not in asked}, "MLFF_MODELS": self.path("models"), **variables}
        result = subprocess.run([MLFF, "doctor", "--json", self.path("report.json")], capture_output=True, text=True, timeout=100, env=environment)
        self.assertEqual((result.returncode, result.stderr), (code, ""), result.stdout)
        with open(self.path("report.json")) as file:
            return json.load(file), result.stdout

    def test_doctor(self):
        report, text = self.doctor()
        self.assertTrue(report["usable"])
        self.assertIn("\nusable", text)
        self.assertGreater(report["memory_bytes"], 2**20)
        self.assertRegex(text, rf"\b{report['memory_bytes'] / 1e9:.1f} GB memory, \d+\.\d [MG]B free")
        kernels = [state["name"] for state in report["kernel_checks"]]
        self.assertEqual(report["kernels"], kernels[0])
        expected = [(model, device, name, precision) for device, name in [("cpu", name) for name in kernels] + [(f"cuda:{i}", None) for i in range(len(report["gpus"]))]
                    for model in ("student", "MACE") for precision in ("mixed", "fp64", *(["fast"] if device != "cpu" else []))]
        self.assertEqual([(backend["model"], backend["device"], backend["kernels"], backend["precision"]) for backend in report["backends"]], expected)
        for backend in report["backends"]:
            self.assertTrue(backend["works"])
            self.assertLess(0, backend["force_difference"])
            self.assertLessEqual(backend["force_difference"], backend["limit"])
            if backend["kernels"] in (None, kernels[0]):  # only the best are timed
                self.assertGreater(backend["milliseconds"], 0)
        self.assertEqual((report["model_cache"]["models"], report["python_environments"]), (0, []))
        for gpu in report["gpus"]:
            self.assertGreater(gpu["multiprocessor_count"], 0)
            self.assertGreater(gpu["l2_cache_bytes"], 0)
            self.assertTrue(0 < gpu["free_memory_bytes"] < gpu["memory_bytes"])
            self.assertIn(f"{gpu['multiprocessor_count']} multiprocessors", text)

        report, text = self.doctor(code=4, MLFF_CPU="abacus")
        self.assertFalse(report["usable"])
        self.assertIn("abacus", report["backends"][0]["why_failed"])
        self.assertIn("NOT usable", text)

    def test_doctor_finds_profilers(self):
        folder = self.path("tools")
        os.makedirs(folder)
        for name, answer in (("nsys", "NVIDIA Nsight Systems version 2024.6.2.225-246235244400v0"), ("ncu", "Nsight Compute\\nCopyright (c) 2018-2025\\nVersion 2025.1.0.0 (build 35)")):
            os.chmod(self.path("tools/" + name, f"#!/bin/sh\nprintf '{answer}\\n'\n"), 0o755)
        report, text = self.doctor(PATH=folder + ":" + os.environ["PATH"])
        self.assertEqual(report["tools"], {"nsys": {"path": folder + "/nsys", "version": "2024.6.2.225"}, "ncu": {"path": folder + "/ncu", "version": "2025.1.0.0"}})
        self.assertRegex(text, r"\ntools +nsys 2024\.6\.2\.225, ncu 2025\.1\.0\.0\n")

    def test_doctor_under_wsl(self):
        for name, text in (("proc/version", "Linux version 5.15.153.1-microsoft-standard-WSL2 (x)\n"), ("proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n"),
                           ("proc/meminfo", "MemTotal: 1000 kB\n"), ("usr/lib/wsl/lib/libcuda.so.1", "no library"), ("usr/lib/wsl/lib/libnvidia-ml.so.1", "no library")):
            os.makedirs(os.path.dirname(self.path("root/" + name)), exist_ok=True)
            self.path("root/" + name, text)
        report, text = self.doctor(MLFF_DOCTOR_ROOT=self.path("root"))
        self.assertEqual((report["wsl"], report["memory_bytes"], report["usable"]), (2, 1024000, True))
        self.assertIn("5.15.153.1-microsoft", report["system"])
        self.assertIn("wsl2-triton", [trap["name"] for trap in report["traps"]])
        self.assertIn("TORCHDYNAMO_DISABLE", text)

    def test_doctor_tries_python_environments_and_cached_models(self):
        folder = self.path("env")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        packages = glob.glob(os.path.join(folder, "lib", "python3*", "site-packages"))[0]
        for name, text in (("mace/__init__.py", ""), ("mace/calculators.py", "import no_such_module\n"), ("fennol.py", "print('noise')\n"), ("chgnet/model/dynamics.py", ""),
                           ("tblite/__init__.py", ""), ("tblite/interface.py", "import os\nos.kill(os.getpid(), 7)\n"),
                           ("cupy/__init__.py", "import os\nos.kill(os.getpid(), 7)\n"), ("cupy_cuda12x-13.3.0.dist-info/METADATA", "Name: cupy-cuda12x\nVersion: 13.3.0\n")):
            os.makedirs(os.path.dirname(os.path.join(packages, name)), exist_ok=True)
            with open(os.path.join(packages, name), "w") as file:
                file.write(text)
        report, text = self.doctor(VIRTUAL_ENV=folder)
        (environment,) = report["python_environments"]
        self.assertEqual(environment["python"], "%d.%d.%d" % sys.version_info[:3])
        self.assertEqual(environment["works"], {"fennol": "unknown version", "chgnet": "unknown version"})
        self.assertIn("no_such_module", environment["broken"]["mace"])
        self.assertIn("signal 7", environment["broken"]["tblite"])
        self.assertEqual(environment["gpu_packages"], {"cupy": "13.3.0", "triton": None})
        self.assertIn(", cupy 13.3.0\n", text)
        self.assertIn("signal 7", text)
        # A Python that is none.
        os.makedirs(self.path("other/bin"))
        fake = self.path("other/bin/python3", "#!/bin/sh\nexit 9\n")
        os.chmod(fake, 0o755)
        report, _ = self.doctor(MLFF_PYTHON_ENV=self.path("other"))
        self.assertIn("exit code 9", report["python_environments"][0]["why_not"])

        model, variables = os.path.join(GOLDEN_DIR, "p03_mace_plain_l1.model"), {**os.environ, "MLFF_MODELS": self.path("models")}
        for name in ("good", "bad"):
            subprocess.run([MLFF, "model", "add", model, "--name", name], env=variables, check=True, capture_output=True)
        with open(glob.glob(self.path("models/bad-*"))[0], "ab") as file:
            file.write(b"x")
        report, text = self.doctor()
        self.assertEqual((report["model_cache"]["models"], len(report["model_cache"]["damaged"])), (2, 1))
        self.assertIn("'bad'", text)
        self.path("models/index.json", "{")
        self.assertIn("index.json", self.doctor()[0]["model_cache"]["why_not"])

    def test_no_gpu_is_device_trouble(self):
        doctor = json.loads(run("doctor", "--json", "-").stdout)
        if doctor["gpus"]:
            self.skipTest("there is a GPU")
        self.assertTrue(doctor["why_no_gpu"])
        self.assert_fails(run("eval", self.path("w.xyz", WATER), "--device", "cuda"), 4, "cuda", doctor["why_no_gpu"])

    def golden_files(self):
        for folder in [GOLDEN_DIR] + ([SHARED_DIR] if SHARED_DIR else []):
            print("goldens from", folder)
            for name in sorted(os.listdir(folder)):
                if name.endswith(".json") and name != "index.json":
                    with open(os.path.join(folder, name)) as file:
                        case = json.load(file)
                    yield case, os.path.join(folder, case["model_file"])

    def test_model_info_of_every_golden(self):
        count = 0
        for case, path in self.golden_files():
            with self.subTest(case["case"]):
                text, js = run("model", "info", path), run("model", "info", path, "--json", "-")
                if case["container"] == "state_dict":
                    self.assert_fails(text, 3, "state dict", "torch.save(model")
                    continue
                self.assertEqual((text.returncode, js.returncode), (0, 0), text.stderr)
                info, wanted = json.loads(js.stdout), case["architecture"]
                self.assertEqual(info["class"], wanted["cls"])
                self.assertEqual(info["heads"], wanted["heads"])
                self.assertEqual(len(info["layers"]), wanted["num_interactions"])
                self.assertEqual(info["dtype"], wanted["dtype"])
                self.assertAlmostEqual(info["cutoff"], wanted["r_max"], places=6)
                self.assertEqual(len(info["sha256"]), 64)
                self.assertIn(info["class"], text.stdout)
                self.assertIn("runs natively", text.stdout)
                count += 1
        self.assertGreater(count, 10)

    def test_sevennet_and_nequix(self):
        """Each file as it is and converted: energies and forces of the packages, head by head; what does not run is refused."""
        names = {1: "H", 6: "C", 7: "N", 8: "O"}
        for case in ("p10_three_modals_all_flags", "n02_indexed_skip_no_norm"):
            golden = json.loads((NEQUIP_DIR / (case + ".json")).read_text())
            model, converted = str(NEQUIP_DIR / golden["model_file"]), self.path("converted.safetensors")
            self.assertEqual(run("model", "convert", model, converted).returncode, 0)
            info, again = (json.loads(run("model", "info", path, "--json", "-").stdout) for path in (model, converted))
            self.assertEqual(info["layer_irreps"], again["layer_irreps"])
            self.assertEqual(info["parameters"], again["parameters"])
            self.assertIn(f"self connection {info['self_connections'][0]}", run("model", "info", model).stdout)
            for system in golden["systems"]:
                with self.subTest(case, system=system["name"], head=system.get("head")):
                    head = ["--head", system["head"]] if "head" in system else []
                    cell = f'Lattice="{" ".join(str(x) for row in system["cell"] for x in row)}" pbc="{" ".join("T" if p else "F" for p in system["pbc"])}" ' if any(system["pbc"]) else ""
                    atoms = "".join(f"{names[z]} {x!r} {y!r} {w!r}\n" for z, (x, y, w) in zip(system["numbers"], system["positions"]))
                    path = self.path("golden.xyz", f"{len(system['numbers'])}\n{cell}Properties=species:S:1:pos:R:3\n{atoms}")
                    outputs = [run("eval", path, "--model", each, "--precision", "fp64", "--exact-radial", "--json", "-", *head) for each in (model, converted)]
                    self.assertEqual([output.returncode for output in outputs], [0, 0], outputs[0].stderr)
                    found, same = (json.loads(output.stdout)["frames"][0] for output in outputs)
                    self.assertEqual((found["energy"], found["forces"]), (same["energy"], same["forces"]))
                    wanted = system["outputs"]["float64"]
                    self.assertLessEqual(abs(found["energy"] - wanted["energy"]), 1e-9 * max(1, abs(wanted["energy"])))
                    self.assertEqual(len(found["forces"]), len(wanted["forces"]))
                    for ours, theirs in zip(found["forces"], wanted["forces"]):
                        for one, other in zip(ours, theirs):
                            self.assertLessEqual(abs(one - other), 1e-9 * max(1, abs(other)))
        several = str(NEQUIP_DIR / "p10_three_modals_all_flags.pth")
        self.assert_fails(run("eval", path, "--model", several), 2, "several heads", "B-r2SCAN")
        self.assert_fails(run("eval", path, "--model", several, "--head", "PBE"), 2, "PBE", "B-r2SCAN")
        self.assert_fails(run("eval", path, "--model", model, "--precision", "fast"), 3, "fast", "Nequix")

    def test_names_of_a_file_do_not_reach_the_terminal_as_commands(self):
        path = self.path("m.safetensors")
        self.assertEqual(run("model", "convert", os.path.join(GOLDEN_DIR, "p03_mace_plain_l1.model"), path).returncode, 0)
        with open(path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header, data = json.loads(file.read(size)), file.read()
        tree = json.loads(header["__metadata__"]["mlff_module"])
        tree["attributes"]["heads"] = ["\x1b]0;title\x07 \u009b31m\x7f Gr\u00f6\u00dfe"]
        tree["class"] += "\x1b[2J"
        header["__metadata__"]["mlff_module"] = json.dumps(tree)
        header = json.dumps(header).encode()
        with open(path, "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header + data)
        environment = {**os.environ, "MLFF_MODELS": self.path("models")}
        for command in (["info", path], ["add", path, "--name", "x"], ["list"]):
            result = subprocess.run([MLFF, "model", *command], capture_output=True, text=True, timeout=60, env=environment)
            self.assertEqual(result.returncode, 0, result.stderr)
            for control in "\x1b\x07\x7f\u009b":
                self.assertNotIn(control, result.stdout)
        self.assertIn("?]0;title? ?31m? Gr\u00f6\u00dfe", run("model", "info", path).stdout)

    def test_what_is_no_model_is_refused_before_it_is_hashed(self):
        with open(self.path("large"), "wb") as file:
            file.truncate(1 << 38)
        result = subprocess.run([MLFF, "model", "info", self.path("large")], capture_output=True, text=True, timeout=20)
        self.assert_fails(result, 3, "neither a torch archive")

    def test_convert_is_lossless(self):
        for case, path in self.golden_files():
            if case["container"] == "state_dict":
                continue
            with self.subTest(case["case"]):
                out = self.path("m.safetensors")
                self.assertEqual(run("model", "convert", path, out).returncode, 0)
                before = json.loads(run("model", "info", path, "--json", "-").stdout)
                after = json.loads(run("model", "info", out, "--json", "-").stdout)
                for key in ("file", "sha256", "container"):
                    before.pop(key), after.pop(key)
                self.assertEqual(before, after)
        self.assert_fails(run("model", "convert", "/no/such.model", self.path("x.safetensors")), 3, "/no/such.model")
        self.assert_fails(run("model", "convert", path, "/no/such/folder/x.safetensors"), 3, "/no/such/folder")

    def test_models_by_name(self):
        """mlff model add, list, remove, and a name wherever a model is taken."""
        environment = {**os.environ, "MLFF_MODELS": self.path("models")}
        command = lambda *arguments: subprocess.run([MLFF, *arguments], capture_output=True, text=True, timeout=60, env=environment, cwd=self.folder)
        model, water = os.path.join(GOLDEN_DIR, "p03_mace_plain_l1.model"), self.path("w.xyz", WATER)
        self.assert_fails(command("eval", water, "--model", "ours"), 3, "ours", "no such file", self.path("models"))
        self.assert_fails(command("eval", water, "--model", "small"), 3, "mlff model fetch small", self.path("models"))
        added = command("model", "add", model, "--name", "small", "--licence", "MIT", "--theory", "PBE+U")
        self.assertEqual(added.returncode, 0, added.stderr)
        self.assertEqual(command("model", "add", model, "--name", "other", "--license", "CC0\x1b[1m").returncode, 0)
        self.assert_fails(command("model", "add", model, "--name", "small"), 2, "small", "--replace")
        self.assert_fails(command("model", "add", model, "--name", "builtin"), 2, "builtin")
        self.assert_fails(command("model", "add", model, "--name", "../x"), 2, "../x")
        self.assert_fails(command("model", "add", model), 2, "--name")
        self.assert_fails(command("model", "add", water, "--name", "x"), 3, "w.xyz")
        listed = json.loads(command("model", "list", "--json", "-").stdout)
        self.assertEqual([entry["name"] for entry in listed["inside"]], ["builtin", "analytic"])
        self.assertEqual([entry["name"] for entry in listed["models"]], ["other", "small"])
        small = listed["models"][1]
        with open(model, "rb") as file:
            contents = file.read()
        self.assertEqual((small["licence"], small["theory"], small["size"], small["sha256"]), ("MIT", "PBE+U", len(contents), hashlib.sha256(contents).hexdigest()))
        self.assertEqual((small["elements"], small["class"], small["runnable"]), ([1, 6, 7, 8], "MACE", True))
        text = command("model", "list").stdout
        self.assertIn("PBE+U", text)
        self.assertNotIn("\x1b", text)
        by_path, by_name = (json.loads(command("eval", water, "--model", name, "--json", "-").stdout) for name in (model, "small"))
        self.assertEqual(by_path["frames"], by_name["frames"])
        self.assertEqual(json.loads(command("model", "info", "small", "--json", "-").stdout)["sha256"], small["sha256"])
        self.assertEqual(command("model", "convert", "small", self.path("c.safetensors")).returncode, 0)
        # A file of that name comes first; a folder does not.
        os.mkdir(self.path("other"))
        self.assertEqual(command("model", "info", "other").returncode, 0)
        self.path("small", "no model")
        self.assert_fails(command("model", "info", "small"), 3, "small")
        os.remove(self.path("small"))
        with open(small["path"], "r+b") as file:
            file.seek(1000)
            file.write(b"damage")
        self.assert_fails(command("eval", water, "--model", "small"), 3, "'small'", "damaged")
        self.assertEqual(command("model", "add", model, "--name", "small", "--replace").returncode, 0)
        self.assertEqual(command("model", "info", "small").returncode, 0)
        self.assertEqual(command("model", "remove", "small").returncode, 0)
        self.assert_fails(command("model", "remove", "small"), 3, "small")
        self.path("models/index.json", "{")
        self.assert_fails(command("model", "list"), 3, "index.json", "malformed")

    def test_compare(self):
        """Two backends of a model agree; what is said of two models is what their results say."""
        hydrogen_cyanide = "3\n\nH 0 0 -1.06\nC 0 0 0\nN 0.1 0 1.16\n"
        model, path = os.path.join(GOLDEN_DIR, "p03_mace_plain_l1.model"), self.path("w.xyz", WATER + hydrogen_cyanide)
        good = run("compare", model, model, path, "--device-b", "reference")
        self.assertEqual(good.returncode, 0, good.stdout + good.stderr)
        self.assertIn("pass  forces", good.stdout)
        self.assertIn("worst: atom", good.stdout)
        exact = run("compare", model, model, path, "--device-b", "reference", "--precision-a", "fp64", "--exact-radial-a", "--tolerance-forces", "1e-11",
                    "--tolerance-energy", "1e-11", "--tolerance-stress", "1e-11")
        self.assertEqual(exact.returncode, 0, exact.stdout)
        same = json.loads(run("compare", "builtin", "builtin", path, "--json", "-").stdout)
        self.assertEqual((same["verdict"], same["forces"]["max"], same["forces"]["worst"]), ("pass", 0, None))

        bad = run("compare", model, "builtin", path, "--json", "-")
        self.assertEqual(bad.returncode, 1)
        found = json.loads(bad.stdout)
        a, b = (json.loads(run("eval", path, "--model", name, "--json", "-").stdout)["frames"] for name in (model, "builtin"))
        lengths = [(math.dist(f, g), i, j) for i, (x, y) in enumerate(zip(a, b)) for j, (f, g) in enumerate(zip(x["forces"], y["forces"]))]
        worst = max(lengths)
        self.assertAlmostEqual(found["forces"]["max"], worst[0], places=12)
        self.assertAlmostEqual(found["forces"]["mean"], sum(length for length, _, _ in lengths) / len(lengths), places=12)
        self.assertAlmostEqual(found["forces"]["rms"], math.sqrt(sum(length**2 for length, _, _ in lengths) / (3 * len(lengths))), places=12)
        self.assertEqual((found["forces"]["worst"]["frame"], found["forces"]["worst"]["atom"], found["forces"]["worst"]["element"]),
                         (worst[1], worst[2], [["O", "H", "H"], ["H", "C", "N"]][worst[1]][worst[2]]))
        self.assertEqual((found["forces"]["worst"]["a"], found["forces"]["worst"]["b"]), (a[worst[1]]["forces"][worst[2]], b[worst[1]]["forces"][worst[2]]))
        apart = [(x["energy"] - y["energy"]) / x["atoms"] for x, y in zip(a, b)]
        self.assertAlmostEqual(found["energy_per_atom"]["max"], max(map(abs, apart)), places=11)
        self.assertAlmostEqual(found["energy_per_atom"]["offset"], sum(apart) / 2, places=11)
        self.assertAlmostEqual(found["stress"]["max"], max(abs(x - y) for x, y in zip(a[0]["stress"], b[0]["stress"])), places=12)
        self.assertEqual((found["verdict"], [check["passed"] for check in found["checks"]]), ("fail", [False] * 3))
        self.assertEqual([frame["energy_a"] for frame in found["frames"]], [frame["energy"] for frame in a])
        wide = run("compare", model, "builtin", path, "--tolerance-forces", "100", "--tolerance-energy", "100", "--tolerance-stress", "100")
        self.assertEqual(wide.returncode, 0, wide.stdout)

        self.assert_fails(run("compare", model, "builtin", self.path("b.xyz", "1\n\nSi 0 0 0\n")), 3, "frame 0", "model A", "Si")
        self.assert_fails(run("compare", model, "/no/such.model", path), 3, "/no/such.model")
        self.assert_fails(run("compare", model, "builtin", path, "--tolerance-forces", "-1"), 2, "--tolerance-forces")
        self.assert_fails(run("compare", model, "builtin", path, "--tolerance-energy", "nan"), 2, "--tolerance-energy")
        self.assert_fails(run("compare", model, "builtin", path, "--precision-b", "fp8"), 2, "fp8")
        self.assert_fails(run("compare", model, "builtin", self.path("empty.xyz", "")), 3, "no frame")
        self.assert_fails(run("compare", model, "builtin"), 2, "FILE")
        several = os.path.join(GOLDEN_DIR, "p07_nonlinear_mh.model")
        self.assert_fails(run("compare", several, model, path), 2, "several heads")
        self.assertEqual(run("compare", several, several, path, "--head-a", "omol", "--head-b", "omol").returncode, 0)

    def test_the_head_of_a_frame(self):
        """It comes before --head in every command, and frames that are written have it."""
        model = os.path.join(GOLDEN_DIR, "p07_nonlinear_mh.model")  # omat_pbe and omol
        named = lambda head: WATER.replace("Properties", f"head={head} Properties")
        plain, own = self.path("plain.xyz", WATER), self.path("own.xyz", named("omol"))
        options = ("--model", model, "--device", "cpu", "--precision", "fp64")

        def energy(path, *more, warns=False, model=options):
            result = run("eval", path, *model, *more, "--json", "-")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stderr.count("mlff: warning: frames with head=omol are evaluated with that head, not with omat_pbe\n"), int(warns))
            return json.loads(result.stdout)["frames"][-1]["energy"]

        omol, omat = energy(plain, "--head", "omol"), energy(plain, "--head", "omat_pbe")
        self.assertNotAlmostEqual(omol, omat, places=3)
        self.assertEqual(energy(own), omol)
        self.assertEqual(energy(self.path("two.xyz", named("omol") + named("omol")), "--head", "omat_pbe", warns=True), omol)
        self.assertEqual(energy(self.path("mixed.xyz", named("omol") + WATER), "--head", "omat_pbe", warns=True), omat)
        self.assertEqual(energy(own, model=()), energy(plain, model=()), "a model with one head")

        bad = self.path("bad.xyz", named("nobody"))
        dynamics = ("--ensemble", "nve", "--temperature", "10", "--dt", "0.5", "--steps", "2")
        for command in (["eval"], ["relax"], ["plan"], ["md", *dynamics], ["serve", "--unix", "mlff-no-server", "--wait", "0"]):
            result = run(command[0], bad, *command[1:], *options, "--head", "omol")
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("no head 'nobody'", result.stderr)

        # What md and relax write, they and others read with the same head.
        for command in (["md", plain, *dynamics, "--output-every", "1"], ["relax", plain, "--steps", "1", "--fmax", "1000"]):
            out = self.path(command[0] + ".xyz")
            written = run(*command, *options, "--head", "omol", "--output", out)
            self.assertEqual((written.returncode, written.stderr), (0, ""))
            with open(out) as file:
                self.assertEqual(set(re.findall(r" head=(\S+)", file.read())), {"omol"})
            self.assertAlmostEqual(energy(out), omol, delta=0.1)
            again = run("md", out, *dynamics[:-1], "1", *options, "--checkpoint", self.path("again.restart"), "--overwrite")
            self.assertEqual((again.returncode, again.stderr), (0, ""))
        resumed = ("md", plain, *dynamics[:-1], "9", *options, "--restart", self.path("md.restart"))
        self.assert_fails(run(*resumed, "--head", "omat_pbe"), 2, "head omol", "omat_pbe")
        self.assertEqual(run(*resumed, "--head", "omol").returncode, 0)
        self.assertEqual(run("md", plain, *dynamics, "--model", "analytic", "--output", self.path("one.xyz")).returncode, 0)
        with open(self.path("one.xyz")) as file:
            self.assertNotIn("head=", file.read())

        # Two heads are compared on frames that name none.
        differ = run("compare", model, model, plain, "--head-a", "omol", "--head-b", "omat_pbe", "--json", "-")
        self.assertEqual((differ.returncode, json.loads(differ.stdout)["verdict"]), (1, "fail"))
        self.assertEqual(run("compare", model, model, own, "--head-a", "omol").returncode, 0)
        self.assertEqual(run("compare", model, "builtin", own, *("--tolerance-energy", "1e9", "--tolerance-forces", "1e9", "--tolerance-stress", "1e9")).returncode, 0)
        self.assert_fails(run("compare", model, model, own, "--head-a", "omol", "--head-b", "omat_pbe"), 2, "model B", "head=omol", "omat_pbe")

    def test_distill_labels(self):
        """Sampling with a teacher: labels are those of eval, a broken structure is counted, and an interrupted run goes on to the same file."""
        structures = self.path("s.xyz", WATER + MOLECULE)
        arguments = ["distill", structures, "--teacher", "analytic", "--frames", "3", "--steps-between", "4", "--labels-only"]
        whole, again = self.path("whole"), self.path("again")
        self.assertEqual(run(*arguments, "--output", whole).returncode, 0)
        with open(os.path.join(whole, "frames.xyz")) as file:
            frames = file.read()
        with open(os.path.join(whole, "sampled.json")) as file:
            record = json.load(file)
        self.assertEqual((record["structures"], record["is_complete"]), (2, True))
        self.assertEqual(record["frames"] + sum(record["skipped"].values()), 2 * (1 + 2 * 2 * 3))
        labelled = json.loads(run("eval", os.path.join(whole, "frames.xyz"), "--model", "analytic", "--json", "-").stdout)["frames"]
        energies = [float(word.split("=")[1]) for word in frames.split() if word.startswith("energy=")]
        self.assertEqual(len(labelled), len(energies))
        for frame, energy in zip(labelled, energies):
            self.assertAlmostEqual(frame["energy"], energy, places=9)
        # As if it had been stopped while it wrote frames of the second structure.
        shutil.copytree(whole, again)
        second = frames.index("molecule=structure-1")
        end_of_first = frames.rindex("\n", 0, frames.rindex("\n", 0, second)) + 1  # before the line with the number of atoms
        first = {**record, "structures": 1, "frames": frames.count("molecule=structure-0"), "bytes": len(frames[:end_of_first].encode()), "is_complete": False}
        with open(os.path.join(again, "sampled.json"), "w") as file:
            json.dump(first, file)
        self.assertEqual(run(*arguments, "--output", again).returncode, 0)
        with open(os.path.join(again, "frames.xyz")) as file:
            self.assertEqual(file.read(), frames)
        self.assert_fails(run(*arguments, "--seed", "2", "--output", again), 2, "another folder")
        self.assert_fails(run("distill", structures, "--output", again), 2, "--teacher")
        self.assert_fails(run("distill", structures, "--teacher", "analytic", "--trainer", "/no/trainer", "--output", self.path("c")), 2, "/no/trainer")

    def test_distill_keeps_the_head_of_its_teacher(self):
        """Labels of two heads are never mixed: a harvest gets those of the first frames, and another head is refused."""
        model, student = str(NEQUIP_DIR / "p10_three_modals_all_flags.pth"), self.path("student")
        heads = json.loads(run("model", "info", model, "--json", "-").stdout)["heads"]
        first = ["distill", self.path("s.xyz", MOLECULE), "--teacher", model, "--frames", "1", "--steps-between", "2", "--labels-only", "--output", student]
        self.assert_fails(run(*first), 2, "several heads")
        self.assertEqual(run(*first, "--head", heads[1]).returncode, 0)
        self.assert_fails(run(*first, "--head", heads[2]), 2, "another folder")
        os.mkdir(self.path("harvest"))
        self.path("harvest/frames.xyz", "2\nProperties=species:S:1:pos:R:3\nC 0 0 0\nO 0 0 1.2\n")
        go_on = ("distill", "--continue", self.path("harvest"), "--output", student, "--labels-only")
        self.assert_fails(run(*go_on, "--head", heads[2]), 2, f"--head {heads[2]}", f"{model}, head {heads[1]}")
        done = run(*go_on)
        self.assertEqual(done.returncode, 0, done.stderr)
        labelled = os.path.join(student, "harvested.xyz")
        with open(labelled) as file:
            label = float(re.search(r"\benergy=(\S+)", file.read())[1])
        energies = [json.loads(run("eval", labelled, "--model", model, "--head", head, "--json", "-").stdout)["frames"][0]["energy"] for head in heads]
        self.assertAlmostEqual(energies[1], label, places=9)
        self.assertGreater(min(abs(energies[0] - label), abs(energies[2] - label)), 1e-3)

    def test_distill_labels_a_harvest(self):
        """Frames that dynamics harvested get the teacher's labels, each once, whatever folder they are in, and whenever the command was killed."""
        student, structures = self.path("student"), self.path("s.xyz", MOLECULE)
        first = ["distill", structures, "--teacher", "analytic", "--frames", "1", "--steps-between", "2", "--labels-only", "--output", student]
        go_on = lambda *more: run("distill", *(word for folder in ("one", "two") if os.path.exists(self.path(folder)) for word in ("--continue", self.path(folder))), "--output", student, "--labels-only", *more)
        self.assertEqual(run(*first).returncode, 0)
        frame = lambda x: f"2\nProperties=species:S:1:pos:R:3:sigma_forces:R:1 step=7 temperature=300.0 sigma_max=0.5\nAr 0 0 0 0.5\nAr {x} 0 0 0.1\n"
        for folder in ("one", "two"):
            os.mkdir(self.path(folder))
        self.path("one/frames.xyz", "".join(frame(2.1 + 0.2 * i) for i in range(11)) + frame(0) + frame(9.9)[:40])  # two atoms in one place; half a frame
        self.path("two/frames.xyz", frame(2.1) + frame(4.5))
        done = go_on()
        self.assertEqual(done.returncode, 0, done.stderr)
        labelled = os.path.join(student, "harvested.xyz")
        with open(labelled) as file:
            text = file.read()
        self.assertEqual(re.findall(r"split=(\w+)", text), (4 * ["train"] + ["valid"] + 4 * ["train"] + ["test"] + 2 * ["train"]))
        self.assertEqual((text.count("kind=harvested"), text.count("sigma_forces")), (12, 0))
        self.assertIn("skipped 1: ", done.stderr)
        with open(os.path.join(student, "harvested.json")) as file:
            record = json.load(file)
        self.assertEqual((record["frames"], len(record["seen"]), record["bytes"], sum(record["skipped"].values())), (12, 13, len(text), 1))
        energies = [float(energy) for energy in re.findall(r"\benergy=(\S+)", text)]
        for found, label in zip(json.loads(run("eval", labelled, "--model", "analytic", "--json", "-").stdout)["frames"], energies, strict=True):
            self.assertAlmostEqual(found["energy"], label, places=9)
        # Again, and from another place: nothing is labelled twice. Killed after a frame and half of the next: the same file.
        shutil.move(self.path("two"), self.path("three"))
        self.assertEqual(run("distill", "--continue", self.path("three"), "--output", student, "--labels-only", "--teacher", "analytic").returncode, 0)
        with open(labelled) as file:
            self.assertEqual(file.read(), text)
        shutil.move(self.path("three"), self.path("two"))
        end_of_first = text.index("2\nProperties", 1)
        with open(labelled, "w") as file:
            file.write(text[:end_of_first + 30])
        with open(os.path.join(student, "harvested.json"), "w") as file:
            json.dump({**record, "seen": record["seen"][:1], "frames": 1, "bytes": end_of_first, "skipped": {}}, file)
        self.assertEqual(go_on().returncode, 0)
        with open(labelled) as file:
            self.assertEqual(file.read(), text)
        # What cannot be.
        self.assert_fails(go_on("--teacher", "zbl"), 2, "--teacher zbl is not analytic")
        self.assert_fails(run("distill", structures, "--continue", self.path("one"), "--output", student), 2, "needs no FILE")
        self.assert_fails(run("distill", "--continue", self.path("one"), "--output", self.path("empty"), "--labels-only"), 2, "no complete frames")
        self.assert_fails(run("distill", "--continue", self.path("one"), "--output", student, "--trainer", shutil.which("false")), 2, "has no student to go on from")
        self.assert_fails(run("distill", "--continue", self.path("one"), "--output", student, "--members", "2"), 2, "--members")
        self.assert_fails(run("distill", "--continue", self.path("none"), "--output", student, "--labels-only"), 3, "none/frames.xyz")
        self.assert_fails(run("distill", "--labels-only"), 2, "FILE")
        os.remove(labelled)
        self.assert_fails(go_on(), 3, "harvested.xyz: frames are missing")

    def test_distill_without_a_trainer(self):
        """One sentence says how to get it, before frames are labelled; frames outlive a trainer that fails."""
        arguments = ["distill", self.path("s.xyz", MOLECULE), "--teacher", "analytic", "--frames", "2", "--output", self.path("c")]
        missing = subprocess.run([MLFF, *arguments], env={**os.environ, "PATH": self.folder}, capture_output=True, text=True, timeout=60)
        self.assert_fails(missing, 3, "neither next to mlff nor in PATH; install it from the sources of mlff with: scripts/install --trainer\n")
        self.assertEqual(os.listdir(self.folder), ["s.xyz"])
        failing = run(*arguments, "--trainer", shutil.which("false"))
        self.assertEqual(failing.returncode, 4, failing.stderr)
        self.assertIn("failed: it ended with exit code 1; the frames are kept", failing.stderr)
        with open(self.path("c/frames.xyz")) as file:
            self.assertIn("energy=", file.read())

    @unittest.skipIf(IS_SANITIZED, "memory is not what it is without them, and unit_bench goes through the code")
    def test_bench(self):
        path, folder = self.path("b.json"), self.path("report")
        good = run("bench", "--quick", "--device", "cpu", "--steps", "20", "--json", path, "--report", folder)
        self.assertEqual((good.returncode, good.stderr), (0, ""), good.stdout)
        with open(path) as file:
            found = json.load(file)
        self.assertEqual((found["format"], found["device"], found["quick"], found["passed"]), ("mlff-bench", "cpu", True, True))
        self.assertEqual(len(found["sha256"]), 64)
        self.assertGreaterEqual(found["machine"]["cores"], 1)
        self.assertTrue(found["machine"]["instructions"])
        suites = [row["suite"] for row in found["rows"]]
        self.assertEqual(list(dict.fromkeys(suites)), ["latency", "throughput", "md", "memory", "leaks", "neighbors", "load"])
        self.assertEqual(len(found["left_out"]), 1)  # no calibration, no predictions
        self.assertIn("no calibration", found["left_out"][0])
        for row in found["rows"]:
            self.assertIn(row["name"], good.stdout)
            self.assertTrue(all(math.isfinite(sample) and sample >= 0 for sample in row["samples"]))
            self.assertLessEqual(row["minimum"], row["median_low"])
            self.assertLessEqual(row["median_low"], row["median"])
            self.assertLessEqual(row["median"], row["median_high"])
            self.assertLessEqual(row["median_high"], row["maximum"])
        errors = [check for row in found["rows"] if row["suite"] == "latency" for check in row["checks"]]
        self.assertEqual([check["name"] for check in errors], ["forces against the fp64 reference"] * 3)
        with open(os.path.join(folder, "report.md")) as file:
            self.assertIn("## latency", file.read())
        with open(os.path.join(folder, "report.html")) as file:
            self.assertIn("Benchmark of builtin", file.read())

        # Beside a baseline in which everything took no time, all is slower; beside one in which everything took for ever, nothing is.
        def baseline(name, factor):
            for row in found["rows"]:
                row["samples"], row["blocks"] = [factor] * 5, [1] * 5
            return self.path(name, json.dumps(found))

        again = ["bench", "--quick", "--device", "cpu", "--suite", "latency", "--sizes", "10", "--baseline"]
        slower = run(*again, baseline("fast.json", 1e-9))
        self.assertEqual(slower.returncode, 1, slower.stdout + slower.stderr)
        self.assertIn("REGRESSION: latency, 9 atoms", slower.stdout)
        faster = run(*again, baseline("slow.json", 1e3))
        self.assertEqual(faster.returncode, 0, faster.stdout + faster.stderr)
        self.assertIn("0 regressions", faster.stdout)
        self.assert_fails(run(*again, path, "--precision", "fp64"), 3, "b.json", "precision")
        self.assert_fails(run(*again, path, "--model", "analytic"), 3, "b.json", "sha256")
        self.assert_fails(run(*again, self.path("x.json", "[]")), 3, "x.json", "mlff bench")
        self.assert_fails(run(*again, "nowhere.json"), 3, "nowhere.json")

    @unittest.skipIf(IS_SANITIZED, "unit_bench goes through the code")
    def test_bench_compare(self):
        model = os.path.join(GOLDEN_DIR, "p02_mp0like_l1_c3_f32.model")
        path = self.path("c.json")
        result = run("bench", "--quick", "--device", "cpu", "--threads", "1", "--sizes", "10,20", "--model", model, "--compare", "precision=mixed", "--compare", "device=reference", "--compare", "builtin,threads=2,precision=fp64",
                     "--compare", "neighbors=brute,precision=mixed", "--json", path)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        with open(path) as file:
            found = json.load(file)
        self.assertEqual((found["format"], found["passed"], found["left_out"]), ("mlff-bench-comparison", True, []))
        self.assertEqual([(one["model"], one["device"], one["precision"], one["threads"]) for one in found["implementations"]],
                         [(model, "cpu", "mixed", 1), (model, "reference", "fp64", 1), ("builtin", "cpu", "fp64", 2), (model, "cpu", "mixed", 1)])
        self.assertEqual([one["switched_off"] for one in found["implementations"]], [[], [], [], ["neighbors=brute"]])
        self.assertTrue(found["implementations"][3]["label"].endswith(", neighbors=brute"))
        self.assertTrue(all(len(one["sha256"]) == 64 for one in found["implementations"]))
        for size in found["sizes"]:
            counts = {len(entry["samples"]) for entry in size["entries"]}
            self.assertEqual(len(counts), 1, "samples are taken in turns")
            first = size["entries"][0]["median"]
            for entry, one in zip(size["entries"], found["implementations"]):
                self.assertIn(one["label"], result.stdout)
                self.assertLessEqual(abs(entry["speed_up"] - first / entry["median"]), 1e-9 * entry["speed_up"])
                self.assertLessEqual(entry["speed_up_low"], entry["speed_up_high"])
                self.assertTrue(entry["checks"][0]["passed"])
                self.assertLess(entry["figures"]["meV/atom error of the energy"], 0.1)
                self.assertTrue(0 <= entry["figures"]["eV/A RMSE of the forces"] <= entry["checks"][0]["value"])
            self.assertEqual(size["entries"][1]["checks"][0]["value"], 0, "the reference beside itself")
            self.assertTrue(0 < size["entries"][0]["checks"][0]["value"] < 1e-3)

    @unittest.skipIf(IS_SANITIZED, "each start of the command takes a second there")
    def test_bench_bad_usage(self):
        self.assert_fails(run("bench", "--compare", "builtin"), 2, "--compare", "twice")
        self.assert_fails(run("bench", "--compare", "builtin", "--compare", "analytic,speed=1"), 2, "analytic,speed=1", "device")
        self.assert_fails(run("bench", "--compare", "builtin", "--compare", "threads=many"), 2, "threads=many")
        self.assert_fails(run("bench", "--compare", "builtin", "--compare", "precision=half"), 2, "half")
        self.assert_fails(run("bench", "--compare", "builtin", "--compare", "graph=no"), 2, "graph=no", "on or off")
        self.assert_fails(run("bench", "--compare", "builtin", "--compare", "neighbors=off"), 2, "grid or brute")
        self.assert_fails(run("bench", "--device", "cpu", "--compare", "builtin", "--compare", "graph=off"), 3, "only a GPU has graphs")
        self.assert_fails(run("bench", "--device", "cpu", "--compare", "builtin", "--compare", "fused=off"), 3, "device=reference has the plain loops")
        self.assert_fails(run("bench", "--compare", "builtin", "--compare", "python:a:b,threads=1"), 2, "native")
        self.assert_fails(run("bench", "--compare", "builtin", "--compare", "nowhere.model"), 3, "nowhere.model")
        self.assert_fails(run("bench", "--compare", "builtin", "--compare", "analytic", "--suite", "md"), 2, "--suite")
        self.assert_fails(run("bench", "--suite", "speed"), 2, "speed", "latency")
        self.assert_fails(run("bench", "--sizes", "0"), 2, "--sizes")
        self.assert_fails(run("bench", "--steps", "3"), 2, "--steps")
        self.assert_fails(run("bench", "--model", "nowhere.model"), 3, "nowhere.model")
        self.assert_fails(run("bench", "--trace", "x.json"), 2, "--trace", "--profile")
        self.assert_fails(run("bench", "--profile", "--baseline", "x.json"), 2, "--profile", "--baseline")
        self.assert_fails(run("bench", "--profile", "--trace", "/nowhere/x.json"), 3, "/nowhere/x.json")

    @unittest.skipIf(IS_SANITIZED, "unit_profile goes through the code")
    def test_bench_profile(self):
        path, trace = self.path("profile.json", ""), self.path("trace.json", "")
        said = run("bench", "--profile", "--quick", "--device", "cpu", "--threads", "2", "--sizes", "20,60", "--json", path, "--trace", trace)
        self.assertEqual(said.returncode, 0, said.stderr)
        for part in ("neighbours", "reverse", "of peak", "bit for bit", "perf record", "valgrind --tool=callgrind", "--sizes 20,60"):
            self.assertIn(part, said.stdout)
        with open(path) as file:
            found = json.load(file)
        self.assertEqual((found["format"], found["device"], found["passed"], len(found["profiles"]), len(found["commands"])), ("mlff-profile", "cpu", True, 2, 2))
        for profile in found["profiles"]:
            self.assertTrue(profile["identical"])
            self.assertAlmostEqual(sum(stage["share"] for stage in profile["stages"]) + profile["left_over"], 1, places=6)
            self.assertEqual({stage["direction"] for stage in profile["stages"]}, {None, "forward", "reverse"})
        for peak in found["peaks"].values():
            self.assertGreater(peak, 1e6)
        with open(trace) as file:
            events = json.load(file)["traceEvents"]
        self.assertEqual({event["pid"] for event in events}, {1, 2})
        for event in events:
            self.assertIn(event["ph"], "XM")
            if event["ph"] == "X":
                self.assertTrue(event["ts"] >= 0 and event["dur"] >= 0 and event["name"])

    @unittest.skipIf(IS_SANITIZED, "takes long, and unit_verify goes through the code")
    def test_verify(self):
        good = run("verify", "--json", self.path("v.json"))
        self.assertEqual((good.returncode, good.stderr), (0, ""))
        self.assertIn("PASS: all ", good.stdout)
        with open(self.path("v.json")) as file:
            document = json.load(file)
        self.assertTrue(document["passed"])
        self.assertEqual(len(document["sha256"]), 64)
        checks = document["runs"][0]["checks"]
        self.assertGreater(len(checks), 20)
        for check in checks:
            self.assertTrue(check["passed"] and 0 <= check["value"] <= check["limit"], check)
        # Its energy jumps where a pair crosses the cutoff.
        bad = run("verify", os.path.join(GOLDEN_DIR, "p06_att_residual_f32.model"), "--json", "-")
        self.assertEqual(bad.returncode, 1)
        failed = [check["name"] for check in json.loads(bad.stdout)["runs"][0]["checks"] if not check["passed"]]
        self.assertIn("energy of a pair that crosses the cutoff", failed)
        heads = json.loads(run("verify", os.path.join(GOLDEN_DIR, "p07_nonlinear_mh.model"), "--json", "-").stdout)["runs"]
        self.assertGreater(len({each["head"] for each in heads}), 1)
        self.assert_fails(run("verify", "nowhere.model"), 3, "nowhere.model")

    def test_demo(self):
        result = run("demo", "--steps", "200")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("water molecule", result.stdout)
        changes = [float(line.split()[4]) for line in result.stdout.splitlines() if len(line.split()) == 5 and line.split()[0].isdigit()]
        self.assertEqual(len(changes), 5)
        for change in changes:  # meV/atom in dynamics without a thermostat
            self.assertLess(abs(change), 1.0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
