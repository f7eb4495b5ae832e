# SPDX-License-Identifier: MIT
"""SevenNet on the CPU: mlff beside the package sevenn (its ASE calculator, fp32), energy, forces and stress with the neighbour list, in turns, each in a process of its own. While
one computes, the others are stopped. Every round has new positions, the same for all. Beside the times: energies and forces against the package's network in fp64, the peak memory of
each process, and that of whole `mlff eval` commands.

  python compare.py LIBRARY PROGRAM [--threads 2] [--rounds 10] [--models NAME...] [--systems NAME...] [--engines NAME...] [--output FILE]

LIBRARY is libmlff.so, PROGRAM the command mlff. Needs sevenn, ase and numpy. Models are the checkpoints inside the package. Exits with 1 if mlff in mixed precision is off by more than 1e-5
of the largest force."""
import argparse
import importlib.metadata
import json
import os
import pathlib
import platform
import signal
import statistics
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "mace_cpu")]
import package
import report
import systems

MODELS = ["SevenNet-0", "SevenNet-l3i5"]
SYSTEMS = ["si64", "water192"]
ENGINES = ["mlff mixed", "mlff fp64", "mlff mixed avx2", "sevenn fp32"]
REFERENCE = "sevenn fp64"
CHECKED_ROUNDS = 2  # which the reference evaluates too
WARM_UP_CALLS = 2
FEWEST_ROUNDS, LONGEST_SECONDS = 3, 60  # of the slowest engine
MEMORY_SYSTEMS = ["water192", "water1536"]
MOST_FORCE_ERROR = 1e-5  # of the largest force, in mixed precision
# In the peer's favour, as for mace-torch: torch keeps its memory between calls, and its threads do not sleep.
TORCH_ENVIRONMENT = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000",
                     "MALLOC_TOP_PAD_": "268435456", "OMP_WAIT_POLICY": "active"}


