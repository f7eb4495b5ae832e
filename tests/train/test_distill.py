# SPDX-License-Identifier: MIT
"""Teacher -> frames -> student -> use, by the commands of a user. Usage: test_distill.py MLFF GOLDEN_DIR STRUCTURES_DIR; mlff-train is beside MLFF."""
import json
import math
import os
import subprocess
import sys
import tempfile

MLFF, GOLDEN_DIR, STRUCTURES_DIR = sys.argv[1:4]
if not os.path.exists(os.path.join(os.path.dirname(MLFF), "mlff-train")):  # trainer_install was skipped
    print("skipped: there is no trainer")
    sys.exit(77)
TEACHER = os.path.join(GOLDEN_DIR, "p03_mace_plain_l1.model")  # a MACE model with seeded weights
NETWORK = "--hidden 32 --blocks 2 --radial 8 --batch 8 --device cpu --threads 1 --learning-rate 0.003 --warmup-steps 10 --ema 0.98 --validations 4"
FRAMES = 12


def run(*arguments, codes=(0,)):
    done = subprocess.run([MLFF, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode in codes, f"{arguments}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def check(what, is_right):
    print(("ok    " if is_right else "WRONG ") + what, flush=True)
    assert is_right, what


def read_json(*path):
    with open(os.path.join(*path)) as file:
        return json.load(file)


def labels(path):
    """(energy, forces) of every frame; the forces are the columns after element and position."""
    frames = []
    with open(path) as file:
        lines = file.read().splitlines()
    while lines:
        count = int(lines[0])
        (energy,) = [float(word.split("=")[1]) for word in lines[1].split() if word.startswith("energy=")]
        assert "pos:R:3:forces:R:3" in lines[1], lines[1]
        frames.append((energy, [[float(x) for x in line.split()[4:7]] for line in lines[2:2 + count]]))
        lines = lines[2 + count:]
    return frames


def numbers(value):
    """All numbers in a JSON value."""
    if isinstance(value, (dict, list)):
        return [number for part in (value.values() if isinstance(value, dict) else value) for number in numbers(part)]
    return [value] if isinstance(value, (int, float)) and not isinstance(value, bool) else []


def mean_errors(frames, expected):
    """Of energies per atom and of force components, in meV and meV/A."""
    force = [abs(a - b) for frame, (_, rows) in zip(frames, expected) for row, other in zip(frame["forces"], rows) for a, b in zip(row, other)]
    energy = [abs(frame["energy"] - value) / len(rows) for frame, (value, rows) in zip(frames, expected)]
    return 1e3 * sum(energy) / len(energy), 1e3 * sum(force) / len(force)


def distill(folder, structures, output, train_options):
    return run("distill", structures, "--teacher", TEACHER, "--device", "cpu", "--output", f"{folder}/{output}", "--frames", FRAMES, "--steps-between", 5, "--licence", "none",
               "--train-options", f"{NETWORK} {train_options}")


def test_chain(folder):
    structures = f"{folder}/structures.xyz"
    with open(structures, "w") as file:
        for name in ("water", "ethanol"):
            with open(os.path.join(STRUCTURES_DIR, f"{name}.xyz")) as source:
                file.write(source.read())
    distill(folder, structures, "untrained", "--steps 1")
    distill(folder, structures, "student", "--steps 400")

    sampled = read_json(folder, "student", "sampled.json")
    expected = labels(f"{folder}/student/frames.xyz")
    check(f"{len(expected)} labelled frames", len(expected) == sampled["frames"] and sampled["frames"] + sum(sampled["skipped"].values()) == 2 * (1 + 2 * 2 * FRAMES))
    check("labels are those of the teacher", max(mean_errors(json.loads(run("eval", f"{folder}/student/frames.xyz", "--model", TEACHER, "--device", "cpu", "--json", "-").stdout)["frames"], expected)) < 1e-6)

    student = f"{folder}/student/student.safetensors"
    report, untrained = read_json(folder, "student", "report.json"), read_json(folder, "untrained", "report.json")
    found = json.loads(run("eval", f"{folder}/student/frames.xyz", "--model", student, "--device", "cpu", "--precision", "fp64", "--json", "-").stdout)["frames"]
    check("the student gives an energy and forces of every atom, all finite", [len(frame["forces"]) for frame in found] == [len(rows) for _, rows in expected]
          and all(len(row) == 3 for frame in found for row in frame["forces"]) and all(map(math.isfinite, numbers(found))))
    energy, force = mean_errors(found, expected)
    check(f"report.json has the errors of these arrays: {energy:.2f} meV/atom, {force:.1f} meV/A",
          abs(report["all_frames"]["energy_meV_per_atom"] - energy) < 1e-6 * energy and abs(report["all_frames"]["force_meV_per_A"] - force) < 1e-6 * force)

    nothing = mean_errors([{"energy": 0, "forces": [[0, 0, 0]] * len(rows)} for _, rows in expected], expected)[1]
    check(f"an untrained student has {untrained['all_frames']['force_meV_per_A']:.1f} meV/A, no forces at all {nothing:.1f}", force < 0.5 * min(untrained["all_frames"]["force_meV_per_A"], nothing))
    card = json.loads(run("model", "info", student, "--json", "-").stdout)["card"]
    check("the model file has the card of the report", card == report["card"] and (card["teacher"], card["licence"], card["elements"]) == (os.path.basename(TEACHER), "none", ["H", "C", "O"]))
    unseen, before = card["errors"]["test"], untrained["card"]["errors"]["test"]
    check("errors in the card are finite", len(numbers(card["errors"])) > 10 and all(map(math.isfinite, numbers(card["errors"]))))
    check(f"forces on unseen frames: {before['force_meV_per_A']['mae']:.1f} -> {unseen['force_meV_per_A']['mae']:.1f} meV/A", 0 < unseen["force_meV_per_A"]["mae"] < 0.5 * before["force_meV_per_A"]["mae"])

    trained = subprocess.run([os.path.join(os.path.dirname(MLFF), "mlff-train"), "predict", student, f"{folder}/student/frames.xyz", "--fp64"], capture_output=True, text=True, check=True)
    trained = [(frame["energy"], frame["forces"]) for frame in json.loads(trained.stdout)["frames"]]
    worst = max(abs(a - b) for frame, (_, rows) in zip(found, trained) for row, other in zip(frame["forces"], rows) for a, b in zip(row, other))
    check(f"trainer and library agree to {worst:.1e} eV/A", len(trained) == len(found) and worst < 1e-5 and max(abs(frame["energy"] - energy) for frame, (energy, _) in zip(found, trained)) < 1e-5)

    run("validate", "--model", student, "--against", TEACHER, "--systems", "ethanol", "--steps", 200, "--device", "cpu", "--json", f"{folder}/validated.json", codes=(0, 1))
    (system,) = read_json(folder, "validated.json")["systems"]
    verdicts = {one["name"]: one["verdict"] for one in system["checks"]}
    check("validate runs dynamics with the student, which keeps momenta", system["broke"] is None and system["nve"] is not None and all(map(math.isfinite, numbers(system["nve"])))
          and all(verdicts[name] == "pass" for name in ("change of momentum", "change of angular momentum", "forces against the fp64 reference, worst atom")))
    against = system["forces"]["against"]
    check(f"forces against the teacher along it: {against['force_rmse_eV_per_A']:.3f} eV/A", against["frames"] > 0 and 0 < against["force_rmse_eV_per_A"] < math.inf)


def test_harvest(folder):
    """A committee that harvests and goes on, killed in between."""
    structures, student, harvest = os.path.join(STRUCTURES_DIR, "ethanol.xyz"), f"{folder}/committee", f"{folder}/harvest"
    first = ("distill", structures, "--teacher", TEACHER, "--device", "cpu", "--output", student, "--frames", 8, "--steps-between", 5, "--members", 2, "--train-options", f"{NETWORK} --steps 60")
    run(*first)
    members = lambda: [open(f"{student}/student-{number}.safetensors", "rb").read() for number in (1, 2)]
    trained = members()
    check("members differ", trained[0] != trained[1])
    check("the report is that of the committee", os.path.basename(read_json(student, "report.json")["student"]) == "committee.txt" and len(read_json(student, "report.json")["cards"]) == 2)
    run(*first)
    check("the same command, run again, changes nothing", members() == trained)

    dynamics = lambda seed: run("md", structures, "--model", f"{student}/committee.txt", "--device", "cpu", "--ensemble", "nvt", "--temperature", 900, "--dt", 0.5, "--steps", 200, "--seed", seed,
                                "--harvest", harvest, "--harvest-sigma", 1e-6, "--harvest-every", 4, "--harvest-frames", 15, "--checkpoint", f"{folder}/{seed}.restart", codes=(0, 3))
    go_on = lambda *more, codes=(0,): run("distill", "--continue", harvest, "--output", student, "--device", "cpu", "--train-options", f"{NETWORK} --steps 60", *more, codes=codes)
    record = lambda: {key: value for key, value in read_json(student, "harvested.json").items() if key in ("frames", "rounds", "is_open", "trained_frames")}
    dynamics(1)
    failed = go_on("--trainer", "/bin/false", codes=(4,))
    check("a trainer that fails leaves a round open", "the frames are kept" in failed.stderr and record() == {"frames": 15, "rounds": 1, "is_open": True, "trained_frames": 0} and members() == trained)
    dynamics(2)
    check("frames do not join an open round", "finish it first" in go_on("--labels-only", codes=(2,)).stderr and record()["frames"] == 15)
    said = go_on()
    check("the open round first, then one with the new frames", "round 1: training goes on with 15" in said.stderr and "round 2: training goes on with 30" in said.stderr
          and record() == {"frames": 30, "rounds": 2, "is_open": False, "trained_frames": 30})
    newest = members()
    check("the committee is that of the last round", newest[0] != trained[0] and newest == [open(f"{student}/continued-2/member-{number}/model.safetensors", "rb").read() for number in (1, 2)])
    report = read_json(student, "report.json")
    harvested = report["harvested"]
    check(f"forces on harvested frames: {harvested['before']['force_meV_per_A']:.1f} -> {harvested['after']['force_meV_per_A']:.1f} meV/A",
          harvested["after"]["force_meV_per_A"] < harvested["before"]["force_meV_per_A"] and harvested["after"]["frames"] == 30)
    check("cards say what was added", all("30 frames harvested" in card["data"] and card["training"]["start"] == "model.safetensors" for card in report["cards"]))
    check("nothing new", "nothing new" in go_on().stdout and members() == newest)
    check("the first command does not undo it", "go on with --continue" in run(*first, codes=(2,)).stderr and members() == newest)


with tempfile.TemporaryDirectory() as temporary:
    test_chain(temporary)
    test_harvest(temporary)
print("all good")
