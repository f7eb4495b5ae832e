# SPDX-License-Identifier: MIT
"""One case in a process of its own, so that peak memory is that case's: times energy, forces and, where something is periodic,
stress, neighbour list included. Prints one line of JSON and saves the forces.

  python case.py LIBRARY MODEL_FILE SYSTEM ENGINE THREADS FORCES.npy"""
import ctypes
import json
import resource
import statistics
import sys
import time

import numpy as np

import systems


class System(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("atom_count", ctypes.c_int64), ("atomic_numbers", ctypes.c_void_p),
                ("positions", ctypes.c_void_p), ("cell", ctypes.c_void_p), ("periodic", ctypes.c_uint8 * 3),
                ("total_charge", ctypes.c_double), ("spin_multiplicity", ctypes.c_double)]


class Result(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t)] + [(name, ctypes.c_void_p) for name in
                ("energy", "forces", "stress", "virial", "atom_energies", "atom_virials", "descriptors")]


class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("device", ctypes.c_char_p), ("precision", ctypes.c_int32),
                ("thread_count", ctypes.c_int32), ("head", ctypes.c_char_p), ("neighbor_skin_angstrom", ctypes.c_double), ("exact_radial", ctypes.c_int32)]


def mlff_call(library, path, name, precision, threads):
    lib = ctypes.CDLL(library)
    lib.mlff_last_error.restype = ctypes.c_char_p

    def check(status):
        if status:
            raise RuntimeError(lib.mlff_last_error().decode())

    numbers, positions, cell = systems.SYSTEMS[name]()
    numbers, positions = numbers.astype(np.int32), np.ascontiguousarray(positions)
    energy, forces, stress = np.zeros(1), np.zeros_like(positions), np.zeros(6)
    model, session = ctypes.c_void_p(), ctypes.c_void_p()
    check(lib.mlff_model_load(path.encode(), ctypes.byref(model)))
    options = Options(ctypes.sizeof(Options), b"cpu", {"mixed": 1, "fp64": 2}[precision], threads, None, 0.0)
    check(lib.mlff_session_create(model, ctypes.byref(options), ctypes.byref(session)))
    system = System(ctypes.sizeof(System), len(numbers), numbers.ctypes.data, positions.ctypes.data)
    result = Result(ctypes.sizeof(Result), energy.ctypes.data, forces.ctypes.data)
    if cell is not None:
        system.cell, system.periodic, result.stress = cell.ctypes.data, (1, 1, 1), stress.ctypes.data
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
    atoms = Atoms(numbers, positions=positions, cell=cell, pbc=cell is not None)
    calculator = MACECalculator(model_paths=path, device="cpu", default_dtype={"fp32": "float32", "fp64": "float64"}[precision])
    if cell is None:  # the calculator asks for stress always
        calculator.models[0].register_forward_pre_hook(lambda module, given, options: (given, {**options, "compute_stress": False}),
                                                       with_kwargs=True)
    forces = np.zeros_like(positions)

    def call():
        calculator.calculate(atoms)
        forces[:] = calculator.results["forces"]
    return call, forces


def main():
    library, path, name, engine, threads, output = sys.argv[1:]
    kind, precision = engine.split()
    call, forces = mlff_call(library, path, name, precision, int(threads)) if kind == "mlff" else torch_call(path, name, precision, int(threads))
    begin = time.perf_counter()
    call()
    first = time.perf_counter() - begin
    call()
    seconds = []
    while len(seconds) < 10 and (len(seconds) < 3 or sum(seconds) < 15):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    np.save(output, forces)
    print(json.dumps({"atoms": len(forces), "median": statistics.median(seconds), "min": min(seconds), "max": max(seconds),
                      "calls": len(seconds), "first": first, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
