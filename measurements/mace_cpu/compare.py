# SPDX-License-Identifier: MIT
"""Times mlff and mace-torch side by side on the CPU (`case.py`), and whole processes that evaluate one water molecule. Figures go to
mace_cpu_<machine>.json in --output; those of cases that are not measured again stay. See `run` beside this file."""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from ase import Atoms

import report
import systems

CASE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "case.py")
MATRIX = {"mp0-small": ["water3", "ethanol", "ala2", "water24", "si64", "water192", "si512", "water648", "water1536"],
          "mp0-medium": ["water3", "ala2", "water24", "si64", "water192", "si512", "water648"],
          "mp0-medium-89": ["water192"],
          "mp0-large": ["water24", "water192"],
          "mpa0-medium": ["si64", "water192"],
          "off23-small": ["ethanol", "ala2", "water24", "water192", "water1536"],
          "off23-medium": ["water192"]}
NARROWER = {"x86_64": ["mlff mixed avx2", "mlff fp64 avx2"]}  # than the best instructions of the machine, which the others use
ENGINES = ["mlff mixed", "mlff fp64"] + NARROWER.get(platform.machine(), []) + ["mace-torch fp32", "mace-torch fp64"]
TOO_LARGE = {"mace-torch fp64": ["si512", "water648", "water1536"]}  # for the memory of a machine with 24 GB
REFERENCES = ["mace-torch fp64", "mlff fp64"]  # of forces, by preference
# In the peer's favour: torch keeps its memory between calls instead of giving it back to the system, and its threads do not sleep.
TORCH_ENVIRONMENT = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000",
                     "MALLOC_TOP_PAD_": "268435456", "OMP_WAIT_POLICY": "active"}
START_MODEL, START_SYSTEM = "mp0-small", "water3"
TORCH_START = """
import json, sys, warnings
warnings.filterwarnings("ignore")
import torch
torch.set_num_threads(int(sys.argv[3]))
import ase.io
from mace.calculators import MACECalculator
atoms = ase.io.read(sys.argv[1])
atoms.calc = MACECalculator(model_paths=sys.argv[2], device="cpu", default_dtype="float32")
print(json.dumps({"energy": float(atoms.get_potential_energy()), "forces": atoms.get_forces().tolist()}))
"""


def model_path(arguments, model):
    return os.path.join(arguments.model_folder, model + ".model")


def measure_case(arguments, model, name, folder):
    """The rows of the engines asked for, for one model and system."""
    rows, forces = [], {}
    path = os.path.join(folder, "forces.npy")
    engines = [engine for engine in arguments.engines if name not in TOO_LARGE.get(engine, [])]
    unasked = [] if set(engines) & set(REFERENCES) else REFERENCES[-1:]  # for its forces only
    for engine in engines + unasked:
        child = subprocess.run([sys.executable, "-W", "ignore", CASE, arguments.library, model_path(arguments, model), name, engine,
                                str(arguments.threads), path], capture_output=True, text=True,
                               env={**os.environ, **(TORCH_ENVIRONMENT if engine.startswith("mace-torch") else {})})
        if child.returncode != 0:
            print(model, name, engine, "failed:", child.stderr.strip().splitlines()[-1:], file=sys.stderr)
            continue
        forces[engine] = np.load(path)
        if engine in engines:
            rows.append({"model": model, "system": name, "engine": engine, **json.loads(child.stdout.splitlines()[-1])})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    reference = next((engine for engine in REFERENCES if engine in forces), None)
    if reference:
        for row in rows:
            row.update(force_error=float(np.abs(forces[row["engine"]] - forces[reference]).max()), force_reference=reference)
    return rows


def measure_start(arguments, kind, folder):
    """Seconds from the start of a process to its end, which reads a structure and a model, evaluates once and prints the result."""
    path = os.path.join(folder, "start.xyz")
    numbers, positions, _ = systems.SYSTEMS[START_SYSTEM]()
    Atoms(numbers, positions=positions).write(path, format="extxyz")
    model, threads = model_path(arguments, START_MODEL), str(arguments.threads)
    if kind == "mlff":
        command, count = [arguments.program, "eval", path, "--model", model, "--threads", threads, "--device", "cpu", "--json", "-"], 10
    else:
        command, count = [sys.executable, "-c", TORCH_START, path, model, threads], 3
    seconds = []
    for _ in range(1 + count):
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - begin)
    del seconds[0]  # it brought the files into memory
    return {"model": START_MODEL, "system": START_SYSTEM, "median": statistics.median(seconds), "min": min(seconds), "max": max(seconds),
            "calls": count, "model_sha256": report.sha256(model)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True)
    parser.add_argument("--program", help="the command mlff; without it the time of whole processes is not measured")
    parser.add_argument("--model-folder", required=True)
    parser.add_argument("--output", default=os.path.join(report.ROOT, "measurements", "results"))
    parser.add_argument("--models", nargs="*", choices=MATRIX, default=list(MATRIX))
    parser.add_argument("--systems", nargs="*", choices=systems.SYSTEMS, default=list(systems.SYSTEMS))
    parser.add_argument("--engines", nargs="*", choices=ENGINES, default=ENGINES)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    cases = [(model, name) for model in MATRIX for name in MATRIX[model]]
    stored = report.Report(os.path.join(arguments.output, f"mace_cpu_{platform.machine()}.json"), arguments.threads,
                           order=lambda row: (cases.index((row["model"], row["system"])), ENGINES.index(row["engine"])))
    stamp = report.stamp()
    with tempfile.TemporaryDirectory() as folder:
        for model, name in cases:
            if model not in arguments.models or name not in arguments.systems:
                continue
            digest = report.sha256(model_path(arguments, model))
            for row in measure_case(arguments, model, name, folder):
                stored.put_row({**row, "model_sha256": digest, **stamp})
            stored.save()
        if arguments.program and START_MODEL in arguments.models and START_SYSTEM in arguments.systems:
            for kind in ("mlff", "mace-torch"):
                if any(engine.split()[0] == kind for engine in arguments.engines):
                    stored.put_start(kind, {**measure_start(arguments, kind, folder), **stamp})
            stored.save()


if __name__ == "__main__":
    main()
