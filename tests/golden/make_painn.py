#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goldens of PaiNN: docs/painn.md in PyTorch, float64, with autograd, written without looking at the C++.

    python make_painn.py [OUT_DIR]        (needs torch and numpy; writes tests/golden/painn by default)

Each NAME.safetensors is a small random model; NAME.json has systems and what the model says of them: energy, forces,
virial = -dE/dstrain, energies of atoms, last scalars (descriptors).
"""
import json
import math
import pathlib
import struct
import sys

import numpy as np
import torch

torch.set_default_dtype(torch.float64)
ANGSTROM_EV = 14.3996454784255
BOHR = 0.529177210903


# ---- models ----

def make_model(seed, hidden, blocks, radial, cutoff, numbers, radii, dtype):
    generator = torch.Generator().manual_seed(seed)
    normal = lambda *shape: torch.randn(*shape, generator=generator)
    tensors = {
        "atomic_numbers": torch.tensor(numbers, dtype=torch.int64),
        "atomic_energies": -5 * torch.rand(len(numbers), generator=generator) - 10,
        "scales": 0.5 + torch.rand(len(numbers), generator=generator),
        "embedding": normal(len(numbers), hidden).to(dtype),
    }
    if radii:
        tensors["repulsion_radii"] = torch.tensor(radii)

    def linear(name, inputs, outputs, bias=True, gain=1.0):
        tensors[name + ".weight"] = (gain * normal(outputs, inputs) / math.sqrt(inputs)).to(dtype)
        if bias:
            tensors[name + ".bias"] = (0.3 * normal(outputs)).to(dtype)

    for b in range(blocks):
        linear(f"blocks.{b}.filter", radial, 3 * hidden, gain=0.3)
        linear(f"blocks.{b}.message.hidden", hidden, hidden)
        linear(f"blocks.{b}.message.output", hidden, 3 * hidden)
        linear(f"blocks.{b}.update.mix", hidden, 2 * hidden, bias=False)
        linear(f"blocks.{b}.update.hidden", 2 * hidden, hidden)
        linear(f"blocks.{b}.update.output", hidden, 3 * hidden)
    linear("readout.hidden", hidden, hidden // 2)
    linear("readout.output", hidden // 2, 1)
    config = {"hidden": hidden, "blocks": blocks, "radial": radial, "cutoff": cutoff}
    card = {"name": f"random {seed}", "teacher": "none", "data": "none", "elements": numbers, "errors": {}, "licence": "MIT"}
    return config, card, tensors


def write_safetensors(path, metadata, tensors):
    names = {torch.float64: "F64", torch.float32: "F32", torch.int64: "I64"}
    header, data = {"__metadata__": metadata}, b""
    for name, tensor in sorted(tensors.items(), key=lambda item: -item[1].element_size()):
        raw = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


# ---- evaluation ----

def find_edges(positions, cell, periodic, cutoff):
    """receiver, sender, shift of every pair closer than the cutoff, by trying all images within reach."""
    ranges = []
    for axis in range(3):
        if not periodic[axis]:
            ranges.append(range(1))
            continue
        other = np.cross(cell[(axis + 1) % 3], cell[(axis + 2) % 3])
        height = abs(np.dot(cell[axis], other)) / np.linalg.norm(other)
        spread = np.ptp(positions @ other) / np.linalg.norm(other)
        reach = int((cutoff + spread) / height) + 1
        ranges.append(range(-reach, reach + 1))
    receiver, sender, shifts = [], [], []
    for a in ranges[0]:
        for b in ranges[1]:
            for c in ranges[2]:
                shift = a * cell[0] + b * cell[1] + c * cell[2]
                distance = np.linalg.norm(positions[None] + shift - positions[:, None], axis=2)
                for i, j in zip(*np.nonzero(distance < cutoff)):
                    if (a, b, c) != (0, 0, 0) or i != j:
                        receiver.append(i), sender.append(j), shifts.append((a, b, c))
    return torch.tensor(receiver, dtype=torch.int64), torch.tensor(sender, dtype=torch.int64), torch.tensor(shifts, dtype=torch.float64).reshape(-1, 3)


def silu(x):
    return x * torch.sigmoid(x)


def evaluate(config, tensors, numbers, positions, cell, periodic):
    weights = {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}
    linear = lambda name, x: x @ weights[name + ".weight"].T + weights.get(name + ".bias", 0.0)
    width, cutoff = config["hidden"], config["cutoff"]
    known = weights["atomic_numbers"].tolist()
    element = torch.tensor([known.index(z) for z in numbers])
    receiver, sender, shifts = find_edges(positions, cell, periodic, cutoff)
    x = torch.tensor(positions, requires_grad=True)
    strain = torch.zeros(3, 3, requires_grad=True)
    deform = torch.eye(3) + 0.5 * (strain + strain.T)
    moved = x @ deform
    r = moved[sender] - moved[receiver] + shifts @ (torch.tensor(cell) @ deform)
    d = r.norm(dim=1)
    u = r / d[:, None]

    s = weights["embedding"][element]
    v = torch.zeros(len(numbers), 3, width)
    n = torch.arange(1, config["radial"] + 1)
    basis = torch.sin(n * math.pi * d[:, None] / cutoff) / d[:, None]
    fade = 0.5 * (1 + torch.cos(math.pi * d / cutoff))
    for b in range(config["blocks"]):
        block = f"blocks.{b}."
        filters = linear(block + "filter", basis) * fade[:, None]
        phi = linear(block + "message.output", silu(linear(block + "message.hidden", s)))
        x_s, x_v, x_u = (phi[sender] * filters).split(width, dim=1)
        s = s.index_add(0, receiver, x_s)
        v = v.index_add(0, receiver, x_v[:, None] * v[sender] + x_u[:, None] * u[:, :, None])
        mixed = linear(block + "update.mix", v)
        u_v, v_v = mixed[..., :width], mixed[..., width:]
        norm = torch.sqrt((v_v**2).sum(1) + 1e-8)
        gates = linear(block + "update.output", silu(linear(block + "update.hidden", torch.cat([s, norm], dim=1))))
        a_ss, a_sv, a_vv = gates.split(width, dim=1)
        s = s + a_ss + a_sv * (u_v * v_v).sum(1)
        v = v + a_vv[:, None] * u_v
    readout = linear("readout.output", silu(linear("readout.hidden", s)))[:, 0]
    atom_energies = weights["atomic_energies"][element] + weights["scales"][element] * readout
    if "repulsion_radii" in weights:
        z = torch.tensor(numbers, dtype=torch.float64)
        length = 0.8854 * BOHR / (z[receiver] ** 0.23 + z[sender] ** 0.23)
        screening = sum(a * torch.exp(-b * d / length)
                        for a, b in ((0.18175, 3.19980), (0.50986, 0.94229), (0.28022, 0.40290), (0.02817, 0.20162)))
        radii = weights["repulsion_radii"][element]
        t = d / (radii[receiver] + radii[sender])
        switch = torch.where(t < 1, 1 - 10 * t**3 + 15 * t**4 - 6 * t**5, torch.zeros_like(t))
        atom_energies = atom_energies.index_add(0, receiver, 0.5 * ANGSTROM_EV * z[receiver] * z[sender] / d * screening * switch)
    energy = atom_energies.sum()
    by_x, by_strain = torch.autograd.grad(energy, (x, strain), allow_unused=True)
    zero = lambda gradient, like: torch.zeros_like(like) if gradient is None else gradient
    return {
        "energy": energy.item(),
        "forces": (-zero(by_x, x)).tolist(),
        "virial": (-zero(by_strain, strain)).tolist(),
        "atom_energies": atom_energies.tolist(),
        "descriptors": s.tolist(),
    }, len(receiver)


# ---- systems ----

def water(center, turn):
    """One molecule, turned by a fixed rotation that `turn` chooses."""
    a, b = turn, 1.7 * turn
    rotation = np.array([[math.cos(a), -math.sin(a), 0], [math.sin(a), math.cos(a), 0], [0, 0, 1]]) @ np.array(
        [[1, 0, 0], [0, math.cos(b), -math.sin(b)], [0, math.sin(b), math.cos(b)]])
    shape = np.array([[0, 0, 0], [0.9572, 0, 0], [-0.2400, 0.9266, 0]])
    return shape @ rotation.T + center


def systems():
    ethanol = np.array([[1.17, -0.40, 0.0], [0.0, 0.56, 0.0], [-1.19, -0.21, 0.0], [-1.94, 0.38, 0.0], [2.14, 0.10, 0.0],
                        [1.13, -1.04, 0.89], [1.13, -1.04, -0.89], [0.04, 1.20, 0.89], [0.04, 1.20, -0.89]])
    yield "ethanol", [6, 6, 8, 1, 1, 1, 1, 1, 1], ethanol, np.zeros((3, 3)), [False] * 3
    yield "collision", [8, 1, 6], np.array([[0.0, 0, 0], [0.5, 0.1, 0], [0.2, 0.9, 0.3]]), np.zeros((3, 3)), [False] * 3
    yield "one atom", [8], np.zeros((1, 3)), np.zeros((3, 3)), [False] * 3
    side = 6.2
    places = [(i, j, k) for i in (0.25, 0.75) for j in (0.25, 0.75) for k in (0.25, 0.75)]
    box = np.concatenate([water(side * np.array(place), 0.4 + 0.9 * i) for i, place in enumerate(places)])
    yield "water box", [8, 1, 1] * 8, box, side * np.eye(3), [True] * 3
    cell = np.array([[3.1, 0.2, 0.0], [-0.9, 2.9, 0.3], [0.4, 0.7, 3.6]])  # smaller than the cutoff: neighbours of itself
    yield "triclinic", [6, 8, 1], np.array([[0.1, 0.2, 0.0], [1.2, 0.9, 0.8], [0.3, 1.9, 2.4]]), cell, [True] * 3
    yield "slab", [6, 8, 1], np.array([[0.1, 0.2, 0.0], [1.2, 0.9, 0.8], [0.3, 1.9, 2.4]]), cell, [True, True, False]


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "painn"
    out.mkdir(exist_ok=True)
    models = {
        "two_blocks_f32": make_model(1, 32, 2, 8, 4.5, [1, 6, 8], [0.35, 0.8, 0.7], torch.float32),
        "one_block_no_repulsion": make_model(2, 32, 1, 20, 5.0, [1, 6, 7, 8], None, torch.float64),
    }
    for name, (config, card, tensors) in models.items():
        metadata = {"format": "mlff-painn", "painn_layout": "1", "config": json.dumps(config), "card": json.dumps(card)}
        write_safetensors(out / f"{name}.safetensors", metadata, tensors)
        records = []
        for system, numbers, positions, cell, periodic in systems():
            outputs, edge_count = evaluate(config, tensors, numbers, positions, cell, periodic)
            if system != "ethanol":
                del outputs["descriptors"]
            records.append({"name": system, "numbers": numbers, "positions": positions.tolist(), "cell": cell.tolist(), "pbc": periodic,
                            "n_edges": edge_count, "outputs": outputs})
        document = {"made_by": "tests/golden/make_painn.py", "torch": torch.__version__, "model_file": f"{name}.safetensors", "systems": records}
        (out / f"{name}.json").write_text(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
