# SPDX-License-Identifier: MIT
"""The energy of docs/painn.md in plain Python, written from that page alone: slow, and independent of every other implementation."""
import json
import math
import struct


def read_model(path):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        code = {"F32": "f", "F64": "d", "I64": "q"}[entry["dtype"]]
        flat = struct.unpack(f"<{(end - begin) // struct.calcsize(code)}{code}", data[begin:end])
        shape = entry["shape"]
        tensors[name] = [flat[row * shape[1]:(row + 1) * shape[1]] for row in range(shape[0])] if len(shape) == 2 else list(flat)
    return json.loads(metadata["config"]), tensors


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def linear(model, name, vector):
    return [a + b for a, b in zip(times(model[name + ".weight"], vector), model[name + ".bias"])]


def silu(vector):
    return [x / (1 + math.exp(-x)) for x in vector]


def neighbours(positions, cell, cutoff):
    """(receiver, sender, vector) of all edges; every image within two cells is looked at."""
    shifts = [[0, 0, 0]] if cell is None else [[a, b, c] for a in range(-2, 3) for b in range(-2, 3) for c in range(-2, 3)]
    edges = []
    for i, xi in enumerate(positions):
        for j, xj in enumerate(positions):
            for shift in shifts:
                r = [xj[k] - xi[k] + (sum(shift[m] * cell[m][k] for m in range(3)) if cell else 0) for k in range(3)]
                if (i != j or any(shift)) and math.hypot(*r) < cutoff:
                    edges.append((i, j, r))
    return edges


def repulsion(za, zb, radii, d):
    t = d / radii
    if t >= 1:
        return 0.0
    length = 0.8854 * 0.529177210903 / (za**0.23 + zb**0.23)
    screen = sum(a * math.exp(-b * d / length) for a, b in zip((0.18175, 0.50986, 0.28022, 0.02817), (3.19980, 0.94229, 0.40290, 0.20162)))
    return 14.3996454784255 * za * zb / d * screen * (1 - 10 * t**3 + 15 * t**4 - 6 * t**5)


def seen(closest, d):
    """What the network sees of a distance shorter than any it was trained on."""
    if d >= closest:
        return d
    w = 0.3 * closest
    x = min(1.0, (closest - d) / w)
    return closest - w * (x - x**3 + x**4 / 2)


def energy(path, numbers, positions, cell=None):
    config, model = read_model(path)
    F, R, c = config["hidden"], config["radial"], config["cutoff"]
    element = [model["atomic_numbers"].index(z) for z in numbers]
    edges = neighbours(positions, cell, c)
    atoms = range(len(numbers))
    s = [list(model["embedding"][e]) for e in element]
    v = [[[0.0] * F for _ in range(3)] for _ in atoms]
    for b in range(config["blocks"]):
        block = f"blocks.{b}."
        phi = [linear(model, block + "message.output", silu(linear(model, block + "message.hidden", s[j]))) for j in atoms]
        new_s, new_v = [list(row) for row in s], [[list(row) for row in rows] for rows in v]
        for i, j, r in edges:
            d = math.hypot(*r)
            q = seen(model["closest"][element[i]][element[j]], d) if "closest" in model else d
            basis = [math.sin(n * math.pi * q / c) / q for n in range(1, R + 1)]
            fade = (1 + math.cos(math.pi * q / c)) / 2
            x = [p * w * fade for p, w in zip(phi[j], linear(model, block + "filter", basis))]
            for f in range(F):
                new_s[i][f] += x[f]
                for k in range(3):
                    new_v[i][k][f] += x[F + f] * v[j][k][f] + x[2 * F + f] * r[k] / d
        s, v = new_s, new_v
        for i in atoms:
            mixed = [times(model[block + "update.mix.weight"], v[i][k]) for k in range(3)]
            U, V = [row[:F] for row in mixed], [row[F:] for row in mixed]
            n = [math.sqrt(sum(V[k][f] ** 2 for k in range(3)) + 1e-8) for f in range(F)]
            a = linear(model, block + "update.output", silu(linear(model, block + "update.hidden", s[i] + n)))
            for f in range(F):
                s[i][f] += a[f] + a[F + f] * sum(U[k][f] * V[k][f] for k in range(3))
                for k in range(3):
                    v[i][k][f] += a[2 * F + f] * U[k][f]
    total = 0.0
    for i in atoms:
        (out,) = linear(model, "readout.output", silu(linear(model, "readout.hidden", s[i])))
        total += model["atomic_energies"][element[i]] + model["scales"][element[i]] * out
    if "repulsion_radii" in model:
        radius = [model["repulsion_radii"][e] for e in element]
        total += sum(0.5 * repulsion(numbers[i], numbers[j], radius[i] + radius[j], math.hypot(*r)) for i, j, r in edges)
    return total
