#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time of a step in LAMMPS with the plugin on 1, 2, ... ranks, one thread each, beside `mlff md` with one thread: the embedded student or another model, NVE of water.

    measurements/lammps/ranks.py MLFF ENVIRONMENT PLUGIN_FOLDER [--model M] [--device cpu|cuda] [--rows auto|shared|window|host] [--skin 0.5] [--replicas 2,3] [--ranks 1,2] [--steps 20] [--rounds 5] [--json OUT]

ENVIRONMENT is a Python environment with the packages lammps and mpich, PLUGIN_FOLDER has mlffplugin.so. All take turns; medians and spreads of the rounds, and
ratios of the medians. A replica of 2 is 2 x 2 x 2 boxes of 192 atoms."""
import argparse
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bindings", "lammps", "example", "water.data")
TIME_STEP = 0.5  # fs
INPUT = """
plugin load mlffplugin.so
units metal
atom_style atomic
read_data {data}
replicate {replica} {replica} {replica}
pair_style mlff device {device} precision mixed threads 1 rows {rows}
pair_coeff * * {model} H O
neighbor {skin} bin
neigh_modify every 1 delay 0 check yes
velocity all create 300 4711
fix 1 all nve
timestep 0.0005
run {steps}
"""


def read_box():
    """Length of the box and (symbol, position) of its atoms."""
    with open(EXAMPLE) as file:
        text = file.read()
    length = float(re.search(r"\S+ (\S+) xlo xhi", text)[1])
    rows = [line.split() for line in text.split("Atoms")[1].splitlines()[1:] if line.strip()]
    return length, [("HO"[int(row[1]) - 1], [float(x) for x in row[2:5]]) for row in rows]


def write_xyz(path, replica):
    length, atoms = read_box()
    shifts = [(i, j, k) for i in range(replica) for j in range(replica) for k in range(replica)]
    with open(path, "w") as file:
        cell = " ".join(str(replica * length if k % 4 == 0 else 0) for k in range(9))
        file.write(f'{len(atoms) * len(shifts)}\nLattice="{cell}" pbc="T T T" Properties=species:S:1:pos:R:3\n')
        for shift in shifts:
            file.writelines("%s %.10f %.10f %.10f\n" % (symbol, *(x + length * s for x, s in zip(position, shift))) for symbol, position in atoms)
    return len(atoms) * len(shifts)


def lammps_step(options, folder, replica, ranks):
    with open(os.path.join(folder, "in.water"), "w") as file:
        file.write(INPUT.format(data=os.path.abspath(EXAMPLE), model=options.model, device=options.device, rows=options.rows, skin=options.skin, replica=replica, steps=options.steps))
    run = subprocess.run([os.path.join(options.environment, "bin", "mpiexec"), "-n", str(ranks), os.path.join(options.environment, "bin", "lmp"), "-in", "in.water", "-log", "none"],
                         cwd=folder, capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1", "LD_LIBRARY_PATH": options.plugin_folder, "PATH": os.path.join(options.environment, "bin") + ":" + os.environ["PATH"]})
    return float(re.search(r"Loop time of (\S+)", run.stdout)[1]) / options.steps


def md_step(options, folder, name):
    run = subprocess.run([options.mlff, "md", name, "--model", options.model, "--ensemble", "nve", "--temperature", "300", "--dt", str(TIME_STEP), "--steps", str(options.steps), "--device", options.device, "--precision", "mixed",
                          "--threads", "1", "--overwrite"], cwd=folder, capture_output=True, text=True, check=True)
    rate = float(re.findall(r"(\S+) ns/day", run.stdout)[-1])
    return TIME_STEP * 1e-6 * 86400 / rate


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mlff", type=os.path.abspath)
    parser.add_argument("environment", type=os.path.abspath)
    parser.add_argument("plugin_folder", type=os.path.abspath)
    parser.add_argument("--model", default="builtin", help="a file, by its whole path, or a name")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rows", default="auto")
    parser.add_argument("--skin", type=float, default=0.5, help="of LAMMPS' neighbour list, angstrom")
    parser.add_argument("--replicas", default="2,3")
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    ranks = [int(n) for n in options.ranks.split(",")]
    results = []
    for replica in (int(n) for n in options.replicas.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            atoms = write_xyz(os.path.join(folder, "water.xyz"), replica)
            times = {"mlff md": [], **{f"LAMMPS, {n} rank{'s' if n > 1 else ''}": [] for n in ranks}}
            for _ in range(options.rounds):
                times["mlff md"].append(md_step(options, folder, "water.xyz"))
                for n, samples in zip(ranks, list(times.values())[1:]):
                    samples.append(lammps_step(options, folder, replica, n))
        medians = {name: statistics.median(samples) for name, samples in times.items()}
        for name, samples in times.items():
            results.append({"atoms": atoms, "what": name, "seconds": medians[name], "least": min(samples), "most": max(samples), "over_md": medians[name] / medians["mlff md"]})
            print("%6d atoms  %-16s %.4f s a step (%.4f to %.4f), %.2f of mlff md" % (atoms, name, medians[name], min(samples), max(samples), results[-1]["over_md"]), flush=True)
    if options.json:
        gpu = {}
        if options.device.startswith("cuda"):
            import native  # needs numpy, which the rest does not

            gpu = native.gpu_state()
        with open(options.json, "w") as file:
            json.dump({"date": str(datetime.date.today()), "machine": platform.machine(), "cores": os.cpu_count(), "model": os.path.basename(options.model), "device": options.device, "rows": options.rows, "skin": options.skin, "gpu": gpu, "steps": options.steps, "rounds": options.rounds, "results": results}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
