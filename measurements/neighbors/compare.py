# SPDX-License-Identifier: MIT
"""Times full neighbour lists (pairs, shifts, distances, vectors) of water boxes: mlff, vesin and matscipy.

Every measurement runs in a process of its own, so that no library finds the memory of another. Each library
reuses what it can from call to call: handles for mlff and vesin, which are both called through their C interface.
"""
import argparse
import ctypes
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

import numpy as np

CUTOFF = 6.0
SPACING = 3.1043  # angstrom between molecules: 1 g/cm^3
MOLECULES_PER_EDGE = [6, 8, 12, 16, 32, 70]
LIBRARIES = ["mlff", "vesin", "matscipy"]
SLOWEST_CALL = 15.0  # seconds; slower ones are predicted from the size before, and left out


def water_box(per_edge):
    """Molecules on a cubic lattice, turned and shaken at random; a cubic periodic cell."""
    random = np.random.default_rng(per_edge)
    half_angle, bond = np.deg2rad(104.52 / 2), 0.9572
    along, across = bond * np.cos(half_angle), bond * np.sin(half_angle)
    centers = SPACING * np.indices([per_edge] * 3).reshape(3, -1).T + random.normal(scale=0.1, size=(per_edge**3, 3))
    first = random.normal(size=centers.shape)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = np.cross(first, random.normal(size=centers.shape))
    second /= np.linalg.norm(second, axis=1, keepdims=True)
    atoms = [centers, centers + along * first + across * second, centers + along * first - across * second]
    return np.ascontiguousarray(np.stack(atoms, axis=1).reshape(-1, 3)), np.eye(3) * SPACING * per_edge


def pointer(array, kind):
    return array.ctypes.data_as(ctypes.POINTER(kind))


class MlffOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("cutoff_angstrom", ctypes.c_double),
                ("skin_angstrom", ctypes.c_double)] + [
        (name, ctypes.c_int32)
        for name in ["half", "thread_count", "want_shifts", "want_vectors", "want_distances", "want_reverse"]]


class MlffSystem(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("atom_count", ctypes.c_int64),
                ("atomic_numbers", ctypes.POINTER(ctypes.c_int32)), ("positions", ctypes.POINTER(ctypes.c_double)),
                ("cell", ctypes.POINTER(ctypes.c_double)), ("periodic", ctypes.c_uint8 * 3),
                ("total_charge", ctypes.c_double), ("spin_multiplicity", ctypes.c_double)]


class MlffView(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("atom_count", ctypes.c_int64), ("edge_count", ctypes.c_int64),
                ("first", ctypes.POINTER(ctypes.c_int64)), ("sender", ctypes.POINTER(ctypes.c_int32)),
                ("shifts", ctypes.POINTER(ctypes.c_int32)), ("vectors", ctypes.POINTER(ctypes.c_double)),
                ("distances", ctypes.POINTER(ctypes.c_double)), ("reverse", ctypes.POINTER(ctypes.c_int64)),
                ("was_reused", ctypes.c_int32)]


class Mlff:
    def __init__(self, positions, cell, arguments):
        self.library = ctypes.CDLL(str(pathlib.Path(arguments.library).resolve()))
        self.library.mlff_last_error.restype = ctypes.c_char_p
        self.handle = ctypes.c_void_p()
        options = MlffOptions(struct_size=ctypes.sizeof(MlffOptions), cutoff_angstrom=CUTOFF,
                              thread_count=arguments.threads, want_shifts=1, want_vectors=1, want_distances=1)
        self.check(self.library.mlff_neighbors_create(ctypes.byref(options), ctypes.byref(self.handle)))
        self.keep = positions, cell
        self.system = MlffSystem(struct_size=ctypes.sizeof(MlffSystem), atom_count=len(positions),
                                 positions=pointer(positions, ctypes.c_double), cell=pointer(cell, ctypes.c_double),
                                 periodic=(ctypes.c_uint8 * 3)(1, 1, 1))
        self.view = MlffView(struct_size=ctypes.sizeof(MlffView))

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.library.mlff_last_error().decode())

    def compute(self):
        self.check(self.library.mlff_neighbors_update(self.handle, ctypes.byref(self.system)))
        self.check(self.library.mlff_neighbors_get_view(self.handle, ctypes.byref(self.view)))
        return self.view.edge_count

    def edges(self):
        view, array = self.view, np.ctypeslib.as_array
        counts = np.diff(array(view.first, shape=(view.atom_count + 1,)))
        return (np.repeat(np.arange(view.atom_count), counts), array(view.sender, shape=(view.edge_count,)),
                array(view.shifts, shape=(view.edge_count, 3)), array(view.distances, shape=(view.edge_count,)))


