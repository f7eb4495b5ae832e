#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What several MPI ranks exchange in a step against what they compute: a model of weak and strong scaling.

  python3 measurements/lammps/halo.py LIBMLFF [--device cpu|cuda] [--model M] [--precision mixed|fp64] [--per-rank N | --total N] [--latency-us T] [--bandwidth GB/S] [--copy GB/S]

Exchanges, bytes and the time of an atom are those of the library: it evaluates a domain of two atoms, and a box of water, on one thread or on a GPU. The rest is geometry: a
cubic box of water cut into equal bricks, as many in x, y and z as keeps them compact. A rank receives every atom of others within the cutoff and the skin of its brick, once.
Rows are packed, sent, received and copied to ghosts; ranks wait for each other in no other way.
"""
import argparse
import ctypes
import math
import pathlib
import time

SYSTEMS = pathlib.Path(__file__).resolve().parents[2] / "src" / "tools" / "validate" / "systems"
DENSITY = 192 / 12.4172**3  # atoms in a cubic angstrom of water
SIZE, POINTER = ctypes.c_size_t, ctypes.c_void_p


def water(repeat):
    """Numbers, positions and length of the box: that of the validation, so often in each direction."""
    lines = (SYSTEMS / "water_box.xyz").read_text().splitlines()[2:]
    length = 12.4172
    shifts = [(i, j, k) for i in range(repeat) for j in range(repeat) for k in range(repeat)]
    atoms = [(8 if line[0] == "O" else 1, [float(x) + s * length for x, s in zip(line.split()[1:4], shift)]) for shift in shifts for line in lines]
    return [number for number, _ in atoms], [position for _, position in atoms], repeat * length


class Options(ctypes.Structure):
    _fields_ = [("size", SIZE), ("device", ctypes.c_char_p), ("precision", ctypes.c_int32), ("threads", ctypes.c_int32), ("head", ctypes.c_char_p), ("skin", ctypes.c_double),
                ("exact", ctypes.c_int32), ("limit", ctypes.c_int64)]


class Info(ctypes.Structure):
    _fields_ = [("size", SIZE), ("cutoff", ctypes.c_double), ("layers", ctypes.c_int32), ("elements", ctypes.c_int32), ("heads", ctypes.c_int32), ("dtype", ctypes.c_int32),
                ("parameters", ctypes.c_int64), ("runnable", ctypes.c_int32), ("descriptors", ctypes.c_int32)]


class System(ctypes.Structure):
    _fields_ = [("size", SIZE), ("count", ctypes.c_int64), ("numbers", POINTER), ("positions", POINTER), ("cell", POINTER), ("periodic", ctypes.c_uint8 * 3), ("charge", ctypes.c_double),
                ("spin", ctypes.c_double)]


class Result(ctypes.Structure):
    _fields_ = [("size", SIZE)] + [(name, POINTER) for name in ("energy", "forces", "stress", "virial", "atom_energies", "atom_virials", "descriptors")]


ExchangeRows = ctypes.CFUNCTYPE(ctypes.c_int32, POINTER, POINTER, SIZE, POINTER)


class Domain(ctypes.Structure):
    _fields_ = [("size", SIZE), ("owned", ctypes.c_int64), ("ghosts", ctypes.c_int64), ("numbers", POINTER), ("positions", POINTER), ("first", POINTER), ("neighbors", POINTER),
                ("sent_count", ctypes.c_int64), ("sent", POINTER), ("received_count", ctypes.c_int64), ("ghost_source", POINTER), ("exchange", ExchangeRows), ("user_data", POINTER),
                ("charge", ctypes.c_double), ("spin", ctypes.c_double), ("list_version", ctypes.c_int64), ("row_transport", ctypes.c_int32), ("cell", POINTER), ("periodic", ctypes.c_uint8 * 3), ("exchange_back", ExchangeRows)]


class Library:
    def __init__(self, path, model, precision, device="cpu"):
        self.library = ctypes.CDLL(path)
        self.library.mlff_last_error.restype = ctypes.c_char_p
        self.model, self.session = POINTER(), POINTER()
        self.call("model_load", model.encode(), ctypes.byref(self.model))
        info = Info(ctypes.sizeof(Info))
        self.call("model_get_info", self.model, ctypes.byref(info))
        self.cutoff = info.cutoff
        options = Options(ctypes.sizeof(Options), device.encode(), {"mixed": 1, "fp64": 2}[precision], 1)
        self.call("session_create", self.model, ctypes.byref(options), ctypes.byref(self.session))

    def call(self, name, *arguments):
        if getattr(self.library, "mlff_" + name)(*arguments) != 0:
            raise SystemExit("halo.py: " + self.library.mlff_last_error().decode())

    def exchanges(self):
        """(number, bytes of an atom in all) of the exchanges of a step"""
        found = []

        def exchange(_sent, received, row_bytes, _user_data):
            ctypes.memset(received, 0, row_bytes)
            found.append(row_bytes)
            return 0

        def exchange_back(_sent, _received, row_bytes, _user_data):
            found.append(row_bytes)
            return 0

        numbers, positions, first, neighbors = (ctypes.c_int32 * 2)(8, 1), (ctypes.c_double * 6)(0, 0, 0, 1, 0, 0), (ctypes.c_int64 * 2)(0, 1), (ctypes.c_int32 * 1)(1)
        ghost_source = (ctypes.c_int32 * 1)(0)
        forces, at = (ctypes.c_double * 6)(), ctypes.addressof
        domain = Domain(ctypes.sizeof(Domain), 1, 1, at(numbers), at(positions), at(first), at(neighbors), 0, None, 1, at(ghost_source), ExchangeRows(exchange))
        domain.exchange_back = ExchangeRows(exchange_back)
        result = Result(ctypes.sizeof(Result), None, at(forces))
        self.call("session_evaluate_domain", self.session, ctypes.byref(domain), ctypes.byref(result))
        return len(found), sum(found)

    def seconds_of_atom(self, repeat, clock):
        water_numbers, water_positions, length = water(repeat)
        count = len(water_numbers)
        numbers = (ctypes.c_int32 * count)(*water_numbers)
        positions = (ctypes.c_double * (3 * count))(*(x for position in water_positions for x in position))
        cell = (ctypes.c_double * 9)(*(length if i % 4 == 0 else 0.0 for i in range(9)))
        forces, at = (ctypes.c_double * (3 * count))(), ctypes.addressof
        system = System(ctypes.sizeof(System), count, at(numbers), at(positions), at(cell), (1, 1, 1))
        result = Result(ctypes.sizeof(Result), None, at(forces))
        times = []
        for _ in range(4):
            begin = clock()
            self.call("session_evaluate", self.session, ctypes.byref(system), ctypes.byref(result))
            times.append(clock() - begin)
        return min(times) / count


def brick_grid(ranks):
    """The most compact px * py * pz = ranks"""
    grids = [(x, y, ranks // x // y) for x in range(1, ranks + 1) if ranks % x == 0 for y in range(1, ranks // x + 1) if ranks // x % y == 0]
    return min(grids, key=lambda g: (1 / g[0] / g[1] + 1 / g[1] / g[2] + 1 / g[2] / g[0], g))


def received_atoms(grid, box, reach):
    """Atoms of other ranks that are nearer to a brick than `reach`: beside its faces, edges and corners. In a direction without a cut, images are the rank's own."""
    cut = [box / count for count in grid if count > 1]
    through = box ** (3 - len(cut))
    own, largest = math.prod(cut), math.prod(min(box, length + 2 * reach) for length in cut)  # small boxes: no atom comes twice
    faces = 2 * reach * sum(own / length for length in cut)
    edges = {0: 0.0, 1: 0.0, 2: 1.0, 3: sum(cut)}[len(cut)] * math.pi * reach**2
    corners = 4 / 3 * math.pi * reach**3 if len(cut) == 3 else 0.0
    return DENSITY * through * min(faces + edges + corners, largest - own)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--model", default="builtin")
    parser.add_argument("--precision", default="mixed", choices=["mixed", "fp64"])
    parser.add_argument("--per-rank", type=int, default=2000, help="atoms of a rank: weak scaling")
    parser.add_argument("--total", type=int, help="atoms of the system: strong scaling")
    parser.add_argument("--skin", type=float, default=0.5, help="angstrom")
    parser.add_argument("--latency-us", type=float, default=2.0, help="of a message")
    parser.add_argument("--bandwidth", type=float, default=1.0, help="GB/s of a rank's link to others")
    parser.add_argument("--copy", type=float, default=4.0, help="GB/s of a rank's copies in memory")
    options = parser.parse_args()
    library = Library(options.library, options.model, options.precision, options.device)
    exchange_count, atom_bytes = library.exchanges()
    is_gpu = options.device == "cuda"
    seconds_of_atom = library.seconds_of_atom(6, time.perf_counter) if is_gpu else library.seconds_of_atom(2, time.process_time)  # a GPU wants enough atoms
    print(f"{options.model}, {options.precision}: {exchange_count} exchanges and {atom_bytes} bytes per ghost in a step, {1e6 * seconds_of_atom:.2f} us{'' if is_gpu else ' of CPU time'} per atom\n")
    print("| ranks | grid | atoms | of a rank | received | MB | compute, ms | exchange, ms | efficiency |\n|--:|:-:|--:|--:|--:|--:|--:|--:|--:|")
    for ranks in (1, 2, 4, 8, 64, 512, 1024):
        atoms = options.total or options.per_rank * ranks
        grid, box = brick_grid(ranks), (atoms / DENSITY) ** (1 / 3)
        received = received_atoms(grid, box, library.cutoff + options.skin)
        neighbor_count = 1
        for count in grid:
            neighbor_count *= min(3, count)
        megabytes = received * atom_bytes / 1e6
        work = atoms / ranks * seconds_of_atom
        exchange = 1e-6 * options.latency_us * exchange_count * (neighbor_count - 1) + megabytes / 1e3 * (1 / options.bandwidth + 3 / options.copy)
        print(f"| {ranks:,} | {'x'.join(map(str, grid))} | {atoms:,} | {atoms / ranks:,.0f} | {received:,.0f} | {megabytes:.1f} | {1e3 * work:.{1 if is_gpu else 0}f} | {1e3 * exchange:.1f} | {work / (work + exchange):.1%} |")


if __name__ == "__main__":
    main()