class Worker:
    """A process that sleeps, stopped, except while it computes."""

    def __init__(self, arguments, model, system, engine, folder):
        environment = {**os.environ, "OMP_NUM_THREADS": str(arguments.threads), **(TORCH_ENVIRONMENT if engine.startswith("sevenn") else {})}
        self.process = subprocess.Popen([sys.executable, "-W", "ignore", str(HERE / "worker.py"), os.path.abspath(arguments.library), package.checkpoint(model), system, engine,
                                         str(arguments.threads), folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        self.engine, self.seconds, self.peak_mb = engine, [], 0.0

    def call(self, number):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write(f"{number}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.engine}: {self.process.stderr.read().strip()[-600:]}")
        self.process.send_signal(signal.SIGSTOP)
        answer = json.loads(line)
        self.peak_mb = answer["peak_mb"]
        return answer["seconds"]

    def end(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.communicate()


def results(folder, engine, number):
    found = np.load(os.path.join(folder, f"{engine} {number}.npz"))
    return float(found["energy"]), found["forces"]


def differences(folder, engine, numbers):
    """Largest over the rounds, from the reference."""
    worst = {"energy_ev_per_atom": 0.0, "forces_ev_per_a": 0.0, "forces_relative": 0.0, "largest_force_ev_per_a": 0.0}
    for number in numbers:
        energy, forces = results(folder, engine, number)
        true_energy, true_forces = results(folder, REFERENCE, number)
        largest = float(np.abs(true_forces).max())
        error = float(np.abs(forces - true_forces).max())
        found = {"energy_ev_per_atom": abs(energy - true_energy) / len(forces), "forces_ev_per_a": error, "forces_relative": error / largest, "largest_force_ev_per_a": largest}
        worst = {key: float(np.maximum(worst[key], value)) for key, value in found.items()}  # NaN stays
    return worst


def measure(arguments, model, system, folder):
    reference = Worker(arguments, model, system, REFERENCE, folder)
    for number in range(CHECKED_ROUNDS):
        reference.call(number)
    reference.end()
    workers = [Worker(arguments, model, system, engine, folder) for engine in arguments.engines]
    for worker in workers:
        for _ in range(WARM_UP_CALLS):
            worker.call(arguments.rounds)
    load = os.getloadavg()[0]
    for number in range(arguments.rounds):
        for worker in workers:
            worker.seconds.append(worker.call(number))
        if number + 1 >= FEWEST_ROUNDS and max(sum(worker.seconds) for worker in workers) > LONGEST_SECONDS:
            break
    row = {"model": model, "system": system, "atoms": len(systems.SYSTEMS[system]()[0]), "model_sha256": report.sha256(package.checkpoint(model)), "load_average": load, "engines": {}}
    for worker in workers:
        worker.end()
        row["engines"][worker.engine] = {"median": statistics.median(worker.seconds), "min": min(worker.seconds), "max": max(worker.seconds), "calls": len(worker.seconds),
                                         "peak_mb": worker.peak_mb, "differences": differences(folder, worker.engine, range(min(CHECKED_ROUNDS, len(worker.seconds))))}
    peer = row["engines"].get("sevenn fp32")
    if peer:
        row["faster_than_sevenn_fp32"] = {engine: peer["median"] / found["median"] for engine, found in row["engines"].items() if engine != "sevenn fp32"}
    print(json.dumps(row), file=sys.stderr, flush=True)
    return row


def write_structure(path, system):
    symbols = {1: "H", 8: "O", 14: "Si"}
    numbers, positions, cell = systems.SYSTEMS[system]()
    lattice = " ".join(f"{value:.10f}" for value in cell.ravel())
    rows = [f"{symbols[number]} {x:.10f} {y:.10f} {z:.10f}" for number, (x, y, z) in zip(numbers, positions)]
    pathlib.Path(path).write_text(f'{len(numbers)}\nLattice="{lattice}" Properties=species:S:1:pos:R:3\n' + "\n".join(rows) + "\n")
    return len(numbers)


def measure_memory(arguments, model, folder):
    """Of a command from its start to its end; the system counts it."""
    rows = []
    for system in MEMORY_SYSTEMS:
        path = os.path.join(folder, f"{system}.xyz")
        atoms = write_structure(path, system)
        command = [arguments.program, "eval", path, "--model", package.checkpoint(model), "--device", "cpu", "--threads", str(arguments.threads), "--json", os.path.join(folder, "results.json")]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            sys.exit(f"{' '.join(command)}: {process.stderr.read().decode().strip()}")
        process.returncode = 0
        rows.append({"model": model, "system": system, "atoms": atoms, "command": "mlff eval, mixed", "threads": arguments.threads, "peak_mb": usage.ru_maxrss / 1024})
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("program")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--systems", nargs="+", choices=systems.SYSTEMS, default=SYSTEMS)
    parser.add_argument("--engines", nargs="+", default=ENGINES)
    parser.add_argument("--output")
    arguments = parser.parse_args()
    arguments.engines = [engine for engine in arguments.engines if not (engine.endswith("avx2") and platform.machine() != "x86_64")]
    rows, memory = [], []
    with tempfile.TemporaryDirectory() as folder:
        for model in arguments.models:
            memory += measure_memory(arguments, model, folder)
            rows += [measure(arguments, model, system, folder) for system in arguments.systems]
    content = {"what": "measurements/sevennet/compare.py", "machine": f"{os.cpu_count()} cores of {report.processor()[0]} ({platform.machine()})", "threads": arguments.threads,
               "peers": {name: importlib.metadata.version(name) for name in ("sevenn", "torch", "e3nn")}, **report.stamp(), "rows": rows, "memory": memory}
    text = json.dumps(content, indent=1) + "\n"
    if arguments.output:
        pathlib.Path(arguments.output).write_text(text)
    else:
        print(text, end="")
    errors = [row["engines"]["mlff mixed"]["differences"]["forces_relative"] for row in rows if "mlff mixed" in row["engines"]]
    return 0 if all(error < MOST_FORCE_ERROR for error in errors) else 1  # NaN fails


if __name__ == "__main__":
    sys.exit(main())
