#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goldens of DFT-D3: what s-dftd3 (the package dftd3, 1.7.0) gives, in eV and angstrom.

    python make_dispersion.py [OUT_FILE]        (needs dftd3 and numpy; writes tests/golden/dispersion.json by default)

Units are converted by the bohr and hartree of CODATA 2018. Cutoffs are the defaults of the package. The virial is
-dE/dstrain.
"""
import json
import pathlib
import re
import sys

import dftd3
import numpy as np
from dftd3.interface import DispersionModel, RationalDampingParam, ZeroDampingParam

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOHR, HARTREE = 0.529177210903, 27.211386245988
FADE_WIDTH = 4.0  # bohr


def cluster(seed, numbers, spread, nearest):
    """Atoms at random places, none too close to another."""
    random = np.random.default_rng(seed)
    positions = []
    while len(positions) < len(numbers):
        place = random.uniform(0, spread, 3)
        if all(np.linalg.norm(place - other) > nearest for other in positions):
            positions.append(place.round(4))
    return numbers, np.array(positions)


def filled_cell(seed, numbers, cell, periodic, nearest):
    random = np.random.default_rng(seed)
    cell = np.array(cell, dtype=float)
    shifts = np.array([[a, b, c] for a in (-1, 0, 1) for b in (-1, 0, 1) for c in (-1, 0, 1)]) * np.array(periodic)
    positions = []
    while len(positions) < len(numbers):
        # Some outside of the cell; not in open directions, into which s-dftd3 moves atoms as if they were periodic.
        fraction = np.where(periodic, random.uniform(-0.3, 1.3, 3), random.uniform(0.1, 0.9, 3))
        place = (fraction @ cell).round(4)
        images = np.concatenate([other + shifts @ cell for other in positions]) if positions else np.empty((0, 3))
        if len(images) == 0 or np.linalg.norm(images - place, axis=1).min() > nearest:
            positions.append(place)
    return numbers, np.array(positions), cell, periodic


def systems():
    water = [8, 1, 1, 8, 1, 1], np.array([[0.0, 0.0, 0.119], [0.0, 0.763, -0.477], [0.0, -0.763, -0.477],
                                           [2.9, 0.1, 0.0], [3.3, 0.8, -0.4], [3.35, -0.7, -0.3]])
    yield "water_dimer", water, ["pbe", "pbe:zero", "b3lyp:atm", "b3lyp:zero:atm", "r2scan", "scan", "rpbe", "revpbe",
                                 "pbesol:zero", "wb97x", "wb97x:zero", "b97d:zero", "tpss", "blyp", "bp86", "pbe0",
                                 "hse06", "b97m", "ssb", "cf22d:zero", "s8=0.7,a1=0.4,a2=4.4",
                                 "s6=0.9,s8=0.8,rs6=1.2,rs8=1.1,alpha=12:zero:atm"]
    for first in range(1, 95, 16):
        numbers = list(range(first, min(first + 16, 95))) + [1, 8]
        yield f"elements_{first}", cluster(first, numbers, 8, 1.9), ["pbe", "pbe:zero:atm"]
    for first in (1, 48):
        chain = [z for heavy in range(first, min(first + 47, 95)) for z in (heavy, 1)]
        positions = np.array([[2.9 * (i // 2), 1.7 * (i % 2), 0.4 * (i // 2 % 3)] for i in range(len(chain))])
        yield f"hydrides_{first}", (chain, positions), ["b3lyp"]
    yield "far_apart", ([18, 18, 54, 6, 6], np.array([[0, 0, 0], [30.2, 0, 0], [0, 20.6, 0], [0, 0, 19.9], [0, 1.3, 19.9]])), \
        ["pbe:atm", "pbe:smooth:atm", "pbe:zero:smooth"]
    yield "diamond", ([6, 6], np.array([[0.0, 0, 0], [0.8925, 0.8925, 0.8925]]),
                      np.array([[0, 1.785, 1.785], [1.785, 0, 1.785], [1.785, 1.785, 0]]), [True] * 3), ["pbe", "pbe:zero", "pbe:smooth"]
    yield "argon", ([18], np.array([[0.1, 0.2, 0.3]]), np.array([[0, 2.65, 2.65], [2.65, 0, 2.65], [2.65, 2.65, 0]]), [True] * 3), \
        ["pbe:atm", "pbe:zero:smooth"]
    yield "triclinic", filled_cell(3, [8, 1, 14, 22, 17], [[6.1, 0.3, -0.2], [1.9, 5.4, 0.4], [-1.8, 1.9, 6.6]],
                                   [True] * 3, 1.5), ["pbe", "pbe:zero", "pbe:smooth"]
    yield "slab", filled_cell(5, [13, 13, 8, 1, 6], [[4.1, 0, 0], [1.5, 4.4, 0], [0, 0, 9]], [True, True, False], 1.5), \
        ["r2scan", "pbe:zero"]
    yield "wire", filled_cell(6, [7, 1, 16], [[9, 0, 0], [0, 5.2, 0], [0, 0, 9]], [False, True, False], 1.6), \
        ["pbe:atm", "pbe:zero"]


def parameters(name):
    parts = name.split(":")
    kind = ZeroDampingParam if "zero" in parts else RationalDampingParam
    s9 = 1.0 if "atm" in parts else 0.0
    if "=" in parts[0]:
        values = {key: float(value) for key, value in (item.split("=") for item in parts[0].split(","))}
        if "alpha" in values:
            values["alp"] = values.pop("alpha")
        return kind(**{"s6": 1.0, **values, "s9": s9})
    return kind(method=parts[0], atm=s9 == 1.0)


def evaluate(system, name):
    numbers, positions = system[:2]
    lattice = dict(lattice=system[2] / BOHR, periodic=np.array(system[3])) if len(system) > 2 else {}
    model = DispersionModel(np.array(numbers), positions / BOHR, **lattice)
    if "smooth" in name.split(":"):
        model.set_realspace_cutoff(60.0, 40.0, 40.0, FADE_WIDTH, FADE_WIDTH)
    found = model.get_dispersion(parameters(name), grad=True)
    return {"model": "d3:" + name,
            "energy": float(found["energy"]) * HARTREE,
            "forces": (-found["gradient"] * HARTREE / BOHR).ravel().tolist(),
            "virial": (-found["virial"] * HARTREE).ravel().tolist()}


def energies_of_functionals():
    """Of the water dimer, with all that the package itself has parameters for."""
    system = next(systems())[1]
    lines = (ROOT / "src" / "dispersion" / "tables" / "functionals.inc").read_text().splitlines()
    found, unknown = {}, []
    for line in lines:
        match = re.match(r'\{"(.*)", (bj|zero)\(', line)
        if not match:
            continue
        name = f"{match[1]}:{match[2]}"
        try:
            found["d3:" + name] = evaluate(system, name)["energy"]
        except RuntimeError:
            unknown.append(name)
    print("unknown to the package:", *unknown, file=sys.stderr)
    return found


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent / "dispersion.json"
    cases = []
    for name, system, models in systems():
        cases.append({"name": name, "numbers": list(system[0]), "positions": system[1].ravel().tolist(),
                      "cell": system[2].tolist() if len(system) > 2 else [[0.0] * 3] * 3,
                      "periodic": list(system[3]) if len(system) > 2 else [False] * 3,
                      "results": [evaluate(system, model) for model in models]})
    text = ",\n".join(json.dumps(case) for case in cases)
    functionals = json.dumps(energies_of_functionals(), indent=0)
    out.write_text('{"made_by": "dftd3 %s",\n"functionals": %s,\n"cases": [\n%s\n]}\n' % (dftd3.__version__, functionals, text))


if __name__ == "__main__":
    main()
