# SPDX-License-Identifier: MIT
"""Times energy + forces + stress, neighbour list included, of mlff and of mace-torch through its ASE calculator. Every case runs in
a process of its own, so that peak memory is that case's. See `run` beside this file."""
import argparse
import ctypes
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

import systems

MATRIX = [("mp0-small", ["water24", "water192", "water648", "water1536", "si64", "si512"]),
          ("mp0-medium", ["water24", "water192", "water648", "si64"]), ("mp0-large", ["water24", "water192"]),
          ("mpa0-medium", ["water192", "si64"]), ("off23-small", ["water24", "water192", "water1536"]), ("off23-medium", ["water192"])]
ENGINES = ["mlff mixed", "mlff fp64", "mace-torch fp32", "mace-torch fp64"]


class System(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("atom_count", ctypes.c_int64), ("atomic_numbers", ctypes.c_void_p),
                ("positions", ctypes.c_void_p), ("cell", ctypes.c_void_p), ("periodic", ctypes.c_uint8 * 3),
                ("total_charge", ctypes.c_double), ("spin_multiplicity", ctypes.c_double)]


class Result(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t)] + [(name, ctypes.c_void_p) for name in
                ("energy", "forces", "stress", "virial", "atom_energies", "atom_virials")]


class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("device", ctypes.c_char_p), ("precision", ctypes.c_int32),
                ("thread_count", ctypes.c_int32), ("head", ctypes.c_char_p), ("neighbor_skin_angstrom", ctypes.c_double)]


def mlff_call(library, path, name, precision, threads):
    lib = ctypes.CDLL(library)
    lib.mlff_last_error.restype = ctypes.c_char_p

    def check(status):
        if status:
            raise RuntimeError(lib.mlff_last_error().decode())

    numbers, positions, cell = systems.SYSTEMS[name]()
    numbers, positions, cell = numbers.astype(np.int32), np.ascontiguousarray(positions), np.ascontiguousarray(cell)
    energy, forces, stress = np.zeros(1), np.zeros_like(positions), np.zeros(6)
    model, session = ctypes.c_void_p(), ctypes.c_void_p()
    check(lib.mlff_model_load(path.encode(), ctypes.byref(model)))
    options = Options(ctypes.sizeof(Options), b"cpu", {"mixed": 1, "fp64": 2}[precision], threads, None, 0.0)
    check(lib.mlff_session_create(model, ctypes.byref(options), ctypes.byref(session)))
    system = System(ctypes.sizeof(System), len(numbers), numbers.ctypes.data, positions.ctypes.data, cell.ctypes.data, (ctypes.c_uint8 * 3)(1, 1, 1))
    result = Result(ctypes.sizeof(Result), energy.ctypes.data, forces.ctypes.data, stress.ctypes.data)
    arrays = (numbers, positions, cell, energy, forces, stress)  # the structs hold their addresses only

    def call():
        assert arrays
        check(lib.mlff_session_evaluate(session, ctypes.byref(system), ctypes.byref(result)))
    return call, forces


def torch_call(path, name, precision, threads):
    import warnings
    warnings.filterwarnings("ignore")
    import torch
    torch.set_num_threads(threads)
    from ase import Atoms
    from mace.calculators import MACECalculator
    numbers, positions, cell = systems.SYSTEMS[name]()
    atoms = Atoms(numbers, positions=positions, cell=cell, pbc=True)
    calculator = MACECalculator(model_paths=path, device="cpu", default_dtype={"fp32": "float32", "fp64": "float64"}[precision])
    forces = np.zeros_like(positions)

    def call():
        calculator.calculate(atoms)
        forces[:] = calculator.results["forces"]
    return call, forces


def one_case(arguments):
    model, name, engine = arguments.case
    kind, precision = engine.split()
    path = os.path.join(arguments.model_folder, model + ".model")
    call, forces = (mlff_call(arguments.library, path, name, precision, arguments.threads) if kind == "mlff"
                    else torch_call(path, name, precision, arguments.threads))
    begin = time.perf_counter()
    call()
    first = time.perf_counter() - begin
    call()
    seconds = []
    while len(seconds) < 10 and (len(seconds) < 3 or sum(seconds) < 15):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    np.save(arguments.forces, forces)
    print(json.dumps({"model": model, "system": name, "engine": engine, "atoms": len(forces), "median": statistics.median(seconds),
                      "min": min(seconds), "max": max(seconds), "calls": len(seconds), "first": first,
                      "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--model-folder", required=True)
    parser.add_argument("--output", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "results"))
    parser.add_argument("--models", nargs="*")
    parser.add_argument("--systems", nargs="*")
    parser.add_argument("--engines", nargs="*", default=ENGINES)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--forces", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        return one_case(arguments)
    rows = []
    for model, names in MATRIX:
        for name in names:
            if (arguments.models and model not in arguments.models) or (arguments.systems and name not in arguments.systems):
                continue
            found = {}
            for engine in arguments.engines:
                if engine == "mace-torch fp64" and name in ("water648", "water1536"):
                    continue  # more memory than a small machine has
                path = os.path.join(arguments.output, "forces.npy")
                child = subprocess.run([sys.executable, "-W", "ignore", __file__, "--library", arguments.library, "--model-folder", arguments.model_folder,
                                        "--threads", str(arguments.threads), "--case", model, name, engine, "--forces", path],
                                       capture_output=True, text=True)
                if child.returncode != 0:
                    print(model, name, engine, "failed:", child.stderr.strip().splitlines()[-1:], file=sys.stderr)
                    continue
                row = json.loads(child.stdout.splitlines()[-1])
                found[engine] = np.load(path)
                os.remove(path)
                rows.append(row)
                print(json.dumps(row), file=sys.stderr, flush=True)
            exact = found.get("mace-torch fp64", found.get("mlff fp64"))
            for row in rows:
                if (row["model"], row["system"]) == (model, name) and exact is not None:
                    row["force_error"] = float(np.abs(found[row["engine"]] - exact).max())
    report = {"machine": platform.machine(), "processor": platform.processor(), "threads": arguments.threads, "date": time.strftime("%Y-%m-%d"),
              "rows": rows}
    with open(os.path.join(arguments.output, "mace_cpu.json"), "w") as file:
        json.dump(report, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
