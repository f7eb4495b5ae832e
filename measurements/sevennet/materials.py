# SPDX-License-Identifier: MIT
"""What SevenNet-0 says of silicon, sodium chloride and the lithium conductor Li6PS5Cl, by the command mlff alone: energies against the volume with a fit of Birch and Murnaghan
(`mlff relax`, `mlff eval`), 10 ps of silicon at constant energy and of sodium chloride at constant pressure, and how far lithium moves at 900 K (`mlff md`). Writes JSON, which draw.py draws.

  python materials.py PROGRAM MODEL [--threads 2] [--only eos nve npt diffusion] [--folder FOLDER] [--output FILE]

MODEL is checkpoint_sevennet_0.pth (11Jul2024). Needs numpy. Parts that are not run again stay in the output."""
import argparse
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "mace_cpu")]
import report

EV_PER_A3_IN_GPA = 160.2176634
SPHALERITE = np.array([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])  # the face-centred lattice
VOLUMES = np.linspace(0.94, 1.06, 9)  # of the first guess
# In PBE. Silicon: Lejaeghere et al., Science 351, aad3000 (2016), all electrons: 20.453 A^3 per atom. NaCl: Tran et al., Phys. Rev. B 75, 115131 (2007), all electrons.
# Li6PS5Cl: what was measured at room temperature (Kraft et al., J. Am. Chem. Soc. 139, 10909 (2017)).
PUBLISHED = {"Si": {"what": "PBE", "lattice_a": 5.470, "bulk_modulus_gpa": 88.5}, "NaCl": {"what": "PBE", "lattice_a": 5.714, "bulk_modulus_gpa": 23.7},
             "Li6PS5Cl": {"what": "measured", "lattice_a": 9.86, "bulk_modulus_gpa": None}}
STEP_FS, PICOSECONDS = 2, 10
STEPS = int(1000 * PICOSECONDS / STEP_FS)
POINTS = 250  # of a curve in the output


# ---- structures: (symbols, positions, cell) ----

def cubic(basis, lattice, cells=1):
    """basis: (symbol, fractions of the cubic cell)"""
    symbols, positions = [], []
    for corner in np.ndindex(cells, cells, cells):
        for symbol, place in basis:
            symbols.append(symbol)
            positions.append((np.array(place) + corner) * lattice)
    return symbols, np.array(positions), np.eye(3) * lattice * cells


def silicon_basis():
    return [("Si", corner + shift) for shift in (np.zeros(3), np.full(3, 0.25)) for corner in SPHALERITE]


def salt_basis():
    return [("Na", corner) for corner in SPHALERITE] + [("Cl", corner + [0.5, 0, 0]) for corner in SPHALERITE]


def argyrodite_basis(exchanged=0):
    """Li6PS5Cl, F-43m: Cl on 4a, S on 4d with six Li around it (24g), PS4 around 4b; `exchanged` of the four Cl change places with S on 4d."""
    basis = []
    for number, corner in enumerate(SPHALERITE):
        basis.append(("S" if number < exchanged else "Cl", corner))
        cage = corner + 0.75
        basis.append(("Cl" if number < exchanged else "S", cage))
        basis += [("Li", cage + sign * 0.23 * axis) for axis in np.eye(3) for sign in (1, -1)]
        basis.append(("P", corner + 0.5))
        basis += [("S", corner + 0.5 + 0.12 * np.array(signs)) for signs in ((-1, -1, -1), (-1, 1, 1), (1, -1, 1), (1, 1, -1))]
    return basis


def rattled(structure, amplitude):
    symbols, positions, cell = structure
    return symbols, positions + np.random.default_rng(1).normal(scale=amplitude, size=positions.shape), cell


# ---- files ----

def text_of(structure):
    symbols, positions, cell = structure
    lattice = " ".join(f"{value:.10f}" for value in np.ravel(cell))
    rows = [f"{symbol} {x:.10f} {y:.10f} {z:.10f}" for symbol, (x, y, z) in zip(symbols, positions)]
    return f'{len(symbols)}\nLattice="{lattice}" Properties=species:S:1:pos:R:3\n' + "\n".join(rows) + "\n"


