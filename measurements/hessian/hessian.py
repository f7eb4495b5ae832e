# SPDX-License-Identifier: MIT
"""The time of mlff_session_hessian, for alanine dipeptide (22 atoms) and a box of water (192 atoms): median, fastest and slowest of several calls in one session. Prints
JSON.

  python hessian.py LIBMLFF MODEL [--device cuda] [--repeats 7]"""
import argparse
import ctypes
import json
import pathlib
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import native

HERE = pathlib.Path(__file__).resolve().parent
SYMBOLS = {"H": 1, "C": 6, "N": 7, "O": 8}


class Report(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("step_error", ctypes.c_double), ("asymmetry", ctypes.c_double), ("sum_rule_error", ctypes.c_double),
                ("evaluation_count", ctypes.c_int64), ("operation_count", ctypes.c_int64), ("is_extrapolated", ctypes.c_int32)]


def structure(path):
    lines = path.read_text().splitlines()[2:]
    rows = [line.split() for line in lines if line.strip()]
    return [SYMBOLS[row[0]] for row in rows], [[float(x) for x in row[1:4]] for row in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("model")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    library = ctypes.CDLL(arguments.library)
    library.mlff_last_error.restype = ctypes.c_char_p

    def check(status):
        if status:
            sys.exit(library.mlff_last_error().decode())

    model, session = ctypes.c_void_p(), ctypes.c_void_p()
    check(library.mlff_model_load(arguments.model.encode(), ctypes.byref(model)))
    options = native.Options(ctypes.sizeof(native.Options), arguments.device.encode(), native.PRECISIONS["fp64"])
    check(library.mlff_session_create(model, ctypes.byref(options), ctypes.byref(session)))
    cases = {"alanine dipeptide": (*structure(HERE / "../../examples/alanine_dipeptide.xyz"), None), "192 atoms of water": native.water(192)}
    found = {}
    for name, (numbers, positions, cell) in cases.items():
        numbers, positions = np.ascontiguousarray(numbers, np.int32), np.ascontiguousarray(positions, np.float64)
        system = native.System(ctypes.sizeof(native.System), len(numbers), numbers.ctypes.data, positions.ctypes.data)
        if cell is not None:
            cell = np.ascontiguousarray(cell, np.float64)
            system.cell, system.periodic = cell.ctypes.data, (ctypes.c_uint8 * 3)(1, 1, 1)
        matrix, report, times = np.empty((3 * len(numbers),) * 2), Report(ctypes.sizeof(Report)), []
        for _ in range(arguments.repeats + 1):
            begin = time.perf_counter()
            check(library.mlff_session_hessian(session, ctypes.byref(system), None, matrix.ctypes.data_as(ctypes.c_void_p), ctypes.byref(report)))
            times.append(time.perf_counter() - begin)
        times = sorted(times[1:])  # the first makes tables and graphs
        found[name] = {"seconds": times[len(times) // 2], "fastest": times[0], "slowest": times[-1], "evaluations": report.evaluation_count,
                       "step_error": report.step_error, "asymmetry": report.asymmetry, "largest": float(np.abs(matrix).max())}
    print(json.dumps({"device": arguments.device, "model": pathlib.Path(arguments.model).name, "hessians": found}, indent=1))


main()