class Vesin:
    """The C library inside the wheel: its Python layer copies distances and vectors."""

    def __init__(self, positions, cell, arguments):
        from vesin import _c_api
        from vesin._c_lib import get_library
        self.library = get_library()
        self.result = _c_api.VesinNeighborList()
        self.error = ctypes.c_char_p()
        options = _c_api.VesinOptions(cutoff=CUTOFF, full=True, sorted=False, n_threads=arguments.threads,
                                      return_shifts=True, return_distances=True, return_vectors=True)
        periodic = np.ones(3, dtype=bool)
        self.keep = positions, cell, periodic
        self.inputs = (pointer(positions, ctypes.c_double), len(positions), pointer(cell, ctypes.c_double),
                       pointer(periodic, ctypes.c_bool), _c_api.VesinDevice(_c_api.VesinCPU, 0), options,
                       ctypes.byref(self.result), self.error)

    def compute(self):
        if self.library.vesin_neighbors(*self.inputs) != 0:
            raise RuntimeError(self.error.value.decode())
        return self.result.length

    def edges(self):
        count, array = self.result.length, np.ctypeslib.as_array
        view = lambda data, kind, shape: array(ctypes.cast(data, ctypes.POINTER(kind)), shape=shape)
        pairs = view(self.result.pairs, ctypes.c_size_t, (count, 2))
        return (pairs[:, 0], pairs[:, 1], view(self.result.shifts, ctypes.c_int32, (count, 3)),
                view(self.result.distances, ctypes.c_double, (count,)))


class Matscipy:
    def __init__(self, positions, cell, arguments):
        from matscipy.neighbours import neighbour_list
        self.call = lambda: neighbour_list("ijSdD", positions=positions, cell=cell, pbc=np.ones(3, dtype=bool),
                                           cutoff=CUTOFF)

    def compute(self):
        self.result = None
        self.result = self.call()
        return len(self.result[0])

    def edges(self):
        return self.result[:4]


KINDS = {"mlff": Mlff, "vesin": Vesin, "matscipy": Matscipy}


def measure(arguments):
    positions, cell = water_box(arguments.per_edge)
    neighbors = KINDS[arguments.measure](positions, cell, arguments)
    neighbors.compute()  # warm-up: allocates
    seconds = []
    while len(seconds) < 3 or (sum(seconds) < 20 and len(seconds) < 15):
        start = time.perf_counter()
        edge_count = neighbors.compute()
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"library": arguments.measure, "atoms": len(positions), "edges": edge_count,
                      "repetitions": len(seconds), "median_s": statistics.median(seconds), "min_s": min(seconds),
                      "max_s": max(seconds)}))


def check_same_edges(arguments):
    """All libraries give the same (i, j, shift), and the same distances to rounding."""
    positions, cell = water_box(8)
    reference = None
    for name in LIBRARIES:
        neighbors = KINDS[name](positions, cell, arguments)
        neighbors.compute()
        receiver, sender, shift, distance = neighbors.edges()
        table = np.column_stack([receiver, sender, shift]).astype(np.int64)
        order = np.lexsort(table.T[::-1])
        table, distance = table[order], np.array(distance)[order]
        if reference is None:
            reference = table, distance
        elif not np.array_equal(table, reference[0]):
            raise SystemExit(f"{name} and {LIBRARIES[0]} disagree: {len(table)} and {len(reference[0])} edges")
        elif np.abs(distance - reference[1]).max() > 1e-12:
            raise SystemExit(f"{name} and {LIBRARIES[0]} disagree about distances")
    print(json.dumps({"atoms": len(positions), "edges": len(reference[0]), "identical": True}))