def read_frames(path):
    """(symbols, positions, cell) of each frame; species and positions are the first columns"""
    with open(path) as file:
        while header := file.readline():
            count = int(header)
            cell = np.array(re.search(r'Lattice="([^"]*)"', file.readline())[1].split(), dtype=float).reshape(3, 3)
            rows = [file.readline().split() for _ in range(count)]
            yield [row[0] for row in rows], np.array([row[1:4] for row in rows], dtype=float), cell


class Runner:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, pathlib.Path(folder)

    def path(self, name):
        return str(self.folder / name)

    def write(self, name, *structures):
        pathlib.Path(self.path(name)).write_text("".join(map(text_of, structures)))
        return self.path(name)

    def mlff(self, *words):
        command = [self.arguments.program, *map(str, words), "--model", self.arguments.model, "--device", "cpu", "--threads", str(self.arguments.threads)]
        begin = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}: {done.stderr.strip()} {done.stdout.strip()[-400:]}")
        return done.stdout, time.perf_counter() - begin

    def energies(self, name):
        self.mlff("eval", self.path(name), "--precision", "fp64", "--json", self.path("eval.json"))
        return [frame["energy"] for frame in json.loads(pathlib.Path(self.path("eval.json")).read_text())["frames"]]

    def relaxed(self, name, *words):
        self.mlff("relax", self.path(name), "--precision", "fp64", "--fmax", "0.005", "--output", self.path("relaxed.xyz"), *words)
        return list(read_frames(self.path("relaxed.xyz")))

    def dynamics(self, name, structure, *words):
        """What the log of `mlff md` says, by column"""
        log = self.path(f"{name}.csv")
        said, seconds = self.mlff("md", self.write(f"{name}_start.xyz", structure), "--dt", STEP_FS, "--steps", STEPS, "--log", log, "--log-every", 5, "--output", self.path(f"{name}.xyz"),
                                  "--output-every", 10, "--overwrite", *words)
        with open(log) as file:
            rows = list(csv.DictReader(file))
        columns = {key: np.array([float(row[key]) for row in rows]) for key in rows[0] if rows[0][key]}
        print(f"{name}: {seconds:.0f} s", file=sys.stderr, flush=True)
        return columns, {"atoms": len(structure[0]), "steps": STEPS, "step_fs": STEP_FS, "seconds": seconds, "ms_per_step": 1e3 * seconds / STEPS,
                         "ns_per_day": float(re.search(r"([\d.]+) ns/day", said)[1]), "options": " ".join(map(str, words))}


def thinned(values, digits):
    """At most POINTS of them, evenly, with the last one"""
    index = np.unique(np.linspace(0, len(values) - 1, min(POINTS, len(values))).round().astype(int))
    return [round(float(value), digits) for value in np.asarray(values)[index]]


# ---- equations of state ----

def birch_murnaghan(volumes, energies):
    """E is a cubic polynomial of x = V^(-2/3). Returns volume, energy, bulk modulus (GPa), its derivative, and the largest residual"""
    x, shift = np.asarray(volumes) ** (-2 / 3), np.mean(energies)
    fit = np.polynomial.Polynomial.fit(x, np.asarray(energies) - shift, 3).convert()
    roots = [root.real for root in fit.deriv().roots() if abs(root.imag) < 1e-12 and fit.deriv(2)(root.real) > 0 and min(x) < root.real < max(x)]
    if len(roots) != 1:
        sys.exit("the energies have no minimum within the volumes")
    x0, second, third = roots[0], fit.deriv(2)(roots[0]), fit.deriv(3)(roots[0])
    volume = x0**-1.5
    # dx/dV = -2/3 x/V. B = V E_VV = 4/9 x^2 E_xx / V; B' = dB/dP = -1 - V^3 E_VVV / (V^2 E_VV)
    bulk = 4 / 9 * x0**2 * second / volume
    third_by_volume = -(8 / 27 * x0**3 * third + 20 / 9 * x0**2 * second) / volume**3
    return {"volume_a3": float(volume), "energy_ev": float(fit(x0) + shift), "bulk_modulus_gpa": float(bulk * EV_PER_A3_IN_GPA), "derivative": float(-1 - volume * third_by_volume / (bulk / volume)),
            "largest_residual_mev": float(1e3 * np.abs(fit(x) + shift - energies).max()), "polynomial": [float(value) for value in fit.coef], "shift_ev": float(shift)}


