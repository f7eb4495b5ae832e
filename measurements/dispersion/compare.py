# SPDX-License-Identifier: MIT
"""DFT-D3 of mlff beside s-dftd3 (the package dftd3): PBE, Becke-Johnson damping, energy, forces and virial of pairs, and for droplets of triples too, the
same positions and cutoffs, the same number of threads, in turns. Water in droplets and in periodic boxes. Exits with 1 if energies differ by more than 1e-9 eV or forces by more than
1e-8 eV/A. Both take new positions in each call. The least of some calls is what other work on the machine disturbs least.

  python compare.py LIBRARY [--threads 2] [--rounds 7] [--output FILE]

LIBRARY is libmlff.so. Needs dftd3 and numpy."""
import argparse
import json
import os
import pathlib
import platform
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "mace_cpu")]
BOHR, HARTREE = 0.529177210903, 27.211386245988
DROPLETS = (24, 51, 192, 648, 1536)
BOXES = (24, 192, 648, 1536)
MOST_WITH_TRIPLES = 192


def cases():
    import native
    for atoms in DROPLETS:
        numbers, positions, _ = native.water(next(n for n in sorted(native.SIDES) if n >= atoms))
        nearest = sorted(range(len(numbers) // 3), key=lambda m: float(((positions[3 * m] - positions.mean(axis=0)) ** 2).sum()))
        kept = [3 * m + k for m in nearest[:atoms // 3] for k in range(3)]
        for model in ("d3:pbe", "d3:pbe:atm")[:2 if atoms <= MOST_WITH_TRIPLES else 1]:
            yield "droplet", model, (numbers[kept], positions[kept].copy(), None)
    for atoms in BOXES:
        yield "box", "d3:pbe", native.water(atoms)


def timed(call):
    begin = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - begin)


def measure(arguments, kind, model_name, system):
    import native
    import numpy as np
    from dftd3.interface import DispersionModel, RationalDampingParam

    numbers, positions, cell = system
    session = native.Session(arguments.library, model_name, system, "cpu", "fp64", threads=arguments.threads)
    lattice = {} if cell is None else {"lattice": cell / BOHR, "periodic": np.array([True] * 3)}
    model = DispersionModel(np.array(numbers), positions / BOHR, **lattice)
    parameters = RationalDampingParam(method="pbe", atm=model_name.endswith(":atm"))
    seconds = {"mlff": [], "dftd3": []}
    worst = {"energy_ev": 0.0, "forces_ev_per_a": 0.0}
    for moved in session.shaken(arguments.rounds):
        session.place(moved)
        seconds["mlff"].append(timed(session.evaluate))
        model.update(moved / BOHR)
        found = {}
        seconds["dftd3"].append(timed(lambda: found.update(model.get_dispersion(parameters, grad=True))))
        worst["energy_ev"] = max(worst["energy_ev"], abs(float(found["energy"]) * HARTREE - session.energy[0]))
        worst["forces_ev_per_a"] = max(worst["forces_ev_per_a"], float(np.abs(found["gradient"] * HARTREE / BOHR + session.forces).max()))
    session.free()
    row = {"system": kind, "model": model_name, "atoms": len(numbers), "threads": arguments.threads, "rounds": arguments.rounds, "differences": worst}
    for name, values in seconds.items():
        row[name] = {"min_ms": min(values), "median_ms": float(np.median(values)), "max_ms": max(values)}
    row["ratio_of_min"] = row["dftd3"]["min_ms"] / row["mlff"]["min_ms"]
    row["ratio_of_median"] = row["dftd3"]["median_ms"] / row["mlff"]["median_ms"]
    row["load_average"] = os.getloadavg()[0]
    print(json.dumps(row), file=sys.stderr, flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)  # before dftd3 is loaded
    import dftd3
    import report

    rows = [measure(arguments, *case) for case in cases()]
    name, _ = report.processor()
    text = json.dumps({"what": "measurements/dispersion/compare.py", "machine": f"{os.cpu_count()} cores of {name} ({platform.machine()})",
                       "dftd3": dftd3.__version__, **report.stamp(), "rows": rows}, indent=1) + "\n"
    if arguments.output:
        pathlib.Path(arguments.output).write_text(text)
    else:
        print(text, end="")
    return 0 if all(row["differences"]["energy_ev"] < 1e-9 and row["differences"]["forces_ev_per_a"] < 1e-8 for row in rows) else 1  # NaN fails


if __name__ == "__main__":
    sys.exit(main())