def run_self(arguments, *extra):
    command = [sys.executable, __file__, "--library", arguments.library, "--threads", str(arguments.threads), *extra]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def machine():
    model = ""
    try:
        listing = subprocess.run(["lscpu"], stdout=subprocess.PIPE, text=True).stdout.splitlines()
        model = next((line.split(":", 1)[1].strip() for line in listing if line.startswith("Model name")), "")
    except OSError:
        pass
    folder = pathlib.Path(__file__).parent
    commit = subprocess.run(["git", "-C", str(folder), "rev-parse", "--verify", "HEAD"], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True).stdout.strip()
    return {"processor": model, "architecture": platform.machine(), "cores": len(os.sched_getaffinity(0)),
            "system": platform.system() + " " + platform.release(), "load_before": os.getloadavg()[0],
            "python": platform.python_version(), "date": datetime.date.today().isoformat(), "commit": commit or None,
            "versions": {name: importlib.metadata.version(name) for name in ["vesin", "matscipy", "ase", "numpy"]}}


def markdown(report):
    lines = [f"Full neighbour lists of water, cutoff {CUTOFF} A, microseconds per atom: median (min ... max).", "",
             "| atoms | " + " | ".join(LIBRARIES) + " | faster than vesin | than matscipy |",
             "|--:" * (len(LIBRARIES) + 3) + "|"]
    results = {(entry["atoms"], entry["library"]): entry for entry in report["results"]}
    for atoms in sorted({atoms for atoms, _ in results}):
        cells, ratios = [], []
        ours = results[atoms, "mlff"]["median_s"]
        for name in LIBRARIES:
            entry = results.get((atoms, name))
            numbers = [1e6 * entry[key] / atoms for key in ["median_s", "min_s", "max_s"]] if entry else None
            cells.append("{:.2f} ({:.2f} ... {:.2f})".format(*numbers) if entry else "-")
            if name != "mlff":
                ratios.append(f"{entry['median_s'] / ours:.1f} x" if entry else "-")
        lines.append(f"| {atoms} | " + " | ".join(cells + ratios) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True, help="libmlff.so")
    parser.add_argument("--threads", type=int, default=2, help="for mlff and vesin; matscipy has one thread")
    parser.add_argument("--output", default=".", help="folder for neighbors.json and neighbors.md")
    parser.add_argument("--largest", type=int, default=1100000, help="leave out boxes with more atoms")
    parser.add_argument("--measure", choices=LIBRARIES, help=argparse.SUPPRESS)
    parser.add_argument("--per-edge", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        return measure(arguments)
    if arguments.check:
        return check_same_edges(arguments)

    report = {"cutoff_angstrom": CUTOFF, "threads": arguments.threads, "machine": machine(),
              "same_edges": run_self(arguments, "--check"), "results": []}
    per_atom = dict.fromkeys(LIBRARIES, 0.0)
    for per_edge in MOLECULES_PER_EDGE:
        atoms = 3 * per_edge**3
        if atoms > arguments.largest:
            continue
        for name in LIBRARIES:
            if name != "mlff" and per_atom[name] * atoms > SLOWEST_CALL:
                continue
            entry = run_self(arguments, "--measure", name, "--per-edge", str(per_edge))
            per_atom[name] = entry["median_s"] / atoms
            report["results"].append(entry)
            print(f"{name:9} {atoms:8} atoms {1e6 * per_atom[name]:8.3f} us/atom", file=sys.stderr)
    folder = pathlib.Path(arguments.output)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "neighbors.json").write_text(json.dumps(report, indent=1) + "\n")
    (folder / "neighbors.md").write_text(markdown(report))
    print(markdown(report))


if __name__ == "__main__":
    main()