def equation_of_state(runner, material, basis, guess):
    """By symmetry the atoms of Si and NaCl feel no forces. Those of Li6PS5Cl relax at each volume; they keep the symmetry that they begin with."""
    symbols, positions, cell = cubic(basis, guess)
    frames = [(symbols, positions * scale, cell * scale) for scale in VOLUMES ** (1 / 3)]
    runner.write("scaled.xyz", *frames)
    if material == "Li6PS5Cl":
        frames = runner.relaxed("scaled.xyz")
        runner.write("scaled.xyz", *frames)
    volumes, energies = [float(abs(np.linalg.det(frame[2]))) for frame in frames], runner.energies("scaled.xyz")
    fit = birch_murnaghan(volumes, energies)
    found = {"material": material, "atoms": len(symbols), "volumes_a3": volumes, "energies_ev": energies, "fit": fit, "lattice_a": fit["volume_a3"] ** (1 / 3), "published": PUBLISHED[material]}
    print(f"{material}: a = {found['lattice_a']:.4f} A, B = {fit['bulk_modulus_gpa']:.1f} GPa", file=sys.stderr, flush=True)
    return found


def equations_of_state(runner):
    return [equation_of_state(runner, "Si", silicon_basis(), 5.46), equation_of_state(runner, "NaCl", salt_basis(), 5.69), equation_of_state(runner, "Li6PS5Cl", argyrodite_basis(), 10.25)]


# ---- dynamics ----

def lattice_of(results, material):
    return next(row["lattice_a"] for row in results["eos"] if row["material"] == material)


def constant_energy(runner, results):
    log, facts = runner.dynamics("nve", cubic(silicon_basis(), lattice_of(results, "Si"), 2), "--ensemble", "nve", "--temperature", 600)
    atoms = facts["atoms"]
    total = 1e3 * (log["total_eV"] - log["total_eV"][0]) / atoms
    slope = np.polynomial.Polynomial.fit(log["time_fs"] / 1000, total, 1).convert().coef[1]
    later = log["time_fs"] >= 1000
    return {"material": "Si", **facts, "drift_mev_per_atom_per_ps": float(slope), "rms_change_of_total_mev_per_atom": float(total[later].std()), "largest_change_of_total_mev_per_atom": float(np.abs(total).max()),
            "rms_change_of_potential_mev_per_atom": float(1e3 * log["potential_eV"][later].std() / atoms), "mean_temperature_k": float(log["temperature_K"][later].mean()),
            "time_ps": thinned(log["time_fs"] / 1000, 3), "total_mev_per_atom": thinned(total, 5),
            "potential_mev_per_atom": thinned(1e3 * (log["potential_eV"] - log["potential_eV"][0]) / atoms, 3), "temperature_k": thinned(log["temperature_K"], 2)}


def constant_pressure(runner, results):
    log, facts = runner.dynamics("npt", cubic(salt_basis(), lattice_of(results, "NaCl"), 2), "--ensemble", "npt", "--temperature", 300, "--pressure", 1, "--compressibility", 4.2e-6, "--barostat-time", 500)
    later = log["time_fs"] >= 2000
    lattice = np.cbrt(log["volume_A3"]) / 2
    return {"material": "NaCl", **facts, "from_ps": 2, "mean_temperature_k": float(log["temperature_K"][later].mean()), "mean_lattice_a": float(lattice[later].mean()), "rms_lattice_a": float(lattice[later].std()),
            "mean_pressure_bar": float(log["pressure_bar"][later].mean()), "lattice_at_0_k_a": lattice_of(results, "NaCl"), "time_ps": thinned(log["time_fs"] / 1000, 3),
            "volume_a3_per_atom": thinned(log["volume_A3"] / facts["atoms"], 4), "temperature_k": thinned(log["temperature_K"], 2)}


