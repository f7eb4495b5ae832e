# SPDX-License-Identifier: MIT
"""Many copies of alanine dipeptide (22 atoms), each shaken on its own, in one call of mlff_session_evaluate_batch: energies and forces. Every call has other positions
than the one before. Prints JSON.

  python batch.py LIBRARY [MODEL] [--count 1000] [--device cuda] [--precision mixed] [--calls 50]"""
import argparse
import ctypes
import json
import pathlib
import sys
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]
import native

NUMBERS = {"H": 1, "C": 6, "N": 7, "O": 8}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("model", nargs="?", default="builtin")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", default="mixed")
    parser.add_argument("--calls", type=int, default=50)
    arguments = parser.parse_args()
    lines = [line.split() for line in (HERE / "../../src/tools/validate/systems/alanine_dipeptide.xyz").read_text().splitlines()[2:]]
    numbers = np.array([NUMBERS[line[0]] for line in lines], np.int32)
    molecule = np.array([[float(x) for x in line[1:4]] for line in lines])
    session = native.Session(arguments.library, arguments.model, (numbers, molecule, None), arguments.device, arguments.precision, 1.0)
    count, atoms = arguments.count, len(numbers)
    random = np.random.default_rng(1)
    start = molecule + random.uniform(-0.02, 0.02, (count, atoms, 3))
    positions, energies, forces = start.copy(), np.full(count, np.nan), np.full((count, atoms, 3), np.nan)
    systems = (native.System * count)(*(native.System(ctypes.sizeof(native.System), atoms, numbers.ctypes.data, positions[i].ctypes.data) for i in range(count)))
    results = (native.Result * count)(*(native.Result(ctypes.sizeof(native.Result), energies[i:].ctypes.data, forces[i].ctypes.data) for i in range(count)))
    seconds = []
    for call in range(arguments.calls + 5):
        positions[:] = start + random.uniform(-0.02, 0.02, start.shape)
        begin = time.perf_counter()
        session.check(session.lib.mlff_session_evaluate_batch(session.handle, ctypes.c_int64(count), systems, results))
        seconds.append(time.perf_counter() - begin)
    assert np.isfinite(energies).all() and np.isfinite(forces).all()
    alone = []
    for i in range(0, count, max(1, count // 5)):
        session.place(np.ascontiguousarray(positions[i]))
        session.evaluate()
        alone.append(float(np.abs(session.forces - forces[i]).max()))
    print(json.dumps({"gpu": native.gpu_state(), "model": arguments.model, "precision": arguments.precision, "device": arguments.device, "molecules": count, "atoms_each": atoms,
                      "largest_force_difference_to_single_calls": max(alone), **native.spread(seconds[5:])}, indent=1))


if __name__ == "__main__":
    main()
