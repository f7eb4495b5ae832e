# SPDX-License-Identifier: MIT
"""The student on the CPU beside the same model in PyTorch: docs/painn.md in eager float32, forces by autograd, same weights, same systems, same threads, in
turns in one process. Wall time, and the time of all cores together, which other work on the machine disturbs less. mlff is timed with its neighbour list, PyTorch with a list made before. Prints JSON; exits with 1 if forces differ by more than
1e-3 eV/A. Needs numpy and torch.

  python cpu_vs_torch.py LIBRARY [MODEL] [--before LIBRARY] [--systems NAME...] [--threads 2] [--rounds 10]

With --before, a second library is timed in the same turns."""
import argparse
import json
import math
import os
import pathlib
import struct
import sys
import time

import numpy as np
import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "mace_cpu")]
import native
import systems

STUDENT = HERE.parent.parent / "models" / "student" / "student.safetensors"
MOST_FORCE_ERROR = 1e-3  # eV/A


def cluster():
    """100 atoms in vacuum: four alanine dipeptides and four waters, near enough to touch."""
    numbers, positions = [], []
    peptide, water = systems.molecule(systems.ALANINE_DIPEPTIDE), systems.molecule(systems.WATER)
    random = np.random.default_rng(3)
    for shape, places in ((peptide, [(0, 0, 0), (6.5, 0, 0), (0, 6.5, 0), (6.5, 6.5, 0)]), (water, [(3.2, 3.2, 4.5), (3.2, 3.2, -4.5), (3.2, -5, 0), (3.2, 11.5, 0)])):
        for place in places:
            rotation, _ = np.linalg.qr(random.normal(size=(3, 3)))
            numbers.append(shape[0])
            positions.append((shape[1] - shape[1].mean(axis=0)) @ rotation.T + np.array(place))
    return np.concatenate(numbers), np.concatenate(positions), None


SYSTEMS = {"ethanol": systems.SYSTEMS["ethanol"], "ala2": systems.SYSTEMS["ala2"], "cluster100": cluster,
           "water96": lambda: systems.water((4, 4, 2)), "water192": systems.SYSTEMS["water192"]}


def read_model(path):
    """config and tensors of a safetensors file"""
    raw = pathlib.Path(path).read_bytes()
    size, = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + size])
    types = {"F32": np.float32, "F64": np.float64, "I64": np.int64}
    config = json.loads(header.pop("__metadata__")["config"])
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = torch.from_numpy(np.frombuffer(raw[8 + size + begin:8 + size + end], types[entry["dtype"]]).reshape(entry["shape"]).copy())
    return config, tensors


def find_edges(positions, cell, cutoff):
    """receiver, sender and shift (angstrom) of every pair closer than the cutoff"""
    reach = [0] * 3 if cell is None else [int(cutoff / cell[a, a]) + 1 for a in range(3)]
    receiver, sender, shifts = [], [], []
    for image in np.ndindex(*[2 * r + 1 for r in reach]):
        shift = np.zeros(3) if cell is None else (np.array(image) - reach) @ cell
        distance = np.linalg.norm(positions[None] + shift - positions[:, None], axis=2)
        near = (distance < cutoff) & (distance > 0)
        i, j = np.nonzero(near)
        receiver.append(i), sender.append(j), shifts.append(np.tile(shift, (len(i), 1)))
    return torch.tensor(np.concatenate(receiver)), torch.tensor(np.concatenate(sender)), torch.tensor(np.concatenate(shifts), dtype=torch.float32)


