# SPDX-License-Identifier: MIT
"""What the benchmarks share: one system evaluated through the C interface, the boxes of water by number of atoms, and the state of
the GPU."""
import ctypes
import os
import statistics
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "mace_cpu"))
import systems

# atoms: molecules along an edge of the box
SIDES = {24: 2, 192: 4, 648: 6, 1536: 8, 5184: 12, 12288: 16, 41472: 24, 98304: 32, 499125: 55}
PRECISIONS = {"mixed": 1, "fp64": 2, "fast": 4}


class System(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("atom_count", ctypes.c_int64), ("atomic_numbers", ctypes.c_void_p),
                ("positions", ctypes.c_void_p), ("cell", ctypes.c_void_p), ("periodic", ctypes.c_uint8 * 3),
                ("total_charge", ctypes.c_double), ("spin_multiplicity", ctypes.c_double)]


class Result(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t)] + [(name, ctypes.c_void_p) for name in
                ("energy", "forces", "stress", "virial", "atom_energies", "atom_virials", "descriptors",
                 "sigma_energy_per_atom", "sigma_forces", "sigma_max_force", "energy_deviations", "force_deviations",
                 "expected_errors", "novelties")]


class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("device", ctypes.c_char_p), ("precision", ctypes.c_int32),
                ("thread_count", ctypes.c_int32), ("head", ctypes.c_char_p), ("neighbor_skin_angstrom", ctypes.c_double), ("exact_radial", ctypes.c_int32),
                ("gpu_memory_limit_bytes", ctypes.c_int64)]


class Session:
    """A session for one system (numbers, positions, cell). `evaluate` fills energy, forces and, where there is a cell, stress."""

    def __init__(self, library, model_file, system, device, precision, skin=0.0, threads=0):
        self.lib = ctypes.CDLL(library)
        self.lib.mlff_last_error.restype = ctypes.c_char_p
        numbers, positions, cell = system
        self.numbers, self.positions = numbers.astype(np.int32), np.ascontiguousarray(positions)
        self.cell = None if cell is None else np.ascontiguousarray(cell)
        self.energy, self.forces, self.stress = np.zeros(1), np.zeros_like(self.positions), np.zeros(6)
        self.system = System(ctypes.sizeof(System), len(self.numbers), self.numbers.ctypes.data, self.positions.ctypes.data)
        self.result = Result(ctypes.sizeof(Result), self.energy.ctypes.data, self.forces.ctypes.data)
        if cell is not None:
            self.system.cell, self.system.periodic, self.result.stress = self.cell.ctypes.data, (1, 1, 1), self.stress.ctypes.data
        options = Options(ctypes.sizeof(Options), device.encode(), PRECISIONS[precision], threads, None, skin)
        model, self.handle = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.lib.mlff_model_load(model_file.encode(), ctypes.byref(model)))
        status = self.lib.mlff_session_create(model, ctypes.byref(options), ctypes.byref(self.handle))
        self.lib.mlff_model_free(model)
        self.check(status)

    def check(self, status):
        if status:
            raise RuntimeError(self.lib.mlff_last_error().decode())

    def place(self, positions):
        """Positions (a contiguous array of doubles, kept by the caller) for the next calls."""
        self.system.positions = positions.ctypes.data

    def evaluate(self):
        self.check(self.lib.mlff_session_evaluate(self.handle, ctypes.byref(self.system), ctypes.byref(self.result)))

    def shaken(self, count=8, amplitude=0.02):
        """Positions near those of the system, so that no call has the positions of the one before."""
        random = np.random.default_rng(1)
        return [np.ascontiguousarray(self.positions + random.uniform(-amplitude, amplitude, self.positions.shape)) for _ in range(count)]

    def free(self):
        self.lib.mlff_session_free(self.handle)
        self.handle = ctypes.c_void_p()


def water(atoms):
    """The molecule in vacuum (3 atoms) or a periodic box with one of SIDES."""
    return systems.SYSTEMS["water3"]() if atoms == 3 else systems.water(SIDES[atoms])


def spread(seconds):
    return {"median_ms": 1e3 * statistics.median(seconds), "min_ms": 1e3 * min(seconds), "max_ms": 1e3 * max(seconds), "calls": len(seconds)}


def gpu_state():
    fields = "name,driver_version,clocks.sm,clocks.mem,memory.used,memory.total"
    try:
        found = subprocess.run(["nvidia-smi", "--query-gpu=" + fields, "--format=csv,noheader"], capture_output=True, text=True)
    except OSError:
        return {}
    return dict(zip(fields.split(","), found.stdout.splitlines()[0].split(", "))) if found.returncode == 0 else {}
