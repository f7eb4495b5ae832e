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


with tempfile.TemporaryDirectory() as temporary:
    test_chain(temporary)
print("all good")
