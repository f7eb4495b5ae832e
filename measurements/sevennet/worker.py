# SPDX-License-Identifier: MIT
"""One engine with one model and one system, in a process of its own that compare.py tells what to do. Each line on standard input names a round: its positions are
evaluated (energy, forces and stress, neighbour list included), energy and forces go into FOLDER, and a line of JSON says how long it took. After the last line it says how much
memory the process had at most.

  python worker.py LIBRARY MODEL SYSTEM ENGINE THREADS FOLDER

ENGINE: "mlff mixed", "mlff fp64", "mlff mixed avx2" (the third word names instructions), "sevenn fp32" or "sevenn fp64". The calculator of sevenn computes in fp32;
"sevenn fp64" is its network with the same numbers in double precision, to compare with."""
import json
import os
import pathlib
import sys
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "mace_cpu")]
import native
import systems


def positions_of(system, number):
    """Positions of a round, near those of the system and the same for all engines."""
    return np.ascontiguousarray(system[1] + np.random.default_rng(number).uniform(-0.02, 0.02, system[1].shape))


def mlff_engine(library, model, system, precision, threads):
    session = native.Session(library, model, system, "cpu", precision, threads=threads)

    def place(positions):
        session.positions = positions  # keeps them
        session.place(positions)
    return place, session.evaluate, lambda: (float(session.energy[0]), session.forces)


def sevenn_engine(model, system, precision, threads):
    import package
    from ase import Atoms
    numbers, positions, cell = system
    atoms = Atoms(numbers, positions=positions, cell=cell, pbc=cell is not None)
    calculator = package.calculator(model, None, precision, threads)
    return atoms.set_positions, lambda: calculator.calculate(atoms), lambda: (calculator.results["energy"], calculator.results["forces"])


def peak_mb():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def main():
    library, model, name, engine, threads, folder = sys.argv[1:]
    kind, precision, *instructions = engine.split()
    if instructions:
        os.environ["MLFF_CPU"] = instructions[0]
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a package prints
    system = systems.SYSTEMS[name]()
    place, evaluate, results = mlff_engine(library, model, system, precision, int(threads)) if kind == "mlff" else sevenn_engine(model, system, precision, int(threads))
    for line in sys.stdin:
        number = int(line)
        place(positions_of(system, number))
        begin = time.perf_counter()
        evaluate()
        seconds = time.perf_counter() - begin
        energy, forces = results()
        np.savez(os.path.join(folder, f"{engine} {number}.npz"), energy=energy, forces=forces)
        print(json.dumps({"seconds": seconds, "peak_mb": peak_mb()}), file=answers, flush=True)


if __name__ == "__main__":
    main()
