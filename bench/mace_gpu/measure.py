# SPDX-License-Identifier: MIT
"""Times energy + forces + stress of boxes of water on the GPU through the C interface: positions go to the device and results come back in
every call, and every call has other positions. Prints JSON.

  python measure.py LIBRARY MODEL_FILE... [--precisions mixed fp64] [--atoms 3 192 1536 12288] [--skin 1.0]"""
import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "mace_cpu"))
import case
import systems

SIDES = {3: 1, 24: 2, 192: 4, 648: 6, 1536: 8, 5184: 12, 12288: 16, 41472: 24, 98304: 32}


def gpu_state():
    fields = "name,driver_version,clocks.sm,clocks.mem,memory.used,memory.total"
    found = subprocess.run(["nvidia-smi", "--query-gpu=" + fields, "--format=csv,noheader"], capture_output=True, text=True)
    return dict(zip(fields.split(","), found.stdout.strip().split(", "))) if found.returncode == 0 else {}


def measure(lib, path, precision, atoms, skin):
    def check(status):
        if status:
            raise RuntimeError(lib.mlff_last_error().decode())
    numbers, positions, cell = systems.water(SIDES[atoms]) if atoms > 3 else systems.SYSTEMS["water3"]()
    numbers = numbers.astype(np.int32)
    random = np.random.default_rng(1)
    shaken = [np.ascontiguousarray(positions + random.uniform(-0.02, 0.02, positions.shape)) for _ in range(8)]
    energy, forces, stress = np.zeros(1), np.zeros_like(positions), np.zeros(6)
    model, session = ctypes.c_void_p(), ctypes.c_void_p()
    check(lib.mlff_model_load(path.encode(), ctypes.byref(model)))
    options = case.Options(ctypes.sizeof(case.Options), b"cuda", {"mixed": 1, "fp64": 2}[precision], 0, None, skin)
    check(lib.mlff_session_create(model, ctypes.byref(options), ctypes.byref(session)))
    system = case.System(ctypes.sizeof(case.System), len(numbers), numbers.ctypes.data)
    result = case.Result(ctypes.sizeof(case.Result), energy.ctypes.data, forces.ctypes.data)
    if cell is not None:
        cell = np.ascontiguousarray(cell)
        system.cell, system.periodic, result.stress = cell.ctypes.data, (1, 1, 1), stress.ctypes.data
    seconds = []
    for call in range(25):
        system.positions = shaken[call % 8].ctypes.data
        begin = time.perf_counter()
        check(lib.mlff_session_evaluate(session, ctypes.byref(system), ctypes.byref(result)))
        seconds.append(time.perf_counter() - begin)
    seconds = seconds[5:]
    state = gpu_state()
    lib.mlff_session_free(session)
    lib.mlff_model_free(model)
    median = statistics.median(seconds)
    return {"model": os.path.basename(path), "precision": precision, "atoms": len(numbers), "median_ms": 1e3 * median, "min_ms": 1e3 * min(seconds),
            "max_ms": 1e3 * max(seconds), "us_per_atom": 1e6 * median / len(numbers), "memory_used": state.get("memory.used")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--precisions", nargs="*", default=["mixed", "fp64"])
    parser.add_argument("--atoms", nargs="*", type=int, default=[3, 192, 1536, 12288], choices=SIDES)
    parser.add_argument("--skin", type=float, default=1.0)
    arguments = parser.parse_args()
    lib = ctypes.CDLL(arguments.library)
    lib.mlff_last_error.restype = ctypes.c_char_p
    rows = [measure(lib, path, precision, atoms, arguments.skin) for path in arguments.models for precision in arguments.precisions for atoms in arguments.atoms]
    json.dump({"gpu": gpu_state(), "skin_angstrom": arguments.skin, "rows": rows}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
