# SPDX-License-Identifier: MIT
"""One case in a process of its own, so that peak memory is that case's: times energy, forces and, where something is periodic,
stress, neighbour list included. Prints one line of JSON and saves the forces. The third word of an engine names instructions ("mlff mixed avx2").

  python case.py LIBRARY MODEL_FILE SYSTEM ENGINE THREADS FORCES.npy"""
import json
import os
import resource
import statistics
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native
import systems


def mlff_call(library, path, name, precision, threads):
    session = native.Session(library, path, systems.SYSTEMS[name](), "cpu", precision, threads=threads)
    return session.evaluate, session.forces


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
    kind, precision, *instructions = engine.split()
    if instructions:
        os.environ["MLFF_CPU"] = instructions[0]
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
