# SPDX-License-Identifier: MIT
"""`mlff md` beside ASE's VelocityVerlet with the same model behind mlff.ase.MLFFCalculator: NVE of benzene (12 atoms) from one file with velocities, same time step,
same threads, no trajectory and no log in either, in turns. Wall time is of the loops alone: what the command says (ns/day), and that of VelocityVerlet.run. Time of all
cores together, which other work on the machine disturbs less, is of the whole command and of VelocityVerlet.run. Before that both move the same atoms for 100 steps; exits with
1 if their positions differ. Beside it: a call of the session, one of the calculator, and a step of ASE with a calculator that does nothing. Writes JSON.

  python compare.py PROGRAM [--models builtin analytic] [--device cpu] [--threads 0] [--rounds 7] [--seconds 2] [--output FILE]

Needs ase, numpy and the package mlff."""
import argparse
import json
import os
import pathlib
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import ase
import ase.io
import numpy as np
from ase import units
from ase.calculators.calculator import Calculator
from ase.md.verlet import VelocityVerlet

import mlff
from mlff.ase import MLFFCalculator

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BENZENE = ROOT / "src" / "tools" / "validate" / "systems" / "benzene.xyz"
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "mace_cpu")]
import native
import report

STEP_FS = 0.5
TEMPERATURE_K = 300
MOST_DIFFERENCE = 1e-4  # angstrom, after 100 steps


class NoForces(Calculator):
    """Costs nothing: what is left of a step is ASE's."""

    implemented_properties = ["energy", "forces"]

    def get_property(self, name, atoms=None, allow_calculation=True):
        return 0.0 if name == "energy" else np.zeros((len(atoms), 3))


def command(arguments, folder, *words):
    found = subprocess.run([arguments.program, *words, "--device", arguments.device, "--threads", str(arguments.threads)], cwd=folder, capture_output=True, text=True)
    if found.returncode:
        sys.exit(f"{' '.join(words)}: {found.stderr.strip()}")
    return found.stdout


def start(arguments, folder, model):
    """A file with benzene at the bottom of the model's well and velocities of 300 K on the average of a run."""
    atoms = ase.io.read(BENZENE)
    atoms.rattle(0.1, seed=1)  # out of the plane, which for the analytic model is a saddle
    ase.io.write(os.path.join(folder, "rattled.xyz"), atoms, format="extxyz")
    command(arguments, folder, "relax", "rattled.xyz", "--model", model, "--output", "relaxed.xyz", "--fmax", "0.005")
    atoms = ase.io.read(os.path.join(folder, "relaxed.xyz"))
    atoms = ase.Atoms(atoms.numbers, atoms.positions)
    speeds = np.random.default_rng(1).normal(size=(len(atoms), 3))
    atoms.set_momenta(speeds * np.sqrt(2 * TEMPERATURE_K * units.kB * atoms.get_masses()[:, None]))
    atoms.set_momenta(atoms.get_momenta() - atoms.get_masses()[:, None] * atoms.get_momenta().sum(axis=0) / atoms.get_masses().sum())
    path = os.path.join(folder, "start.xyz")
    ase.io.write(path, atoms, format="extxyz")
    return path


