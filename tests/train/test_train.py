# SPDX-License-Identifier: MIT
"""Tests of mlff-train. Usage: test_train.py MLFF_TRAIN [MLFF]; MLFF that reads PaiNN files is compared with, if given."""
import csv
import json
import math
import os
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_frames
import plain_painn

PROGRAM = sys.argv[1]
ENGINE = sys.argv[2] if len(sys.argv) > 2 else None
if not os.path.exists(PROGRAM):  # trainer_install was skipped
    print("skipped: there is no trainer")
    sys.exit(77)
SMALL = ["--hidden", "32", "--blocks", "2", "--radial", "8", "--device", "cpu", "--threads", "1"]
BOX = """6
Lattice="5.2 0 0 1.1 4.9 0 -0.7 0.6 5.5" pbc="T T T" Properties=species:S:1:pos:R:3
O 0.1 0.2 0.3
H 0.9 0.5 0.4
H -0.3 0.9 0.1
C 2.6 2.4 2.9
O 3.6 2.9 3.1
H 2.2 1.9 3.8
"""
CLOSE = "2\nProperties=species:S:1:pos:R:3\nC 0 0 0\nO 0.3 0.4 0.6\n"


def run(*arguments, code=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, f"{arguments}: exit code {done.returncode}, expected {code}\n{done.stdout}\n{done.stderr}"
    return done


def check(what, is_right):
    print(("ok    " if is_right else "WRONG ") + what)
    assert is_right, what


def tensors(path):
    """Name -> bytes of a safetensors file."""
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    return {name: data[slice(*entry["data_offsets"])] for name, entry in header.items() if name != "__metadata__"}


def write_frames(path, text):
    with open(path, "w") as file:
        file.write(text)
    return path


def predict(folder, model, text, *options):
    path = write_frames(f"{folder}/frames.xyz", text)
    return json.loads(run("predict", model, path, *options).stdout)["frames"]


def moved(text, atom, axis, by):
    lines = text.splitlines()
    fields = lines[2 + atom].split()
    fields[1 + axis] = repr(float(fields[1 + axis]) + by)
    lines[2 + atom] = " ".join(fields)
    return "\n".join(lines) + "\n"


def strained(text, i, j, by):
    """Every vector x becomes x + by * x[i] in direction j."""
    def stretch(vector):
        return [value + (by * vector[i] if k == j else 0) for k, value in enumerate(vector)]

    lines = text.splitlines()
    _, lattice, rest = lines[1].split('"', 2)
    vectors = [float(x) for x in lattice.split()]
    lattice = " ".join(repr(x) for row in range(3) for x in stretch(vectors[3 * row:3 * row + 3]))
    lines[1] = f'Lattice="{lattice}"{rest}'
    for index in range(2, len(lines)):
        fields = lines[index].split()
        lines[index] = " ".join([fields[0]] + [repr(x) for x in stretch([float(x) for x in fields[1:4]])])
    return "\n".join(lines) + "\n"


def test_derivatives(folder):
    model = f"{folder}/random.safetensors"
    run("random", model, "--hidden", 32, "--blocks", 2, "--radial", 8, "--seed", 1, "--elements", "1,6,8", "--closest", 1.2)
    step, worst = 1e-4, 0.0
    for text in (BOX, CLOSE):
        (exact,) = predict(folder, model, text, "--fp64")
        atoms = exact["atoms"]
        changed = "".join(moved(text, atom, axis, sign * step) for atom in range(atoms) for axis in range(3) for sign in (1, -1))
        energies = [frame["energy"] for frame in predict(folder, model, changed, "--fp64")]
        for index in range(3 * atoms):
            slope = (energies[2 * index] - energies[2 * index + 1]) / (2 * step)
            worst = max(worst, abs(slope + exact["forces"][index // 3][index % 3]) / (1 + abs(slope)))
        (single,) = predict(folder, model, text)
        check("fp32 agrees with fp64", abs(single["energy"] - exact["energy"]) < 1e-3 * atoms)
    check(f"forces are minus the gradient of the energy (worst {worst:.1e})", worst < 1e-6)
    (exact,) = predict(folder, model, BOX, "--fp64")
    volume = 5.2 * 4.9 * 5.5
    for slot, (i, j) in enumerate([(0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)]):
        up, down = predict(folder, model, strained(BOX, i, j, step) + strained(BOX, i, j, -step), "--fp64")
        slope = (up["energy"] - down["energy"]) / (2 * step) / volume
        check(f"stress {i}{j}", abs(slope - exact["stress"][slot]) < 1e-6)


def parsed(text):
    lines = text.splitlines()
    rows = [line.split() for line in lines[2:]]
    number = {"H": 1, "C": 6, "O": 8}
    cell = None
    if "Lattice" in lines[1]:
        flat = [float(x) for x in lines[1].split('"')[1].split()]
        cell = [flat[:3], flat[3:6], flat[6:]]
    return [number[row[0]] for row in rows], [[float(x) for x in row[1:4]] for row in rows], cell


def test_formulas(folder):
    """Energies are those of docs/painn.md, computed without LibTorch."""
    model = f"{folder}/formulas.safetensors"
    for closest in (0, 1.2):
        run("random", model, "--hidden", 32, "--blocks", 2, "--radial", 5, "--cutoff", 3.5, "--seed", 3, "--elements", "1,6,8", "--closest", closest)
        for name, text in (("box", BOX), ("close pair", CLOSE)):
            (found,) = predict(folder, model, text, "--fp64")
            expected = plain_painn.energy(model, *parsed(text))
            check(f"energy of docs/painn.md, {name}, closest {closest}: {found['energy']:.9f}", abs(found["energy"] - expected) < 1e-8 * len(parsed(text)[0]))


def test_engine(folder):
    """The native engines give the same numbers."""
    model = f"{folder}/random.safetensors"
    run("random", model, "--hidden", 64, "--blocks", 3, "--radial", 12, "--seed", 5, "--elements", "1,6,8", "--closest", 1.2)
    path = write_frames(f"{folder}/engine.xyz", BOX + CLOSE)
    expected = predict(folder, model, BOX + CLOSE, "--fp64")
    done = subprocess.run([ENGINE, "eval", path, "--model", model, "--device", "cpu", "--precision", "fp64", "--json", "-"], capture_output=True, text=True)
    if done.returncode != 0 and "PaiNN" not in done.stderr + done.stdout and "painn" not in done.stderr + done.stdout:
        print("skipped: this mlff does not read PaiNN files:", done.stderr.strip())
        return
    for found, wanted in zip(json.loads(done.stdout)["frames"], expected):
        worst = max(abs(a - b) for row, other in zip(found["forces"], wanted["forces"]) for a, b in zip(row, other))
        check(f"engine and trainer: energy, forces (worst {worst:.1e} eV/A)", abs(found["energy"] - wanted["energy"]) < 1e-6 and worst < 1e-5)
        if wanted["stress"]:
            check("engine and trainer: stress", max(abs(a - b) for a, b in zip(found["stress"], wanted["stress"])) < 1e-7)


def losses(folder):
    with open(f"{folder}/log.csv") as file:
        return [float(row["loss"]) for row in csv.DictReader(file) if row["loss"]]


def shortest_distances(path, elements):
    """[element][element] over the training frames of a file. No frame has two carbons or two oxygens: there it is the sum of the covalent radii."""
    number = {"H": 1, "C": 6, "O": 8}
    shortest = {(6, 6): 1.52, (8, 8): 1.32}
    with open(path) as file:
        lines = file.read().splitlines()
    while lines:
        count = int(lines[0])
        rows = [line.split() for line in lines[2:2 + count]]
        atoms = [(number[row[0]], [float(x) for x in row[1:4]]) for row in rows]
        for i, (z, x) in enumerate(atoms):
            for other, y in atoms[:i]:
                pair = tuple(sorted((z, other)))
                if "split=train" in lines[1]:
                    shortest[pair] = min(shortest.get(pair, math.inf), math.dist(x, y))
        lines = lines[2 + count:]
    return [[shortest[tuple(sorted((a, b)))] for b in elements] for a in elements]


def test_training(folder):
    data = f"{folder}/data.xyz"
    make_frames.write(data, per_molecule=12)
    common = ["train", data, *SMALL, "--batch", 6, "--learning-rate", 0.003, "--warmup-steps", 10, "--ema", 0.98, "--validations", 4]
    run(*common, "--steps", 400, "--log-every", 10, "--output", f"{folder}/learns")
    course = losses(f"{folder}/learns")
    check(f"the loss falls from {course[0]:.3g} to {course[-1]:.3g}", course[-1] < 0.1 * course[0])
    with open(f"{folder}/learns/summary.json") as file:
        summary = json.load(file)
    errors = summary["errors"]["test"]
    check("errors are finite and by kind, size and element",
          math.isfinite(errors["force_meV_per_A"]["mae"]) and "shaken" in errors["by_kind"] and "1-10 atoms" in errors["by_size"]
          and set(errors["force_meV_per_A_by_element"]) == {"H", "C", "O"})
    with open(f"{folder}/learns/learning_curve.svg") as file:
        check("a picture of the course", file.read().rstrip().endswith("</svg>"))
    again = json.loads(run("evaluate", f"{folder}/learns/model.safetensors", data, "--split", "test", "--device", "cpu").stdout)
    check("evaluate finds the errors of the summary", abs(again["force_meV_per_A"]["mae"] - errors["force_meV_per_A"]["mae"]) < 1e-3)

    found, expected = plain_painn.read_model(f"{folder}/learns/model.safetensors")[1]["closest"], shortest_distances(data, [1, 6, 8])
    worst = max(abs(a - b) for row, other in zip(found, expected) for a, b in zip(row, other))
    check(f"the file has the shortest distances of the training frames (worst {worst:.1e})", worst < 1e-12)

    # Stopped and resumed: the same bits.
    run(*common, "--steps", 60, "--output", f"{folder}/whole")
    run(*common, "--steps", 60, "--output", f"{folder}/parts", "--stop-after", 23)
    check("a stopped run writes no model", not os.path.exists(f"{folder}/parts/model.safetensors"))
    run(*common, "--steps", 60, "--output", f"{folder}/parts", "--resume")
    check("a resumed run gives the same bits", tensors(f"{folder}/whole/model.safetensors") == tensors(f"{folder}/parts/model.safetensors")
          and tensors(f"{folder}/whole/checkpoint.safetensors") == tensors(f"{folder}/parts/checkpoint.safetensors"))
    run(*common, "--steps", 60, "--output", f"{folder}/parts", "--resume")
    check("a finished run is finished", tensors(f"{folder}/whole/model.safetensors") == tensors(f"{folder}/parts/model.safetensors"))
    run(*common, "--steps", 80, "--output", f"{folder}/parts", "--resume")
    with open(f"{folder}/parts/summary.json") as file:
        check("unless it is to be longer", json.load(file)["training"]["steps"] == 80)
    refused = run(*common, "--steps", 60, "--output", f"{folder}/parts", "--resume", "--seed", 9, code=3)
    check("a checkpoint of another run is refused", "seed" in refused.stderr)

    # With frames of one size, the weighting of forces changes nothing.
    one_size = f"{folder}/one_size.xyz"
    with open(data) as source, open(one_size, "w") as chosen:
        lines = source.read().splitlines(keepends=True)
        place, sizes = 0, []
        while place < len(lines):
            count = int(lines[place])
            sizes.append(count)
            if count == sizes[0]:
                chosen.writelines(lines[place:place + count + 2])
            place += count + 2
    for loss in ("norm", "l1", "huber", "mse"):
        courses = {}
        for name, frames in (("one_size", one_size), ("data", data)):
            for weighting in ("atoms", "root", "frames"):
                output = f"{folder}/{name}-{loss}-{weighting}"
                run("train", frames, *SMALL, "--batch", 8, "--steps", 3, "--log-every", 1, "--validations", 1, "--force-loss", loss, "--force-weighting", weighting,
                    "--energy-weight", 0.001, "--pad", "--output", output)
                courses[name, weighting] = losses(output)
        for weighting in ("root", "frames"):
            same, other = (list(zip(courses[name, "atoms"], courses[name, weighting])) for name in ("one_size", "data"))
            check(f"one size of frames: {loss}, {weighting} is atoms", all(abs(a - b) < 1e-4 * a for a, b in same))
            check(f"several sizes: {loss}, {weighting} is not atoms", len(set(sizes)) > 1 and any(abs(a - b) > 1e-3 * a for a, b in other))
    check("an unknown weighting is a usage error", "atoms, root or frames" in run(*common, "--steps", 1, "--force-weighting", "size", "--output", f"{folder}/none", code=2).stderr)

    # Neither padding nor the kernels written for the GPU, here on the CPU, change anything but rounding.
    run(*common, "--steps", 5, "--output", f"{folder}/plain", "--log-every", 1)
    run(*common, "--steps", 5, "--output", f"{folder}/padded", "--log-every", 1, "--pad")
    said = run(*common, "--steps", 5, "--output", f"{folder}/kernels", "--log-every", 1, "--pad", "--messages", "kernels").stderr
    check("message kernels pass their check", "message kernels used" in said and "loss 0," not in said)
    for name in ("padded", "kernels"):
        pairs = list(zip(losses(f"{folder}/plain"), losses(f"{folder}/{name}")))
        check(f"the same losses: {name}", len(pairs) == 5 and all(abs(a - b) < 1e-4 * a for a, b in pairs))


def test_start(folder):
    """A training that begins with a model has its weights, shape and elements; more frames leave the splits of the others alone."""
    data, more, nitrogen = f"{folder}/start.xyz", f"{folder}/more.xyz", f"{folder}/nitrogen.xyz"
    make_frames.write(data, per_molecule=12)
    make_frames.write(more, per_molecule=5, seed=7)
    with open(data) as file:
        undecided = write_frames(f"{folder}/undecided.xyz", re.sub(r" split=\w+", "", file.read()))
    write_frames(nitrogen, "2\nProperties=species:S:1:pos:R:3:forces:R:3 energy=1.0 split=train\nN 0 0 0 0 0 0\nN 0 0 1.1 0 0 0\n")
    learning = ["--device", "cpu", "--threads", "1", "--batch", 6, "--learning-rate", 0.003, "--warmup-steps", 10, "--ema", 0.98, "--validations", 2]
    run("train", undecided, *SMALL, *learning[4:], "--steps", 150, "--output", f"{folder}/first")
    start = f"{folder}/first/model.safetensors"
    common = ["train", undecided, *learning, "--start", start]
    unchanged = lambda name: tensors(f"{folder}/{name}/model.safetensors") == tensors(start)

    still = [word if word != 0.003 else 0 for word in common]
    run(*still, "--steps", 1, "--output", f"{folder}/still")
    check("without learning, the result is the start", unchanged("still"))
    wild = [word if word != 0.003 else 30 for word in common]
    run(*wild, "--steps", 4, "--output", f"{folder}/wild")
    check("a result is not worse than the start", unchanged("wild"))

    sets = lambda said: [int(re.search(rf"^{name}: (\d+) frames", said, re.M).group(1)) for name in ("train", "valid", "test")]
    alone = run(*common, "--steps", 60, "--output", f"{folder}/alone").stderr
    both = run(*common, "--more", more, "--steps", 60, "--output", f"{folder}/both").stderr
    check("more frames have splits of their own", [b - a for a, b in zip(sets(alone), sets(both))] == [9, 3, 3])
    check("training goes on", not unchanged("both"))
    with open(f"{folder}/both/summary.json") as file:
        summary = json.load(file)
    check("the summary names the start", summary["training"]["start"] == "model.safetensors")
    run(*common, "--more", more, "--steps", 60, "--output", f"{folder}/parts of both", "--stop-after", 11)
    run(*common, "--more", more, "--steps", 60, "--output", f"{folder}/parts of both", "--resume")
    check("stopped and resumed: the same bits", tensors(f"{folder}/both/model.safetensors") == tensors(f"{folder}/parts of both/model.safetensors"))

    check("the same shape may be given", run(*common, "--hidden", 32, "--blocks", 2, "--radial", 8, "--steps", 1, "--output", f"{folder}/shape"))
    check("another shape is refused", "32 channels, 2 blocks" in run(*common, "--hidden", 64, "--steps", 1, "--output", f"{folder}/none", code=2).stderr)
    check("another element is refused", "have N, which --start" in run(*common, "--more", nitrogen, "--steps", 1, "--output", f"{folder}/none", code=3).stderr)


def test_broken_data(folder):
    data = f"{folder}/broken.xyz"
    make_frames.write(data, per_molecule=10)
    with open(data, "a") as file:
        file.write("2\nProperties=species:S:1:pos:R:3:forces:R:3 energy=1.0 split=train\nH 0 0 0 0 0 0\nH 0 0 0.05 0 0 0\n")
        file.write("1\nProperties=species:S:1:pos:R:3:forces:R:3 energy=nan split=train\nH 0 0 0 0 0 0\n")
        file.write("1\nProperties=species:S:1:pos:R:3 energy=1.0 split=train\nH 0 0 0\n")
    said = run("train", data, *SMALL, "--steps", 2, "--validations", 1, "--output", f"{folder}/broken").stderr
    check("broken frames are named and skipped", "1 frames: atoms closer" in said and "not finite" in said and "no forces" in said)
    check("no length of the run is a usage error", "--minutes" in run("train", data, *SMALL, "--output", f"{folder}/none", code=2).stderr)


with tempfile.TemporaryDirectory() as temporary:
    test_formulas(temporary)
    test_derivatives(temporary)
    test_training(temporary)
    test_start(temporary)
    test_broken_data(temporary)
    if ENGINE:
        test_engine(temporary)
print("all good")
