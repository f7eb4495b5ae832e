#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What it costs to be one domain of several, without the time of MPI: a periodic box of water as a domain whose ghosts are its own images, whose rows are "sent" and "received" by a
copy in memory or, on a GPU, read where they are packed, beside the same box evaluated whole.

  python3 measurements/lammps/domain.py LIBMLFF [--device cpu|cuda] [--model M] [--replicas 2,4] [--skin 0.5] [--rows host|window|shared] [--rounds 20] [--json OUT]

Needs numpy. Forces and virial are wanted. Times are medians of calls in turns; a replica of 2 is 2 x 2 x 2 boxes of 192 atoms. Energies and forces of both ways are compared.
"""
import argparse
import ctypes
import json
import os
import statistics
import sys
import time

import numpy

import halo

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native

ROWS = {"host": 0, "shared": 2, "window": 3}  # mlff_row_transport


def with_images(positions, length, reach):
    """Positions with images behind them, and which atom each of these is an image of."""
    wrapped = positions % length
    images, owners = [], []
    for shift in [(i, j, k) for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1) if (i, j, k) != (0, 0, 0)]:
        moved = wrapped + length * numpy.array(shift)
        near = ((moved > -reach) & (moved < length + reach)).all(axis=1).nonzero()[0]
        images.append(moved[near])
        owners.append(near)
    return numpy.concatenate([wrapped, *images]), numpy.concatenate(owners)


def candidates(positions, own_count, reach):
    """first and neighbors of the first atoms, by bins of the size of the reach."""
    bins = numpy.floor((positions - positions.min(axis=0)) / reach).astype(int) + 1
    counts = bins.max(axis=0) + 2
    flat = (bins[:, 0] * counts[1] + bins[:, 1]) * counts[2] + bins[:, 2]
    order = numpy.argsort(flat, kind="stable")
    starts = numpy.searchsorted(flat[order], numpy.arange(counts.prod() + 1))
    around = [(i * counts[1] + j) * counts[2] + k for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1)]
    rows = []
    for atom in range(own_count):
        near = numpy.concatenate([order[starts[flat[atom] + step]: starts[flat[atom] + step + 1]] for step in around])
        squared = ((positions[near] - positions[atom]) ** 2).sum(axis=1)
        rows.append(near[(squared < reach * reach) & (near != atom)])
    return numpy.cumsum([0] + [len(row) for row in rows]).astype(numpy.int64), numpy.concatenate(rows).astype(numpy.int32)


def measure(library, replica, skin, rows, rounds):
    numbers, positions, length = halo.water(replica)
    numbers, positions = numpy.array(numbers, numpy.int32), numpy.array(positions)
    own = len(numbers)
    all_positions, owners = with_images(positions, length, library.cutoff + skin)
    first, neighbors = candidates(all_positions, own, library.cutoff + skin)
    used = numpy.unique(neighbors[neighbors >= own])  # ghosts that are nobody's neighbours are left out
    place = numpy.concatenate([numpy.arange(own), numpy.zeros(len(owners), int)])
    place[used] = own + numpy.arange(len(used))
    neighbors = place[neighbors].astype(numpy.int32)
    all_positions = numpy.ascontiguousarray(all_positions[numpy.concatenate([numpy.arange(own), used])])
    owners = owners[used - own].astype(numpy.int32)
    all_numbers = numpy.concatenate([numbers, numbers[owners]]).astype(numpy.int32)
    source = numpy.arange(len(owners), dtype=numpy.int32)
    exchanged = []

    def exchange(sent, received, row_bytes, _user_data):
        begin = time.perf_counter()
        ctypes.memmove(received, sent, len(owners) * row_bytes)
        exchanged.append((row_bytes, time.perf_counter() - begin))
        return 0

    at = lambda array: array.ctypes.data
    wrapped = numpy.ascontiguousarray(all_positions[:own])
    cell = numpy.diag([length] * 3).astype(float)
    energies, virials = numpy.zeros(2), numpy.zeros((2, 9))
    whole_forces, forces = numpy.zeros((own, 3)), numpy.zeros((len(all_numbers), 3))
    system = halo.System(ctypes.sizeof(halo.System), own, at(numbers), at(wrapped), at(cell), (1, 1, 1))
    whole = halo.Result(ctypes.sizeof(halo.Result), at(energies), at(whole_forces), None, at(virials))
    part = halo.Result(ctypes.sizeof(halo.Result), at(energies) + 8, at(forces), None, at(virials) + 72)
    function = halo.ExchangeRows(exchange)
    domain = halo.Domain(ctypes.sizeof(halo.Domain), own, len(owners), at(all_numbers), at(all_positions), at(first), at(neighbors), len(owners), at(owners), len(owners), at(source), function)
    domain.list_version, domain.row_transport, domain.exchange_back = replica, ROWS[rows], function  # one row for each ghost in both directions
    times = {"whole": [], "domain": []}
    for _ in range(rounds + 3):
        for name, call, *arguments in (("whole", "session_evaluate", system, whole), ("domain", "session_evaluate_domain", domain, part)):
            exchanged.clear()
            calls = 2 if name == "domain" else 1  # the first after a whole system brings its list there
            for _ in range(calls):
                begin = time.perf_counter()
                library.call(call, library.session, *(ctypes.byref(argument) for argument in arguments))
                elapsed = time.perf_counter() - begin
                count = len(exchanged)
            times[name].append(elapsed)
    numpy.add.at(forces, owners, forces[own:])
    error = numpy.abs(forces[:own] - whole_forces).max()
    exchanged = exchanged[count // 2:]
    return {"atoms": own, "ghosts": len(owners), "candidates": len(neighbors), "exchanges": len(exchanged), "row_bytes": [row for row, _ in exchanged],
            "whole_ms": 1e3 * statistics.median(times["whole"][3:]), "domain_ms": 1e3 * statistics.median(times["domain"][3:]),
            "copies_ms": 1e3 * sum(seconds for _, seconds in exchanged), "energy_error": float(abs(energies[1] - energies[0])), "force_error": float(error)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--model", default="builtin")
    parser.add_argument("--precision", default="mixed", choices=["mixed", "fp64"])
    parser.add_argument("--replicas", default="2,4")
    parser.add_argument("--skin", type=float, default=0.5, help="angstrom, of the domain's list")
    parser.add_argument("--rows", default="host", choices=ROWS)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json")
    options = parser.parse_args()
    library = halo.Library(options.library, options.model, options.precision, options.device)
    results = []
    for replica in (int(n) for n in options.replicas.split(",")):
        found = measure(library, replica, options.skin, options.rows, options.rounds)
        results.append(found)
        print("%7d atoms, %6d ghosts: whole %.3f ms, domain %.3f ms (%.2f of it), of which %.3f ms are copies for %d exchanges of %s bytes; largest difference of a force %.1e eV/A" % (
            found["atoms"], found["ghosts"], found["whole_ms"], found["domain_ms"], found["domain_ms"] / found["whole_ms"], found["copies_ms"], found["exchanges"],
            "/".join(map(str, found["row_bytes"])), found["force_error"]), flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"model": options.model, "device": options.device, "precision": options.precision, "skin": options.skin, "rows": options.rows,
                       "gpu": native.gpu_state() if options.device.startswith("cuda") else {}, "results": results}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