def command_run(arguments, folder, path, model, steps, *words):
    """[wall, core] seconds for a step of `mlff md`; wall time from its own clock"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = command(arguments, folder, "md", path, "--model", model, "--ensemble", "nve", "--dt", str(STEP_FS), "--steps", str(steps), "--overwrite", *words)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return STEP_FS * 1e-6 * 86400 / float(re.search(r"([\d.]+) ns/day", said)[1]), (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / steps


def ase_dynamics(path, calculator):
    atoms = ase.io.read(path)
    atoms.calc = calculator
    return VelocityVerlet(atoms, timestep=STEP_FS * units.fs)


def timed(call, count):
    """[wall, core] seconds for each of `count` things that a call does"""
    begin = time.perf_counter(), time.process_time()
    call()
    return (time.perf_counter() - begin[0]) / count, (time.process_time() - begin[1]) / count


def ase_run(dynamics, steps):
    return timed(lambda: dynamics.run(steps), steps)


def calls(call, atoms, count=300):
    """The same for a call with new positions"""
    first = atoms.positions[0, 0]

    def move_and_call():
        for index in range(count):
            atoms.positions[0, 0] = first + 1e-5 * (index % 7 + 1)
            call()
    seconds = timed(move_and_call, count)
    atoms.positions[0, 0] = first
    return seconds


def spread(seconds):
    wall, core = ([1e6 * value for value in values] for values in zip(*seconds))
    return {"median_us": statistics.median(wall), "min_us": min(wall), "max_us": max(wall), "runs": len(wall),
            "core_time": {"median_us": statistics.median(core), "min_us": min(core), "max_us": max(core)}}


def measure(arguments, folder, model):
    path = start(arguments, folder, model)
    calculator = MLFFCalculator(model, device=arguments.device, threads=arguments.threads)
    info = calculator.session.info

    command_run(arguments, folder, path, model, 100, "--output", "check.xyz", "--output-every", "100")
    dynamics = ase_dynamics(path, calculator)
    dynamics.run(100)
    difference = float(np.abs(ase.io.read(os.path.join(folder, "check.xyz"), index=-1).positions - dynamics.atoms.positions).max())

    ours, theirs = command_run(arguments, folder, path, model, 500), ase_run(ase_dynamics(path, calculator), 200)
    our_steps, their_steps = (max(200, int(arguments.seconds / each[0])) for each in (ours, theirs))
    atoms = dynamics.atoms
    numbers = atoms.numbers.astype(np.int32)
    load = os.getloadavg()[0]
    seconds = {name: [] for name in ("mlff_md", "ase_verlet", "session_call", "calculator_call", "ase_step_without_forces")}
    for _ in range(arguments.rounds):
        seconds["mlff_md"].append(command_run(arguments, folder, path, model, our_steps))
        seconds["ase_verlet"].append(ase_run(ase_dynamics(path, calculator), their_steps))
        seconds["session_call"].append(calls(lambda: calculator.session.evaluate(numbers, atoms.positions, virial=True, atom_energies=True), atoms))
        seconds["calculator_call"].append(calls(lambda: calculator.get_forces(atoms), atoms))
        seconds["ase_step_without_forces"].append(ase_run(ase_dynamics(path, NoForces()), 1000))
    row = {"model": model, "atoms": len(atoms), "device": info["device"], "precision": info["precision"], "threads": info["thread_count"], "step_fs": STEP_FS,
           "mlff_md_steps": our_steps, "ase_steps": their_steps, **{name: spread(values) for name, values in seconds.items()},
           "load_average": load, "positions_differ_after_100_steps_angstrom": difference, **report.stamp()}
    row["ratio"] = row["ase_verlet"]["median_us"] / row["mlff_md"]["median_us"]
    row["core_time_ratio"] = row["ase_verlet"]["core_time"]["median_us"] / row["mlff_md"]["core_time"]["median_us"]
    print(json.dumps(row), file=sys.stderr, flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--models", nargs="+", default=["builtin", "analytic"], help="analytic runs on the CPU only")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0, help="0 = all cores")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run")
    parser.add_argument("--output", help="rows of the same model and device in this file are replaced; without it, standard output")
    arguments = parser.parse_args()
    arguments.program = os.path.abspath(arguments.program)
    rows = []
    for model in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(arguments, folder, model))
    stored = {"what": "measurements/ase/compare.py", "rows": []}
    if arguments.output and os.path.exists(arguments.output):
        stored = json.loads(pathlib.Path(arguments.output).read_text())
    measured = {(row["model"], row["device"]) for row in rows}
    kept = [row for row in stored["rows"] if (row["model"], row["device"]) not in measured]
    name, _ = report.processor()
    for row in rows:
        row.update(machine=f"{os.cpu_count()} cores of {name} ({platform.machine()})", gpu=native.gpu_state() if row["device"].startswith("cuda") else None,
                   ase=ase.__version__, numpy=np.__version__, python=platform.python_version(), mlff=mlff.__version__)
    text = json.dumps({"what": stored["what"], "rows": kept + rows}, indent=1) + "\n"
    if arguments.output:
        pathlib.Path(arguments.output).write_text(text)
    else:
        print(text, end="")
    return 0 if all(row["positions_differ_after_100_steps_angstrom"] < MOST_DIFFERENCE for row in rows) else 1  # NaN fails


if __name__ == "__main__":
    sys.exit(main())
