#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What domains cost in processes of their own, without MPI: a periodic box of water cut into bricks, one process for each, all on one GPU (or on CPUs). Rows go from process to process by copies in
memory (host), through pinned host memory that the processes share (window), or are read in the memory of the GPU (shared).

  python3 measurements/lammps/processes.py LIBMLFF [--device cuda|cpu] [--model M] [--precision mixed|fp64] [--replicas 6] [--processes 2,4] [--rows host,window,shared] [--back on|off] [--skin 0.5] [--rounds 20] [--json OUT]

Needs numpy. Forces and virial are wanted. The time of a round is that from the first process that begins to the last one that ends; medians. Forces are compared with those of the whole box; those
of all rounds and of all ways of the rows must be the same to the last bit. Exit status 1: they are not.
"""
import argparse
import ctypes
import json
import math
import mmap
import os
import statistics
import sys
import time
import traceback

import numpy

import domain
import halo

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native

ROWS = {"host": 0, "shared": 2, "window": 3}  # mlff_row_transport
MOST_ROW_BYTES = 16384


class Address(ctypes.Structure):
    _fields_ = [("size", halo.SIZE), ("bytes", ctypes.c_ubyte * 128)]


def in_process(action):
    """What an action returns, as JSON, from a process of its own: (its id, where to read)."""
    read, write = os.pipe()
    process = os.fork()
    if process:
        os.close(write)
        return process, read
    os.close(read)
    try:
        answer = action()
    except SystemExit as error:  # of the library
        answer = {"error": str(error)}
    except Exception as error:
        traceback.print_exc()
        answer = {"error": repr(error)}
    with os.fdopen(write, "w") as file:
        json.dump(answer, file)
    os._exit(0)


def answers(actions, limit_s):
    """Of processes that run at the same time. One that fails, or is late, ends all."""
    import select
    started = [in_process(action) for action in actions]
    waiting, found, end = {read: place for place, (_, read) in enumerate(started)}, [b""] * len(started), time.monotonic() + limit_s
    failure = None
    while waiting and not failure:
        ready = select.select(list(waiting), [], [], max(0.0, end - time.monotonic()))[0]
        if not ready:
            failure = "no answer within %d s" % limit_s
        for read in ready:
            data = os.read(read, 1 << 16)
            found[waiting[read]] += data
            if not data:
                text = found[waiting.pop(read)].decode()
                failure = failure or (json.loads(text).get("error") if text else "a process ended")
    for process, read in started:
        if failure:
            os.kill(process, 9)
        os.waitpid(process, 0)
        os.close(read)
    return {"error": failure} if failure else [json.loads(text) for text in found]


def cut(numbers, positions, length, count, reach):
    """The bricks: own atoms, ghosts, neighbours, and who sends what to whom."""
    grid = numpy.array(halo.brick_grid(count))
    wrapped = positions % length
    everything, owners = domain.with_images(positions, length, reach)
    whole = numpy.concatenate([numpy.arange(len(numbers)), owners])
    cells = numpy.minimum((wrapped / length * grid).astype(int), grid - 1)
    brick_of = (cells[:, 0] * grid[1] + cells[:, 1]) * grid[2] + cells[:, 2]
    place = numpy.zeros(len(numbers), int)
    parts = []
    for brick in range(count):
        own = (brick_of == brick).nonzero()[0]
        place[own] = numpy.arange(len(own))
        at = numpy.array(numpy.unravel_index(brick, grid))
        low, high = at * length / grid - reach, (at + 1) * length / grid + reach
        is_near = ((everything > low) & (everything < high)).all(axis=1)
        is_near[own] = False
        near = is_near.nonzero()[0]
        local = numpy.concatenate([own, near])
        first, neighbors = domain.candidates(everything[local], len(own), reach)
        used = numpy.unique(neighbors[neighbors >= len(own)])
        new = numpy.concatenate([numpy.arange(len(own)), numpy.zeros(len(near), int)])
        new[used] = len(own) + numpy.arange(len(used))
        kept = numpy.concatenate([local[: len(own)], local[used]])
        parts.append({"own": own, "first": first, "neighbors": new[neighbors].astype(numpy.int32), "positions": numpy.ascontiguousarray(everything[kept]), "whole": whole[kept],
                      "numbers": numbers[whole[kept]].astype(numpy.int32), "sent": [None] * count})
    for brick, part in enumerate(parts):
        ghosts = part["whole"][len(part["own"]):]
        source, received = numpy.zeros(len(ghosts), int), 0
        for other in range(count):
            from_other = brick_of[ghosts] == other
            if other == brick:
                source[from_other] = -1 - place[ghosts[from_other]]
                parts[other]["sent"][brick] = numpy.zeros(0, int)
                continue
            wanted, row = numpy.unique(place[ghosts[from_other]], return_inverse=True)
            parts[other]["sent"][brick] = wanted
            source[from_other] = received + row
            received += len(wanted)
        part["source"], part["received"] = source.astype(numpy.int32), received
    return parts


class Post:
    """Memory of all processes: how often each has come here, two boxes of mail for each, and results."""

    def __init__(self, parts, atoms, rounds):
        self.count = len(parts)
        self.room = [max(sum(map(len, part["sent"])), part["received"]) * MOST_ROW_BYTES + 4096 for part in parts]
        self.starts = numpy.concatenate([[1 << 16], (1 << 16) + 2 * numpy.cumsum(self.room)]).astype(int)
        # Pages that nobody writes to take no memory.
        self.memory = mmap.mmap(-1, int(self.starts[-1]))
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.visits = numpy.frombuffer(self.memory, numpy.int64, 8 * self.count)[::8]
        self.forces = [numpy.frombuffer(mmap.mmap(-1, 24 * max(1, len(part["numbers"]))), float)[: 3 * len(part["numbers"])] for part in parts]

    def meet(self, own):
        visit = self.visits[own] + 1
        self.visits[own] = visit
        while self.visits.min() < visit:
            os.sched_yield()
        return visit

    def box(self, owner, visit):
        return self.address + int(self.starts[owner]) + int(visit % 2) * self.room[owner]


def evaluate_part(options, rows, parts, own, post):
    """In a process of its own."""
    part, at = parts[own], lambda array: array.ctypes.data
    library = halo.Library(options.library, options.model, options.precision, options.device)
    sent = numpy.concatenate(part["sent"]).astype(numpy.int32)
    offsets = [sum(len(parts[other]["sent"][k]) for k in range(own)) for other in range(len(parts))]
    counts = [len(parts[other]["sent"][own]) for other in range(len(parts))]
    exchanged = []

    # Back: rows received from others lie by owner, and go to where they were sent from.
    back_counts = [len(part["sent"][other]) for other in range(len(parts))]
    back_offsets = [sum(len(parts[k]["sent"][other]) for k in range(own)) for other in range(len(parts))]

    def move(from_here, to_here, row_bytes, given, offsets, counts):
        begin = time.perf_counter()
        if row_bytes > MOST_ROW_BYTES:
            return 1
        if given:
            ctypes.memmove(post.box(own, post.visits[own] + 1), from_here, given * row_bytes)
        visit, row = post.meet(own), 0
        for other, count in enumerate(counts):
            if count:
                ctypes.memmove(to_here + row * row_bytes, post.box(other, visit) + offsets[other] * row_bytes, count * row_bytes)
            row += count
        exchanged.append((row_bytes, time.perf_counter() - begin))
        return 0

    def exchange(from_here, to_here, row_bytes, _user_data):
        return move(from_here, to_here, row_bytes, len(sent), offsets, counts)

    def exchange_back(from_here, to_here, row_bytes, _user_data):
        return move(from_here, to_here, row_bytes, part["received"], back_offsets, back_counts)

    def all_reach():
        """'' if this process reaches the memory of all others."""
        addresses = numpy.frombuffer(post.memory, numpy.uint8, 256 * len(parts), 4096).reshape(len(parts), 256)
        address = Address(ctypes.sizeof(Address))
        library.call("session_get_gpu_address" if rows == "shared" else "session_get_window_address", library.session, ctypes.byref(address))
        addresses[own, : ctypes.sizeof(Address)] = numpy.frombuffer(bytes(address), numpy.uint8)
        post.meet(own)
        for other in range(len(parts)):
            their = Address.from_buffer_copy(addresses[other, : ctypes.sizeof(Address)].tobytes())
            library.call("session_reach_gpu", library.session, ctypes.byref(their))
        post.meet(own)

    if rows != "host":
        all_reach()
    forces, energy, virial = numpy.zeros((len(part["numbers"]), 3)), numpy.zeros(1), numpy.zeros(9)
    function, back = halo.ExchangeRows(exchange), halo.ExchangeRows(exchange_back)
    piece = halo.Domain(ctypes.sizeof(halo.Domain), len(part["own"]), len(part["source"]), at(part["numbers"]), at(part["positions"]), at(part["first"]), at(part["neighbors"]), len(sent), at(sent),
                        part["received"], at(part["source"]), function)
    piece.list_version, piece.row_transport = 1, ROWS[rows]
    if options.back == "on":
        piece.exchange_back = back
    result = halo.Result(ctypes.sizeof(halo.Result), at(energy), at(forces), None, at(virial))
    begins, ends, is_same = [], [], True
    for round_number in range(options.rounds + 3):
        post.meet(own)
        exchanged.clear()
        begins.append(time.perf_counter())
        library.call("session_evaluate_domain", library.session, ctypes.byref(piece), ctypes.byref(result))
        ends.append(time.perf_counter())
        if round_number == 0:
            post.forces[own][:] = forces.ravel()
        is_same = is_same and bool((post.forces[own] == forces.ravel()).all())
    post.meet(own)
    return {"begins": begins, "ends": ends, "energy": float(energy[0]), "is_same": is_same, "row_bytes": [size for size, _ in exchanged], "in_exchange_ms": 1e3 * sum(seconds for _, seconds in exchanged)}


def evaluate_whole(options, numbers, positions, length, forces):
    library, at = halo.Library(options.library, options.model, options.precision, options.device), lambda array: array.ctypes.data
    energy, virial, own = numpy.zeros(1), numpy.zeros(9), numpy.zeros((len(numbers), 3))
    cell = numpy.diag([length] * 3).astype(float)
    system = halo.System(ctypes.sizeof(halo.System), len(numbers), at(numbers), at(positions), at(cell), (1, 1, 1))
    result = halo.Result(ctypes.sizeof(halo.Result), at(energy), at(own), None, at(virial))
    times = []
    for _ in range(options.rounds + 3):
        begin = time.perf_counter()
        library.call("session_evaluate", library.session, ctypes.byref(system), ctypes.byref(result))
        times.append(time.perf_counter() - begin)
    forces[:] = own
    return {"ms": 1e3 * statistics.median(times[3:]), "energy": float(energy[0])}


def cutoff_of(options):
    return {"cutoff": halo.Library(options.library, options.model, options.precision, options.device).cutoff}


def measure(options, replica):
    numbers, positions, length = halo.water(replica)
    numbers, positions = numpy.array(numbers, numpy.int32), numpy.array(positions)
    whole_forces = numpy.frombuffer(mmap.mmap(-1, 24 * len(numbers)), float).reshape(-1, 3)
    # Nothing of CUDA may be started in the process that forks.
    facts = answers([lambda: {**cutoff_of(options), **evaluate_whole(options, numbers, positions, length, whole_forces)}], options.limit)
    if isinstance(facts, dict):
        raise SystemExit("processes.py: " + facts["error"])
    facts = facts[0]
    print("%d atoms: whole %.3f ms" % (len(numbers), facts["ms"]), flush=True)
    found = {"atoms": len(numbers), "whole_ms": facts["ms"], "cuts": []}
    for count in map(int, options.processes.split(",")):
        parts, kept = cut(numbers, positions, length, count, facts["cutoff"] + options.skin), None
        for rows in options.rows.split(","):
            post = Post(parts, len(numbers), options.rounds)
            results = answers([lambda own=own: evaluate_part(options, rows, parts, own, post) for own in range(count)], options.limit)
            entry = {"processes": count, "rows": rows, "ghosts": [len(part["source"]) for part in parts], "received": [int(part["received"]) for part in parts]}
            found["cuts"].append(entry)
            if isinstance(results, dict):
                entry["error"] = results["error"]
                print("  %d processes, rows %s: %s" % (count, rows, results["error"]), flush=True)
                continue
            forces = numpy.zeros((len(numbers), 3))
            for part, own in zip(parts, post.forces):
                numpy.add.at(forces, part["whole"], own.reshape(-1, 3))
            rounds = [max(ends) - min(begins) for begins, ends in zip(zip(*(r["begins"] for r in results)), zip(*(r["ends"] for r in results)))][3:]
            entry.update(ms=1e3 * statistics.median(rounds), least_ms=1e3 * min(rounds), most_ms=1e3 * max(rounds), row_bytes=results[0]["row_bytes"], in_exchange_ms=[r["in_exchange_ms"] for r in results],
                         energy_error=abs(sum(r["energy"] for r in results) - facts["energy"]), force_error=float(numpy.abs(forces - whole_forces).max()),
                         is_reproducible=all(r["is_same"] for r in results), is_as_first=kept is None or all((a == b).all() for a, b in zip(kept, post.forces)))
            kept = kept or [own.copy() for own in post.forces]
            print("  %d processes, rows %-6s %.3f ms (%.3f to %.3f), %s ghosts, largest difference of a force %.1e eV/A%s%s" % (
                count, rows + ":", entry["ms"], entry["least_ms"], entry["most_ms"], "/".join(map(str, entry["ghosts"])), entry["force_error"],
                "" if entry["is_reproducible"] else ", ROUNDS DIFFER", "" if entry["is_as_first"] else ", OTHER FORCES THAN WITH THE FIRST ROWS"), flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--model", default="builtin")
    parser.add_argument("--precision", default="mixed", choices=["mixed", "fp64"])
    parser.add_argument("--replicas", default="6")
    parser.add_argument("--processes", default="2,4")
    parser.add_argument("--rows", default="host,window,shared")
    parser.add_argument("--back", default="on", choices=["on", "off"], help="whether rows of ghosts can return to the owners of the atoms")
    parser.add_argument("--skin", type=float, default=0.5, help="angstrom, of the domains' lists")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--limit", type=float, default=120, help="seconds for one cut")
    parser.add_argument("--json")
    options = parser.parse_args()
    results = [measure(options, int(n)) for n in options.replicas.split(",")]
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"model": options.model, "device": options.device, "precision": options.precision, "skin": options.skin, "rounds": options.rounds, "back": options.back, "cores": os.cpu_count(),
                       "gpu": native.gpu_state() if options.device.startswith("cuda") else {}, "results": results}, file, indent=1)
            file.write("\n")
    tolerance = 1e-3 if options.precision == "mixed" else 1e-8
    return int(any("error" not in cut and not (cut["is_reproducible"] and cut["is_as_first"] and math.isfinite(cut["force_error"]) and cut["force_error"] <= tolerance) for found in results for cut in found["cuts"]))


if __name__ == "__main__":
    sys.exit(main())