def unwrapped(frames):
    """Positions [frame][atom][3] without jumps over the boundaries; the cell does not change"""
    cell, paths = frames[0][2], [frames[0][1]]
    for _, positions, _ in frames[1:]:
        fractions = (positions - paths[-1]) @ np.linalg.inv(cell)
        paths.append(paths[-1] + (fractions - fractions.round()) @ cell)
    return np.array(paths)


def displacements(paths, longest):
    """Mean squares over atoms and starting frames, for 0 to `longest` frames"""
    return np.array([((paths[lag:] - paths[:len(paths) - lag]) ** 2).sum(axis=2).mean() for lag in range(longest + 1)])


def diffusion(runner, results):
    """Half of the Cl changed places with S, as in real samples: without that lithium hardly leaves its cages."""
    runner.write("start.xyz", rattled(cubic(argyrodite_basis(exchanged=2), lattice_of(results, "Li6PS5Cl")), 0.02))
    start = runner.relaxed("start.xyz", "--cell", "--steps", 3000)[0]
    log, facts = runner.dynamics("diffusion", start, "--ensemble", "nvt", "--thermostat", "rescaling", "--temperature", 900)
    frames = list(read_frames(runner.path("diffusion.xyz")))
    symbols, paths, frame_ps = np.array(frames[0][0]), unwrapped(frames), 10 * STEP_FS / 1000
    host = symbols != "Li"
    paths = paths - paths[:, host].mean(axis=1, keepdims=True)
    paths = paths[round(1 / frame_ps):]  # the first picosecond warms it up
    longest = round(5 / frame_ps)
    curves = {name: displacements(paths[:, chosen], longest) for name, chosen in (("Li", ~host), ("host", host))}
    times = np.arange(longest + 1) * frame_ps
    fitted = (times >= 1) & (times <= 4)
    slope = np.polynomial.Polynomial.fit(times[fitted], curves["Li"][fitted], 1).convert().coef[1]
    return {"material": "Li6PS5Cl", **facts, "exchanged_chlorine": "2 of 4", "volume_a3": float(abs(np.linalg.det(start[2]))), "from_ps": 1, "mean_temperature_k": float(log["temperature_K"][log["time_fs"] >= 1000].mean()), "fitted_ps": [1, 4],
            "diffusion_cm2_per_s": float(slope / 6 * 1e-4), "msd_of_li_after_5_ps_a2": float(curves["Li"][-1]), "msd_of_host_after_5_ps_a2": float(curves["host"][-1]),
            "time_ps": thinned(times, 3), "msd_of_li_a2": thinned(curves["Li"], 4), "msd_of_host_a2": thinned(curves["host"], 4)}


PARTS = {"eos": lambda runner, results: equations_of_state(runner), "nve": constant_energy, "npt": constant_pressure, "diffusion": diffusion}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--folder", help="keep structures, logs and trajectories here")
    parser.add_argument("--output", default=str(HERE.parent / "results" / "sevennet_materials.json"))
    arguments = parser.parse_args()
    arguments.program, arguments.model = os.path.abspath(arguments.program), os.path.abspath(arguments.model)
    output = pathlib.Path(arguments.output)
    results = json.loads(output.read_text()) if output.exists() else {}
    name, _ = report.processor()
    results.update({"what": "measurements/sevennet/materials.py", "model": "SevenNet-0 (11Jul2024)", "model_sha256": report.sha256(arguments.model)})
    with tempfile.TemporaryDirectory() as scratch:
        if arguments.folder:
            os.makedirs(arguments.folder, exist_ok=True)
        runner = Runner(arguments, arguments.folder or scratch)
        for part in arguments.only:
            results[part] = PARTS[part](runner, results)
            results.setdefault("made", {})[part] = {"machine": f"{os.cpu_count()} cores of {name}", "threads": arguments.threads, "load_average": os.getloadavg()[0], **report.stamp()}
            output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