class EagerModel:
    """docs/painn.md, float32; atomic energies and repulsion too. An edge list is made once."""

    def __init__(self, path, system):
        config, tensors = read_model(path)
        self.width, self.cutoff, self.blocks = config["hidden"], config["cutoff"], config["blocks"]
        numbers, positions, cell = system
        known = tensors["atomic_numbers"].tolist()
        element = torch.tensor([known.index(z) for z in numbers])
        self.weights = {name: tensor.float() for name, tensor in tensors.items()}
        self.receiver, self.sender, self.shifts = find_edges(positions, cell, self.cutoff)
        self.waves = torch.arange(1, config["radial"] + 1) * (math.pi / self.cutoff)
        self.embedding, self.scales = self.weights["embedding"][element], self.weights["scales"][element]
        self.atomic_energy = float(tensors["atomic_energies"][element].sum())
        z, radii = torch.tensor(numbers, dtype=torch.float32), self.weights["repulsion_radii"][element]
        self.length = 0.8854 * 0.529177210903 / (z[self.receiver] ** 0.23 + z[self.sender] ** 0.23)
        self.strength = 0.5 * 14.3996454784255 * z[self.receiver] * z[self.sender]
        self.reach = radii[self.receiver] + radii[self.sender]

    def linear(self, name, x):
        return torch.nn.functional.linear(x, self.weights[name + ".weight"], self.weights.get(name + ".bias"))

    def energy(self, x):
        silu, width = torch.nn.functional.silu, self.width
        r = x[self.sender] - x[self.receiver] + self.shifts
        d = r.norm(dim=1)
        u = r / d[:, None]
        basis = torch.sin(self.waves * d[:, None]) / d[:, None]
        fade = 0.5 * (1 + torch.cos(d * (math.pi / self.cutoff)))
        s, v = self.embedding, torch.zeros(len(x), 3, width)
        for b in range(self.blocks):
            block = f"blocks.{b}."
            filters = self.linear(block + "filter", basis) * fade[:, None]
            phi = self.linear(block + "message.output", silu(self.linear(block + "message.hidden", s)))
            x_s, x_v, x_u = (phi[self.sender] * filters).split(width, dim=1)
            s = s.index_add(0, self.receiver, x_s)
            v = v.index_add(0, self.receiver, x_v[:, None] * v[self.sender] + x_u[:, None] * u[:, :, None])
            u_v, v_v = self.linear(block + "update.mix", v).split(width, dim=2)
            norm = torch.sqrt((v_v**2).sum(1) + 1e-8)
            a_ss, a_sv, a_vv = self.linear(block + "update.output", silu(self.linear(block + "update.hidden", torch.cat([s, norm], dim=1)))).split(width, dim=1)
            s = s + a_ss + a_sv * (u_v * v_v).sum(1)
            v = v + a_vv[:, None] * u_v
        readout = self.linear("readout.output", silu(self.linear("readout.hidden", s)))[:, 0]
        screening = sum(a * torch.exp(-b * d / self.length) for a, b in ((0.18175, 3.19980), (0.50986, 0.94229), (0.28022, 0.40290), (0.02817, 0.20162)))
        t = (d / self.reach).clamp(max=1)
        return (self.scales * readout).sum() + (self.strength / d * screening * (1 - 10 * t**3 + 15 * t**4 - 6 * t**5)).sum()

    def evaluate(self, positions):
        x = torch.tensor(positions, dtype=torch.float32, requires_grad=True)
        energy = self.energy(x)
        forces, = torch.autograd.grad(energy, x)
        return energy.item() + self.atomic_energy, -forces.numpy()


def timed(call, count):
    """[call][wall seconds, seconds of all cores together]"""
    seconds = []
    for _ in range(count):
        begin = time.perf_counter(), time.process_time()
        call()
        seconds.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
    return seconds


def spread(seconds):
    wall, cores = zip(*seconds)
    return {**native.spread(wall), "core_time": native.spread(cores)}


def measure(arguments, name):
    system = SYSTEMS[name]()
    eager = EagerModel(arguments.model, system)
    sessions = {"mlff mixed": native.Session(arguments.library, arguments.model, system, "cpu", "mixed", arguments.skin, arguments.threads)}
    if arguments.before:
        sessions["mlff mixed, before"] = native.Session(arguments.before, arguments.model, system, "cpu", "mixed", arguments.skin, arguments.threads)
    calls = {engine: session.evaluate for engine, session in sessions.items()}
    calls["torch eager fp32"] = lambda: eager.evaluate(system[1])
    seconds = {engine: [] for engine in calls}
    for call in calls.values():
        timed(call, 3)
    for _ in range(arguments.rounds):
        for engine, call in calls.items():
            seconds[engine] += timed(call, 3 if "torch" in engine else 10)
    energy, forces = eager.evaluate(system[1])
    session = sessions["mlff mixed"]
    row = {"system": name, "atoms": len(system[0]), "neighbours": len(eager.receiver) / len(system[0]), "engines": {engine: spread(values) for engine, values in seconds.items()},
           "force_difference": float(abs(session.forces - forces).max()), "largest_force": float(abs(forces).max()), "energy_difference": float(session.energy[0]) - energy}
    for name, clock in (("wall_ratios", lambda found: found), ("core_time_ratios", lambda found: found["core_time"])):
        median = {engine: clock(found)["median_ms"] for engine, found in row["engines"].items()}
        row[name] = {engine: value / median["mlff mixed"] for engine, value in median.items() if engine != "mlff mixed"}
    for session in sessions.values():
        session.free()
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("model", nargs="?", default=str(STUDENT))
    parser.add_argument("--before")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--skin", type=float, default=1.0)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    rows = [measure(arguments, name) for name in arguments.systems]
    print(json.dumps({"what": "measurements/student/cpu_vs_torch.py", "model": os.path.basename(arguments.model), "torch": torch.__version__, "threads": arguments.threads,
                      "skin_angstrom": arguments.skin, "rows": rows}, indent=1))
    return 0 if all(row["force_difference"] < MOST_FORCE_ERROR for row in rows) else 1  # NaN fails


if __name__ == "__main__":
    sys.exit(main())
