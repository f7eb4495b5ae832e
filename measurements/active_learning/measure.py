# SPDX-License-Identifier: MIT
"""The loop of docs/active-learning.md: a committee of students learns ethanol at 300 K, is run at 800 K until it cannot be trusted, goes on with what it harvested, and runs again,
until it gets through. After each round its errors on frames of the teacher that nobody trains on, and the spread along the dynamics; what each command took. Writes
measurements/results/active_learning.json, which draw.py draws.

  python3 measure.py MLFF FOLDER        # mlff-train beside MLFF; what is in FOLDER already is not done again"""
import csv
import json
import pathlib
import platform
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ETHANOL = ROOT / "examples" / "ethanol.xyz"
TEACHER = "builtin"
NETWORK = "--hidden 32 --blocks 2 --radial 12 --batch 8 --threads 1 --learning-rate 0.003 --warmup-steps 100 --ema 0.99"
FIRST, NEXT, ROUNDS = 1500, 1000, 3  # steps of training; rounds at most
HARVEST_SIGMA, HARVEST_EVERY, STOP_SIGMA = 0.2, 10, 0.5
SAMPLING = ["--teacher", TEACHER, "--noise", 0, "--steps-between", 20, "--device", "cpu"]
MD = ["md", ETHANOL, "--ensemble", "nvt", "--temperature", 800, "--dt", 0.5, "--steps", 10000, "--device", "cpu", "--log-every", 10, "--overwrite"]


class Loop:
    def __init__(self, mlff, folder):
        self.mlff, self.folder, self.times = mlff, folder, folder / "seconds.json"
        self.seconds = json.loads(self.times.read_text()) if self.times.exists() else {}

    def run(self, name, *arguments, codes=(0,)):
        begin = time.monotonic()
        done = subprocess.run([self.mlff, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder)
        assert done.returncode in codes, f"{arguments}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        self.seconds.setdefault(name, round(time.monotonic() - begin, 1))
        self.times.write_text(json.dumps(self.seconds))
        print(f"== {name}, {self.seconds[name]} s, exit code {done.returncode}\n{done.stdout}{done.stderr}", flush=True)
        return done

    def errors(self, name, model, frames):
        """Of forces and of energies relative to their mean error, on labelled frames; and the spread."""
        found = json.loads(self.run(name, "eval", frames, "--model", model, "--device", "cpu", "--precision", "fp64", "--json", "-").stdout)["frames"]
        forces, energies, sigmas = [], [], []
        for frame, (energy, rows) in zip(found, labels(self.folder / frames), strict=True):
            forces += [a - b for row, other in zip(frame["forces"], rows, strict=True) for a, b in zip(row, other)]
            energies.append((frame["energy"] - energy) / len(rows))
            sigmas.append(frame["sigma"]["max_force"])
        mean = lambda values: sum(values) / len(values)
        return {"frames": len(found), "force_mae_meV_per_A": 1e3 * mean(list(map(abs, forces))), "force_rms_meV_per_A": 1e3 * mean([x * x for x in forces]) ** 0.5,
                "largest_force_error_eV_per_A": max(map(abs, forces)), "energy_mae_meV_per_atom": 1e3 * mean(list(map(abs, energies))), "mean_sigma_max_eV_per_A": mean(sigmas)}

    def dynamics(self, name):
        done = self.run(name, *MD, "--model", "student/committee.txt", "--log", f"{name}.csv", "--harvest", "harvest", "--harvest-sigma", HARVEST_SIGMA, "--harvest-every", HARVEST_EVERY,
                        "--stop-sigma", STOP_SIGMA, codes=(0, 1))
        with open(self.folder / f"{name}.csv") as file:
            rows = list(csv.DictReader(file))
        found, left_out = map(int, re.search(r"harvested (\d+) frames? into .*, (\d+) near duplicates", done.stdout).groups())
        steps = int(re.search(r"^step (\d+) of", done.stdout, re.M).group(1))
        return {"exit_code": done.returncode, "steps": steps, "harvested": found, "near_duplicates": left_out, "ps": [round(float(row["time_fs"]) / 1000, 4) for row in rows],
                "sigma_max_eV_per_A": [round(float(row["sigma_max_eV_per_A"]), 4) for row in rows]}


def labels(path):
    """(energy, forces) of every frame."""
    frames, lines = [], path.read_text().splitlines()
    while lines:
        count = int(lines[0])
        (energy,) = [float(word.split("=")[1]) for word in lines[1].split() if word.startswith("energy=")]
        frames.append((energy, [[float(x) for x in line.split()[4:7]] for line in lines[2:2 + count]]))
        lines = lines[2 + count:]
    return frames


def processor():
    with open("/proc/cpuinfo") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.processor())


def main():
    mlff, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    loop = Loop(mlff, folder)
    tests = {}
    for kelvin in (300, 800):  # other seeds than those of the training
        loop.run(f"test {kelvin} K", "distill", ETHANOL, *SAMPLING, "--temperatures", kelvin, "--frames", 200, "--seed", 100 + kelvin, "--labels-only", "--output", f"test-{kelvin}")
        tests[kelvin] = f"test-{kelvin}/frames.xyz"
    loop.run("first training", "distill", ETHANOL, *SAMPLING, "--temperatures", 300, "--frames", 200, "--members", 3, "--train-options", f"{NETWORK} --steps {FIRST}", "--output", "student")
    rounds = []
    for number in range(ROUNDS + 1):
        one = {"errors": {kelvin: loop.errors(f"errors at {kelvin} K, round {number}", "student/committee.txt", frames) for kelvin, frames in tests.items()},
               "dynamics": loop.dynamics(f"dynamics {number}")}
        rounds.append(one)
        if one["dynamics"]["exit_code"] == 0 or number == ROUNDS:
            break
        loop.run(f"training {number + 1}", "distill", "--continue", "harvest", "--device", "cpu", "--train-options", f"{NETWORK} --steps {NEXT}", "--output", "student")
        one["on_harvested"] = json.loads((folder / "student" / "report.json").read_text())["harvested"]
    # What the same steps bring without new frames.
    for member in (1, 2, 3):
        subprocess.run([mlff.with_name("mlff-train"), "train", "student/frames.xyz", "--start", f"student/run/member-{member}/model.safetensors", *f"{NETWORK} --steps {NEXT}".split(),
                        "--seed", str(member), "--output", f"longer/{member}"], cwd=folder, check=True, capture_output=True)
    longer = ",".join(f"longer/{member}/model.safetensors" for member in (1, 2, 3))
    control = {kelvin: loop.errors(f"errors at {kelvin} K without new frames", longer, frames) for kelvin, frames in tests.items()}
    result = {"processor": processor(), "harvest_sigma_eV_per_A": HARVEST_SIGMA, "stop_sigma_eV_per_A": STOP_SIGMA, "rounds": rounds, "longer_without_new_frames": control, "seconds": loop.seconds}
    path = ROOT / "measurements" / "results" / "active_learning.json"
    path.write_text(json.dumps(result) + "\n")
    for one in rounds:
        print(json.dumps({**one, "dynamics": {key: value for key, value in one["dynamics"].items() if not isinstance(value, list)}}))
    print(json.dumps(control))
    print(result["seconds"])


if __name__ == "__main__":
    main()
