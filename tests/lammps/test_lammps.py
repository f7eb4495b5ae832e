# SPDX-License-Identifier: MIT
"""The pair style mlff in an unmodified LAMMPS: the numbers of `mlff eval` and `mlff md`, on any number of ranks.

    test_lammps.py MLFF ENVIRONMENT PLUGIN_FOLDER SOURCE_DIR [GOLDEN_DIR]...

MLFF_TEST_LAMMPS_LONG=1: longer runs, and NVT and NPT of water and of a crystal on 1, 2 and 4 ranks.
MLFF_TEST_LAMMPS_DEVICE=cuda: everything on GPUs, which ranks may share.
"""
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest

MLFF, ENVIRONMENT, PLUGIN_FOLDER, SOURCE_DIR = sys.argv[1:5]
DEVICE = os.environ.get("MLFF_TEST_LAMMPS_DEVICE", "cpu")
FAMILIES = ["mace", "painn"] + (["nequip"] if DEVICE == "cpu" else [])  # which has no CUDA engine
GOLDEN_DIRS = [*(os.path.join(SOURCE_DIR, "tests/golden", family) for family in FAMILIES), *filter(os.path.isdir, sys.argv[5:])]
IS_LONG = os.environ.get("MLFF_TEST_LAMMPS_LONG") == "1"
IS_EXACT = DEVICE == "cpu"  # radial functions: tables take longer to make than small systems to evaluate, and GPUs have nothing else
EXAMPLE = os.path.join(SOURCE_DIR, "bindings/lammps/example")

SYMBOLS = (
    "X H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd "
    "Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu"
).split()
MASSES = {1: 1.008, 6: 12.011, 8: 15.999, 14: 28.085}
PRESSURE_UNIT = 1.6021765e6  # bar in an eV/A^3, as LAMMPS has it

RANKS = (1, 2, 4)


class System:
    """Atoms in a box as LAMMPS wants it: a along x, b in the plane of x and y."""

    def __init__(self, numbers, positions, cell, periodic=(True, True, True), velocities=None):
        self.numbers, self.periodic, self.velocities = list(numbers), list(periodic), velocities
        length = lambda v: math.sqrt(sum(x * x for x in v))
        dot = lambda u, v: sum(x * y for x, y in zip(u, v))
        cross = lambda u, v: [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]]
        a, b, c = cell
        if dot(a, cross(b, c)) < 0:  # LAMMPS wants a right-handed cell of the same lattice
            c = [-x for x in c]
        ax = length(a)
        bx = dot(b, a) / ax
        by = math.sqrt(dot(b, b) - bx * bx)
        cx = dot(c, a) / ax
        cy = (dot(b, c) - bx * cx) / by
        cz = math.sqrt(dot(c, c) - cx * cx - cy * cy)
        self.cell = [[ax, 0.0, 0.0], [bx, by, 0.0], [cx, cy, cz]]
        # Where an atom is in units of a, b, c, and there again.
        self.volume = volume = dot(a, cross(b, c))
        self.positions = []
        for x in positions:
            f = [dot(x, cross(b, c)) / volume, dot(x, cross(c, a)) / volume, dot(x, cross(a, b)) / volume]
            f = [value - math.floor(value) if p else value for value, p in zip(f, self.periodic)]
            self.positions.append([sum(f[k] * self.cell[k][i] for k in range(3)) for i in range(3)])
        for k in range(3):  # an open direction: the box has room for all atoms
            if not self.periodic[k]:
                lowest = min(x[k] for x in self.positions)
                for x in self.positions:
                    x[k] += 1 - lowest
                self.cell[k][k] = max(self.cell[k][k], max(x[k] for x in self.positions) + 1)

    def elements(self):
        return sorted(set(self.numbers))

    def xyz(self):
        lattice = " ".join(repr(x) for row in self.cell for x in row)
        periodic = " ".join("T" if p else "F" for p in self.periodic)
        columns = "species:S:1:pos:R:3" + (":velocities:R:3" if self.velocities else "")
        rows = [f'{len(self.numbers)}\nLattice="{lattice}" pbc="{periodic}" Properties={columns}']
        for i, number in enumerate(self.numbers):
            numbers = self.positions[i] + ([v / 1000 for v in self.velocities[i]] if self.velocities else [])  # A/ps to A/fs
            rows.append(" ".join([SYMBOLS[number], *map(repr, numbers)]))
        return "\n".join(rows) + "\n"

    def data(self):
        types = {number: i + 1 for i, number in enumerate(self.elements())}
        (ax, _, _), (bx, by, _), (cx, cy, cz) = self.cell
        rows = ["a test", "", f"{len(self.numbers)} atoms", f"{len(types)} atom types", f"0 {ax!r} xlo xhi", f"0 {by!r} ylo yhi", f"0 {cz!r} zlo zhi", f"{bx!r} {cx!r} {cy!r} xy xz yz"]
        rows += ["", "Masses", ""] + [f"{kind} {MASSES.get(number, 50.0)}" for number, kind in types.items()]
        rows += ["", "Atoms # atomic", ""] + [" ".join([str(i + 1), str(types[number]), *map(repr, self.positions[i])]) for i, number in enumerate(self.numbers)]
        if self.velocities:
            rows += ["", "Velocities", ""] + [" ".join([str(i + 1), *map(repr, v)]) for i, v in enumerate(self.velocities)]
        return "\n".join(rows) + "\n"

    def symbols(self):
        return " ".join(SYMBOLS[number] for number in self.elements())


def read_xyz(name, repeat=(1, 1, 1)):
    with open(os.path.join(SOURCE_DIR, "src/tools/validate/systems", name + ".xyz")) as file:
        lines = file.read().splitlines()
    lattice = [float(x) for x in re.search(r'Lattice="([^"]*)"', lines[1]).group(1).split()]
    cell = [lattice[3 * k : 3 * k + 3] for k in range(3)]
    numbers, positions = [], []
    for shift in [(i, j, k) for i in range(repeat[0]) for j in range(repeat[1]) for k in range(repeat[2])]:
        for line in lines[2:]:
            symbol, *x = line.split()[:4]
            numbers.append(SYMBOLS.index(symbol))
            positions.append([float(x[i]) + sum(shift[k] * cell[k][i] for k in range(3)) for i in range(3)])
    return System(numbers, positions, [[repeat[k] * x for x in cell[k]] for k in range(3)])


def draw_velocities(system, temperature, seed=7):
    """A/ps; the centre of mass at rest"""
    generator = random.Random(seed)
    masses = [MASSES[number] for number in system.numbers]
    v = [[generator.gauss(0, math.sqrt(8.617333e-5 * temperature / (m * 1.0364269e-4))) for _ in range(3)] for m in masses]
    drift = [sum(m * x[k] for m, x in zip(masses, v)) / sum(masses) for k in range(3)]
    system.velocities = [[x[k] - drift[k] for k in range(3)] for x in v]
    return system


# Everything LAMMPS knows of a step, to all digits: lines of the output, and a dump of all atoms.
COMPUTES = """
compute energies all pe/atom
compute virials all stress/atom NULL virial
thermo_style custom step pe ke etotal temp pxx pyy pzz pyz pxz pxy
thermo_modify norm no
"""
REPORT = """
print "{name} $(pe:%.17g) $(pxx:%.17g) $(pyy:%.17g) $(pzz:%.17g) $(pyz:%.17g) $(pxz:%.17g) $(pxy:%.17g) $(ke:%.17g)"
write_dump all custom {name}.dump id x y z fx fy fz c_energies c_virials[1] c_virials[2] c_virials[3] c_virials[4] c_virials[5] c_virials[6] modify sort id format float %.17g
"""
SETTINGS = """
plugin load mlffplugin.so
units metal
boundary {boundary}
atom_style atomic
{more}
read_data {data}
pair_style {style}
pair_coeff * * {coefficients}
"""


class LammpsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)
        return name

    def lammps(self, script, ranks=1, fails=False):
        self.write("in.test", script)
        environment = dict(os.environ, LD_LIBRARY_PATH=PLUGIN_FOLDER, OMP_NUM_THREADS="1", PATH=ENVIRONMENT + "/bin:" + os.environ["PATH"])
        # More ranks than cores: MPICH's waiting ranks give way.
        environment.update(MPIR_CVAR_CH4_PROGRESS_THROTTLE="1", MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT="16")
        log = os.path.join(self.folder, "test.log")
        if os.path.exists(log):
            os.remove(log)
        command = [ENVIRONMENT + "/bin/mpiexec", "-n", str(ranks), ENVIRONMENT + "/bin/lmp", "-in", "in.test", "-log", "test.log"]
        found = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
        text = found.stdout + found.stderr
        if fails:
            self.assertNotEqual(found.returncode, 0, text)
            if os.path.exists(log):  # what a rank prints last may be lost when MPI ends it
                with open(log) as file:
                    text += file.read()
        else:
            self.assertEqual(found.returncode, 0, script + text)
        return text

    def settings(self, system, model="builtin", style=f"mlff precision fp64 device {DEVICE}", name="system.data", more=""):
        self.write(name, system.data())
        boundary = " ".join("p" if p else "f" for p in system.periodic)
        return SETTINGS.format(boundary=boundary, data=name, style=style, coefficients=f"{model} {system.symbols()}", more=more)

    def report(self, text, name):
        """What REPORT wrote: (energies and pressures, rows of atoms)"""
        line = next(line for line in text.splitlines() if line.startswith(name + " "))
        with open(os.path.join(self.folder, name + ".dump")) as file:
            lines = file.read().splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith("ITEM: ATOMS"))
        return [float(x) for x in line.split()[1:]], [[float(x) for x in line.split()[1:]] for line in lines[start + 1 :]]

    def assert_close(self, found, expected, tolerance, what=""):
        """Arrays of any depth; the tolerance is for the largest number, at least 1"""
        flat = lambda a: [x for row in a for x in flat(row)] if isinstance(a, (list, tuple)) else [a]
        found, expected = flat(found), flat(expected)
        self.assertEqual(len(found), len(expected), what)
        limit = tolerance * max([1.0, *map(abs, expected)])
        for i, (f, e) in enumerate(zip(found, expected)):
            self.assertTrue(abs(f - e) <= limit, f"{what}: number {i} is {f!r}, expected {e!r}, off by {abs(f - e)}, allowed {limit}")

    def assert_same_reports(self, found, expected, tolerance, what):
        self.assert_close(found[0], expected[0], tolerance, what + ", energy and pressure")
        for first, last, name in ((0, 3, "positions"), (3, 6, "forces"), (6, 7, "atom energies"), (7, 13, "atom virials")):
            columns = lambda report: [row[first:last] for row in report[1]]
            self.assert_close(columns(found), columns(expected), tolerance, f"{what}, {name}")

    def evaluate(self, systems, model, *options):
        path = os.path.join(self.folder, "eval.xyz")
        with open(path, "w") as file:
            file.write("".join(system.xyz() for system in systems))
        command = [MLFF, "eval", path, "--model", model, "--device", DEVICE, "--precision", "fp64", "--json", "-", *options]
        found = subprocess.run(command, capture_output=True, text=True, timeout=300)
        self.assertEqual(found.returncode, 0, found.stderr)
        return json.loads(found.stdout)["frames"]

    def assert_evaluated(self, report, frame, system, tolerance=1e-10):
        self.assert_close(report[0][0], frame["energy"], tolerance, "energy")
        self.assert_close([row[3:6] for row in report[1]], frame["forces"], tolerance, "forces")
        self.assert_close([row[6] for row in report[1]], frame["atom_energies"], tolerance, "atom energies")
        if all(system.periodic):
            xx, yy, zz, yz, xz, xy = frame["stress"]
            self.assert_close(report[0][1:7], [-PRESSURE_UNIT * s for s in (xx, yy, zz, yz, xz, xy)], tolerance, "pressure")


class GoldenTest(LammpsTest):
    def test_periodic_goldens(self):
        """Every periodic system of every golden model, at rest: `mlff eval` on one rank, and the same on 2 and 4."""
        script, cases, seen = "", [], set()
        for directory in GOLDEN_DIRS:
            for file_name in sorted(os.listdir(directory)):
                if not file_name.endswith(".json") or file_name in seen:
                    continue
                seen.add(file_name)
                with open(os.path.join(directory, file_name)) as file:
                    golden = json.load(file)
                if "systems" not in golden or golden.get("container") == "state_dict" or golden.get("architecture", {}).get("cls") == "EnergyDipolesMACE":
                    continue
                stem = file_name[:-5]
                model = os.path.join(directory, golden.get("model_file", stem + ".safetensors"))
                heads = json.loads(subprocess.run([MLFF, "model", "info", model, "--json", "-"], capture_output=True, text=True, check=True).stdout).get("heads") or []
                head = heads[0] if len(heads) > 1 else None
                systems = [System(r["numbers"], r["positions"], r["cell"], map(bool, r["pbc"])) for r in golden["systems"] if any(r["pbc"]) and len(r["numbers"]) > 0]
                if not systems:
                    continue
                frames = self.evaluate(systems, model, *(["--exact-radial"] if IS_EXACT else []), *(["--head", head] if head else []))
                for i, (system, frame) in enumerate(zip(systems, frames)):
                    name = f"{stem}_{i}"
                    style = f"mlff precision fp64 device {DEVICE}" + (" radial exact" if IS_EXACT else "") + (f" head {head}" if head else "")
                    script += self.settings(system, model, style, name + ".data", "box tilt large") + COMPUTES + "run 0 post no\n" + REPORT.format(name=name) + "clear\n"
                    cases.append((name, system, frame))
        self.assertGreaterEqual(len(cases), 20)
        alone = {}
        for ranks in RANKS:
            text = self.lammps(script, ranks)
            for name, system, frame in cases:
                with self.subTest(name, ranks=ranks):
                    report = self.report(text, name)
                    self.assert_evaluated(report, frame, system)
                    alone.setdefault(name, report)
                    self.assert_same_reports(report, alone[name], 1e-10, f"{name} on {ranks} ranks")


class DynamicsTest(LammpsTest):
    def compare_ranks(self, script, name, tolerance, ranks=RANKS):
        alone = None
        for count in ranks:
            report = self.report(self.lammps(script, count), name)
            alone = alone or report
            self.assert_same_reports(report, alone, tolerance, f"{name} on {count} ranks")
        return alone

    def test_nve_is_that_of_mlff_md(self):
        """The same start, the same end, but for the last digits of LAMMPS' constants; on several ranks too."""
        steps = 40 if IS_LONG else 15
        for name, system in (("water", draw_velocities(read_xyz("water_box"), 300)), ("crystal", draw_velocities(read_xyz("diamond", (2, 2, 2)), 600))):
            command = [MLFF, "md", self.write(name + ".xyz", system.xyz()), "--ensemble", "nve", "--steps", str(steps), "--dt", "0.5", "--device", DEVICE, "--precision", "fp64", "--threads", "1"]
            command += ["--output", name + "_end.xyz", "--output-every", str(steps)]
            found = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=600)
            self.assertEqual(found.returncode, 0, found.stderr)
            with open(os.path.join(self.folder, name + "_end.xyz")) as file:
                last = file.read().splitlines()[-len(system.numbers) :]
            expected = [[float(x) for x in line.split()[1:4]] for line in last]
            script = self.settings(system) + COMPUTES + f"fix 1 all nve\ntimestep 0.0005\nrun {steps}\n" + REPORT.format(name=name)
            report = self.compare_ranks(script, name, 1e-9, RANKS if IS_LONG else (1, 2))
            for row, x in zip(report[1], expected):
                off = [row[k] - x[k] for k in range(3)]
                for k in (2, 1, 0):  # the nearest image
                    count = round(off[k] / system.cell[k][k])
                    off = [o - count * e for o, e in zip(off, system.cell[k])]
                self.assert_close(off, [0, 0, 0], 2e-7, "positions after NVE of " + name)

    def test_migration(self):
        """Hot water, a small skin: many new lists, atoms that change ranks."""
        system = draw_velocities(read_xyz("water_box"), 1500)
        steps = 150 if IS_LONG else 40
        script = self.settings(system) + COMPUTES + "neighbor 0.3 bin\nneigh_modify every 1 delay 0 check yes\nfix 1 all nve\ntimestep 0.0005\n"
        report = self.compare_ranks(script + f"run {steps}\n" + REPORT.format(name="hot"), "hot", 1e-7, RANKS if IS_LONG else (1, 4))
        tiled = "comm_style tiled\nfix 2 all balance 10 1.0 rcb\n"  # bricks of any size, which follow the atoms
        self.assert_same_reports(self.report(self.lammps(script + tiled + f"run {steps}\n" + REPORT.format(name="hot"), 4), "hot"), report, 1e-7, "tiled")
        # Energy is conserved: to the drift of the time step, far below what a missed neighbour would do.
        start = self.report(self.lammps(script + "run 0\n" + REPORT.format(name="hot"), 2), "hot")
        self.assert_close(report[0][0] + report[0][7], start[0][0] + start[0][7], 1e-4, "total energy")

    def test_a_rank_without_atoms(self):
        system = read_xyz("water_box")
        system.periodic = [True, True, False]
        system.cell[2][2] = 60.0
        draw_velocities(system, 300)
        script = self.settings(system, more="processors 1 1 *") + COMPUTES + "fix 1 all nve\ntimestep 0.0005\nrun 5\n" + REPORT.format(name="slab")
        self.compare_ranks(script, "slab", 1e-9, (1, 4))

    def test_ensembles(self):
        """NVT and NPT, the cell changing its shape: the same on any number of ranks."""
        water, crystal = draw_velocities(read_xyz("water_box"), 300), draw_velocities(read_xyz("silicon", (2, 2, 2)), 300)
        mace = os.path.join(SOURCE_DIR, "tests/golden/mace/p13_chebyshev_agnesi.model")
        sets = ((water, "builtin", "fix 1 all npt temp 300 300 0.05 tri 1000 1000 0.5", "npt"),)
        if IS_LONG:
            nvt = "fix 1 all nvt temp 300 300 0.05"
            sets += ((water, "builtin", nvt, "nvt"), (crystal, mace, nvt, "crystal_nvt"), (crystal, mace, "fix 1 all npt temp 300 300 0.05 aniso 0 0 0.5", "crystal_npt"))
        for system, model, fix, name in sets:
            script = self.settings(system, model) + COMPUTES + f"{fix}\ntimestep 0.0005\nrun {40 if IS_LONG else 10}\n" + REPORT.format(name=name)
            self.compare_ranks(script, name, 1e-8, RANKS if IS_LONG else (1, 2))

    def test_restart(self):
        system = draw_velocities(read_xyz("water_box"), 300)
        move = COMPUTES + "fix 1 all nve\ntimestep 0.0005\n"
        whole = self.report(self.lammps(self.settings(system) + move + "run 5\nwrite_restart five.restart\nrun 5\n" + REPORT.format(name="whole"), 2), "whole")
        again = f"plugin load mlffplugin.so\nread_restart five.restart\npair_style mlff precision fp64 device {DEVICE}\npair_coeff * * builtin H O\n" + move
        text = self.lammps(again + "run 5\n" + REPORT.format(name="again"), 2)
        self.assert_same_reports(self.report(text, "again"), whole, 1e-10, "restart")

    def test_the_example(self):
        """The README's example is that of the folder, and it runs."""
        with open(os.path.join(EXAMPLE, "in.water")) as file:
            script = file.read()
        with open(os.path.join(SOURCE_DIR, "bindings/lammps/README.md")) as file:
            self.assertIn("```\n" + script + "```", file.read())
        with open(os.path.join(EXAMPLE, "water.data")) as file:
            self.write("water.data", file.read())
        text = self.lammps(script, 4)
        self.assertRegex(text, r"mlff: builtin \(PaiNN\) on (cpu|cuda:\d+(, cuda:\d+)*) \(4 ranks(; [^)]*)?\), precision mixed, 1 thread per rank")
        temperature = float(text[: text.index("Loop time")].split("\n")[-2].split()[1])
        self.assertTrue(100 < temperature < 500, text)


# The spread of a committee: a line of the output, and a dump of all atoms.
SPREAD = """
compute spread all pair mlff
fix spread all pair {every} mlff sigma_forces 1
thermo_style custom step pe c_spread[1] c_spread[2]
"""
SPREAD_REPORT = """
print "{name} $(c_spread[1]:%.17g) $(c_spread[2]:%.17g)"
write_dump all custom {name}.dump id x y z fx fy fz f_spread modify sort id format float %.17g
"""
# Members of different cutoffs, one a sum, one not PaiNN.
COMMITTEE = "builtin,self-test,builtin+zbl"


class CommitteeTest(LammpsTest):
    def assert_spread(self, report, sigma, tolerance=1e-10, unit=1.0):
        self.assertGreater(sigma["max_force"], 0.1)
        self.assert_close(report[0], [unit * sigma["energy_per_atom"], unit * sigma["max_force"]], tolerance, "spread")
        self.assert_close([row[6] for row in report[1]], [unit * s for s in sigma["forces"]], tolerance, "spread of forces")

    def test_spread_is_that_of_mlff_eval(self):
        """At rest, on any number of ranks; nothing else changes by it."""
        water = read_xyz("water_box")
        frame = self.evaluate([water], COMMITTEE)[0]
        for ranks in RANKS:
            script = self.settings(water, COMMITTEE) + SPREAD.format(every=1) + "run 0\n" + SPREAD_REPORT.format(name="spread")
            script += "unfix spread\nthermo_style custom step pe\nuncompute spread\nrun 0\nwrite_dump all custom plain.dump id x y z fx fy fz modify sort id format float %.17g\n"
            report = self.report(self.lammps(script, ranks), "spread")
            self.assert_spread(report, frame["sigma"])
            self.assert_close([row[3:6] for row in report[1]], frame["forces"], 1e-10, "forces")
            plain = self.report("plain 0", "plain")
            self.assertEqual([row[:6] for row in report[1]], plain[1])

    def test_spread_with_other_ghosts(self):
        """Ghosts from far beyond the neighbour list, and ghosts of bricks of any size."""
        water = read_xyz("water_box")
        for model, more in (("builtin+d3:pbe,self-test", "neighbor 0.3 bin\n"), (COMMITTEE, "comm_style tiled\n")):
            sigma = self.evaluate([water], model)[0]["sigma"]
            for ranks in (2, 4):
                script = self.settings(water, model) + more + SPREAD.format(every=1) + "run 0\n" + SPREAD_REPORT.format(name="ghosts")
                self.assert_spread(self.report(self.lammps(script, ranks), "ghosts"), sigma)

    def test_spread_of_moving_atoms(self):
        """Hot water, whose atoms change ranks and whose lists change; some bricks without atoms. The frames are those of LAMMPS."""
        water = draw_velocities(read_xyz("water_box"), 1500)
        slab = System(water.numbers, water.positions, [water.cell[0], water.cell[1], [0, 0, 60.0]], [True, True, False], water.velocities)
        move = "neighbor 0.3 bin\nneigh_modify every 1 delay 0 check yes\nfix 1 all nve\ntimestep 0.0005\nthermo 4\nrun 16\n"
        for name, system, more in (("box", water, ""), ("slab", slab, "processors 1 1 *")):
            for ranks in (1, 4):
                script = self.settings(system, COMMITTEE, more=more) + SPREAD.format(every=4) + move + SPREAD_REPORT.format(name=name)
                report = self.report(self.lammps(script, ranks), name)
                moved = System(system.numbers, [row[:3] for row in report[1]], system.cell, system.periodic)
                moved.positions = [row[:3] for row in report[1]]
                frame = self.evaluate([moved], COMMITTEE)[0]
                self.assert_close([row[3:6] for row in report[1]], frame["forces"], 1e-10, "forces")
                self.assert_spread(report, frame["sigma"])

    def test_spread_beside_other_styles(self):
        """Atoms of other types have none and are not counted; units real."""
        water = read_xyz("water_box")
        mixed = System(water.numbers + [18], water.positions + [[5.0, 5.0, 42.0]], [water.cell[0], water.cell[1], [0, 0, 60.0]], [True, True, False])
        slab = System(water.numbers, water.positions, mixed.cell, [True, True, False])
        sigma = self.evaluate([slab], COMMITTEE)[0]["sigma"]
        sigma["forces"] = sigma["forces"] + [0.0]
        style = f"hybrid mlff precision fp64 device {DEVICE} zero 8.0"
        for ranks in (1, 2):
            script = self.settings(mixed, "zero", style).replace("pair_coeff * * zero H O Ar", f"pair_coeff * * mlff {COMMITTEE} H O NULL\npair_coeff * 3 zero")
            script = script.replace("units metal", "units real") + SPREAD.format(every=1) + "run 0\n" + SPREAD_REPORT.format(name="types")
            self.assert_spread(self.report(self.lammps(script, ranks), "types"), sigma, 1e-7, 23.060549)

    def test_members_that_agree(self):
        water = read_xyz("water_box")
        for ranks in (1, 2):
            script = self.settings(water, "builtin,builtin") + SPREAD.format(every=1) + "run 0\n" + SPREAD_REPORT.format(name="same")
            report = self.report(self.lammps(script, ranks), "same")
            self.assertEqual(report[0], [0.0, 0.0])
            self.assertEqual([row[6] for row in report[1]], 192 * [0.0])

    def test_spread_errors(self):
        good, committee = self.settings(read_xyz("water_box")), self.settings(read_xyz("water_box"), COMMITTEE)
        cases = [
            (good + "fix s all pair 1 mlff sigma_forces 1\n", "a spread was asked for, but builtin is no committee"),
            (good.replace("builtin", "self-test") + "compute s all pair mlff\nthermo_style custom step c_s[1]\nrun 0\n", "does not compute"),
            (committee + "fix s all pair 1 mlff sigma_forces 1\npair_coeff * * builtin H O\nrun 0\n", "a spread was asked for, but builtin is no committee"),
            (committee + "fix s all pair 1 mlff sigma_forces 0\nrun 0\n", "sigma_forces"),
            (committee + "fix s all pair 1 mlff sigma 1\n", "sigma_flag"),
        ]
        for script, message in cases:
            for ranks in (1, 2):
                with self.subTest(message, ranks=ranks):
                    self.assertIn(message, " ".join(self.lammps(script, ranks, fails=True).split()))


# What the trust meter says: a line of the output, and a dump of all atoms.
TRUST = """
compute trust all pair mlff
fix trust all pair {every} mlff expected_errors 1 novelties 1
thermo_style custom step pe c_trust[1] c_trust[2]
"""
TRUST_REPORT = """
print "{name} $(c_trust[1]:%.17g) $(c_trust[2]:%.17g)"
write_dump all custom {name}.dump id x y z fx fy fz f_trust[1] f_trust[2] modify sort id format float %.17g
"""


class TrustTest(LammpsTest):
    def assert_trust(self, report, trust, tolerance=1e-6, unit=1.0):
        """Relative to each number: errors are far below 1. The meter reads descriptors in single precision."""
        expected = [unit * trust["max_expected_error"], max(trust["novelties"])]
        self.assertEqual((len(report[0]), len(report[1])), (2, len(trust["expected_errors"])))
        pairs = [*zip(report[0], expected)]
        for row, error, novelty in zip(report[1], trust["expected_errors"], trust["novelties"]):
            pairs += [(row[6], unit * error), (row[7], novelty)]
        for i, (found, wanted) in enumerate(pairs):
            self.assertTrue(abs(found - wanted) <= tolerance * wanted, f"number {i} is {found!r}, expected {wanted!r}")

    def test_trust_is_that_of_mlff_eval(self):
        """At rest, on any number of ranks; nothing else changes by it. Two elements of water in disorder, one atom of which is out of place."""
        water = read_xyz("water_box")
        water.positions[0][0] += 0.25
        for model, more in (("builtin", ""), ("builtin+zbl", "comm_style tiled\n"), ("builtin+d3:pbe", "neighbor 0.3 bin\n")):
            frame = self.evaluate([water], model)[0]
            self.assertGreater(max(frame["trust"]["expected_errors"]), 2 * min(frame["trust"]["expected_errors"]))
            for ranks in RANKS:
                script = self.settings(water, model) + (more if ranks > 1 else "") + TRUST.format(every=1) + "run 0\n" + TRUST_REPORT.format(name="trust")
                script += "unfix trust\nthermo_style custom step pe\nuncompute trust\nrun 0\nwrite_dump all custom plain.dump id x y z fx fy fz modify sort id format float %.17g\n"
                report = self.report(self.lammps(script, ranks), "trust")
                with self.subTest(model, ranks=ranks):
                    self.assert_trust(report, frame["trust"])
                    self.assert_close([row[3:6] for row in report[1]], frame["forces"], 1e-10, "forces")
                    self.assertEqual([row[:6] for row in report[1]], self.report("plain 0", "plain")[1])

    def test_trust_of_moving_atoms(self):
        """Hot water, whose atoms change ranks and whose lists change; some bricks without atoms. The frames are those of LAMMPS."""
        water = draw_velocities(read_xyz("water_box"), 1500)
        slab = System(water.numbers, water.positions, [water.cell[0], water.cell[1], [0, 0, 60.0]], [True, True, False], water.velocities)
        move = "neighbor 0.3 bin\nneigh_modify every 1 delay 0 check yes\nfix 1 all nve\ntimestep 0.0005\nthermo 4\nrun 16\n"
        for name, system, more in (("box", water, ""), ("slab", slab, "processors 1 1 *")):
            for ranks in RANKS:
                report = self.report(self.lammps(self.settings(system, more=more) + TRUST.format(every=4) + move + TRUST_REPORT.format(name=name), ranks), name)
                moved = System(system.numbers, [row[:3] for row in report[1]], system.cell, system.periodic)
                moved.positions = [row[:3] for row in report[1]]
                with self.subTest(name, ranks=ranks):
                    self.assert_trust(report, self.evaluate([moved], "builtin")[0]["trust"])

    def test_trust_beside_other_styles(self):
        """Atoms of other types have none; units real; one of the two numbers alone."""
        water = read_xyz("water_box")
        mixed = System(water.numbers + [18], water.positions + [[5.0, 5.0, 42.0]], [water.cell[0], water.cell[1], [0, 0, 60.0]], [True, True, False])
        slab = System(water.numbers, water.positions, mixed.cell, [True, True, False])
        trust = self.evaluate([slab], "builtin")[0]["trust"]
        for key in ("expected_errors", "novelties"):
            trust[key] = trust[key] + [0.0]
        style = f"hybrid mlff precision fp64 device {DEVICE} zero 8.0"
        for ranks in (1, 2):
            script = self.settings(mixed, "zero", style).replace("pair_coeff * * zero H O Ar", "pair_coeff * * mlff builtin H O NULL\npair_coeff * 3 zero")
            script = script.replace("units metal", "units real") + TRUST.format(every=1) + "run 0\n" + TRUST_REPORT.format(name="types")
            self.assert_trust(self.report(self.lammps(script, ranks), "types"), trust, 1e-6, 23.060549)
            script = self.settings(water) + "fix n all pair 1 mlff novelties 1\nrun 0\nwrite_dump all custom only.dump id f_n modify sort id format float %.17g\n"
            self.lammps(script, ranks)
            novelties = [row[0] for row in self.report("only 0", "only")[1]]
            self.assert_close(novelties, self.evaluate([water], "builtin")[0]["trust"]["novelties"], 1e-6, "novelties")

    def test_trust_errors(self):
        good = self.settings(read_xyz("water_box"))
        ask = "fix s all pair 1 mlff expected_errors 1\n"
        none = "expected errors were asked for, but self-test has no trust meter; `mlff trust fit` makes one"
        cases = [
            (good.replace("builtin", "self-test") + ask, none),
            (good.replace("builtin", "self-test") + ask.replace("expected_errors", "novelties"), none),
            (good.replace("builtin", COMMITTEE) + ask, f"expected errors were asked for, but {COMMITTEE} has no trust meter"),
            (good + ask + "pair_coeff * * self-test H O\nrun 0\n", none),
            (good + ask.replace("expected_errors", "expected_error"), "expected_error_flag"),
        ]
        for script, message in cases:
            for ranks in (1, 2):
                with self.subTest(message, ranks=ranks):
                    self.assertIn(message, " ".join(self.lammps(script, ranks, fails=True).split()))


class StyleTest(LammpsTest):
    def test_hybrid_overlay_and_isolated_atoms(self):
        """Beside other styles on the same atoms; types that are not ours; a free atom has its E0."""
        water = read_xyz("water_box")
        frame = self.evaluate([water], "builtin")[0]
        free = self.evaluate([System([8], [[1, 1, 1]], [[30, 0, 0], [0, 30, 0], [0, 0, 30]])], "builtin")[0]["energy"]
        mixed = System(water.numbers + [8, 18], water.positions + [[5.0, 5.0, 30.0], [5.0, 5.0, 42.0]], [water.cell[0], water.cell[1], [0, 0, 60.0]], [True, True, False])
        slab = System(water.numbers, water.positions, mixed.cell, [True, True, False])
        slab_frame = self.evaluate([slab], "builtin")[0]
        for ranks in (1, 2):
            script = self.settings(water, "zero", f"hybrid/overlay mlff precision fp64 device {DEVICE} lj/cut 6.0 zero 8.0").replace(
                "pair_coeff * * zero H O", "pair_coeff * * mlff builtin H O\npair_coeff * * lj/cut 0.0 1.0\npair_coeff * * zero"
            )
            report = self.report(self.lammps(script + COMPUTES + "run 0\n" + REPORT.format(name="overlay"), ranks), "overlay")
            self.assert_evaluated(report, frame, water)
            script = self.settings(mixed, "zero", f"hybrid mlff precision fp64 device {DEVICE} zero 8.0").replace(
                "pair_coeff * * zero H O Ar", "pair_coeff * * mlff builtin H O NULL\npair_coeff * 3 zero"
            )
            report = self.report(self.lammps(script + COMPUTES + "run 0\n" + REPORT.format(name="types"), ranks), "types")
            self.assert_close(report[0][0], slab_frame["energy"] + free, 1e-10, "energy")
            self.assert_close(report[1][192][6], free, 1e-10, "a free atom")
            self.assert_close(report[1][193], [5.0, 5.0, report[1][193][2]] + 10 * [0], 1e-10, "an atom of another type")
            self.assert_close([row[3:6] for row in report[1][:192]], slab_frame["forces"], 1e-10, "forces")

    def test_real_units_and_sums_of_atoms(self):
        water = read_xyz("water_box")
        frame = self.evaluate([water], "builtin")[0]
        flux = "compute kinetic all ke/atom\ncompute flux all heat/flux kinetic energies virials\ncompute sum all reduce sum c_energies c_virials[1] c_virials[4]\n"
        sums = 'print "sums $(c_sum[1]:%.17g) $(c_sum[2]:%.17g) $(c_sum[3]:%.17g) $(c_flux[1]:%.17g)"\n'
        for ranks in (1, 2):
            script = self.settings(water) + COMPUTES + flux + "thermo_modify norm no\nrun 0\n" + REPORT.format(name="metal")
            script = script.replace("run 0\n", "thermo_style custom step pe pxx pyy pzz pyz pxz pxy ke c_sum[*] c_flux[*]\nthermo_modify norm no\nrun 0\n") + sums
            text = self.lammps(script, ranks)
            metal = self.report(text, "metal")
            self.assert_evaluated(metal, frame, water)
            total, xx, xy, flow = map(float, next(line for line in text.splitlines() if line.startswith("sums ")).split()[1:])
            self.assert_close(total, metal[0][0], 1e-10, "sum of atom energies")
            self.assert_close([-xx / water.volume, -xy / water.volume], [metal[0][1], metal[0][6]], 1e-9, "sum of atom virials")
            self.assertEqual(flow, 0.0)  # nothing moves
            real = self.report(self.lammps(self.settings(water).replace("units metal", "units real") + COMPUTES + "run 0\n" + REPORT.format(name="real"), ranks), "real")
            unit = 23.060549
            self.assert_close(real[0][0], unit * frame["energy"], 1e-7, "energy in kcal/mol")
            self.assert_close([row[3:6] for row in real[1]], [[unit * x for x in row] for row in frame["forces"]], 1e-7, "forces in kcal/mol/A")

    def test_dispersion(self):
        """A term that finds its neighbours itself, in ghosts from far beyond the neighbour list: at rest, and as atoms change ranks."""
        water = read_xyz("water_box")
        move = "velocity all create 1500 4711 loop geom\nneighbor 0.3 bin\nneigh_modify every 1 delay 0 check yes\nfix 1 all nve\ntimestep 0.0005\nrun 10\n"
        for model, name in (("builtin d3 pbe", "builtin+d3:pbe"), ("d3:s8=0.7,a1=0.4,a2=4.4", "d3:s8=0.7,a1=0.4,a2=4.4")):
            frame, alone = self.evaluate([water], name)[0], None
            for ranks in RANKS:
                text = self.lammps(self.settings(water, model) + COMPUTES + "run 0\n" + REPORT.format(name="rest") + move + REPORT.format(name="moved"), ranks)
                self.assertIn(f"mlff: {name} (", text)
                self.assert_evaluated(self.report(text, "rest"), frame, water)
                alone = alone or self.report(text, "moved")
                self.assert_same_reports(self.report(text, "moved"), alone, 1e-8, f"{name} on {ranks} ranks")

    def test_mixed_precision(self):
        water = read_xyz("water_box")
        frame = self.evaluate([water], "builtin")[0]
        for ranks in (1, 2):
            report = self.report(self.lammps(self.settings(water, style=f"mlff precision mixed device {DEVICE} threads 2") + COMPUTES + "run 0\n" + REPORT.format(name="mixed"), ranks), "mixed")
            self.assert_evaluated(report, frame, water, 2e-5)

    @unittest.skipIf(DEVICE == "cpu", "rows stay in memory of the host")
    def test_rows_of_gpus(self):
        """By MPI, read on other GPUs, which may be the same, and through host memory that ranks share; the default is one of these."""
        water = draw_velocities(read_xyz("water_box"), 300)
        move = COMPUTES + "fix 1 all nve\ntimestep 0.0005\nneigh_modify every 1 delay 3 check no\nrun 12\n"
        texts = {"host": "through memory of the host", "shared": "in memory of other GPUs", "window": "through host memory that ranks share"}
        for precision, tolerance in (("fp64", 1e-9), ("mixed", 1e-3)):
            reports = {}
            for rows in ("host", "shared", "window", "auto"):
                script = self.settings(water, style=f"mlff precision {precision} device {DEVICE} rows {rows}") + move + REPORT.format(name=rows)
                try:
                    output = self.lammps(script, 4)
                except AssertionError as failure:
                    if rows == "shared" and "cannot read the GPU memory" in str(failure):
                        continue
                    raise
                chosen = ("shared" if "shared" in reports else "window") if rows == "auto" else rows
                self.assertIn(texts[chosen], output)
                reports[rows] = self.report(output, rows)
                self.assert_same_reports(reports[rows], reports["host"], tolerance, f"rows {rows} and by MPI, {precision}")

    def test_a_style_given_again(self):
        """New settings for the coefficients that are there."""
        water = read_xyz("water_box")
        frame = self.evaluate([water], "builtin")[0]
        script = self.settings(water, style="mlff precision mixed") + f"pair_style mlff precision fp64 device {DEVICE}\n" + COMPUTES + "run 0\n" + REPORT.format(name="again")
        text = self.lammps(script, 2)
        self.assertIn("precision fp64", text)
        self.assert_evaluated(self.report(text, "again"), frame, water)

    def test_errors(self):
        """One sentence through LAMMPS, that names the file and what was expected."""
        water = read_xyz("water_box")
        self.write("broken.model", "this is no model")
        good = self.settings(water)
        cases = [
            (good.replace("builtin H O", "nothing.model H O"), 2, "nothing.model"),
            (good.replace("builtin H O", "broken.model H O"), 2, "broken.model"),
            (good.replace("builtin H O", "builtin H Xe"), 2, "builtin: atom type 2 is Xe, which the model does not know; it knows H"),
            (good.replace("builtin H O", "builtin H Oxygen"), 1, "Oxygen is no element"),
            (good.replace("builtin H O", "builtin H"), 1, "1 elements for 2 atom types"),
            (good.replace("builtin H O", "builtin d3 H O"), 1, "d3 has no functional; expected * * MODEL d3 FUNCTIONAL and an element, or NULL, for each atom type"),
            (good.replace("builtin H O", "builtin d3"), 1, "d3 has no functional"),
            (good.replace("builtin H O", "builtin d3 pbe H"), 1, "1 elements for 2 atom types"),
            (good.replace("builtin H O", "builtin d3 pbe H O O"), 1, "3 elements for 2 atom types"),
            (good.replace("builtin H O", "builtin H O d3 pbe"), 1, "4 elements for 2 atom types"),
            (good.replace("builtin H O", "builtin d3 no-such-functional H O"), 2, "no-such-functional"),
            (good.replace("builtin H O", "builtin d3 pbe+zbl H O"), 1, "d3 'pbe+zbl': expected one functional, such as pbe:zero"),
            (good.replace("builtin H O", "builtin+d3:pbe d3 pbe H O"), 2, "has the term d3:pbe already: dispersion would be counted twice"),
            (good.replace("builtin H O", "builtin d3 pbe H O") + "neighbor 2.0 multi\ncomm_modify mode multi\nrun 0\n", 2, "on several ranks this model needs comm_modify mode single"),
            (good.replace("builtin H O", "builtin NULL NULL"), 1, "no atom type has an element"),
            (good.replace("precision fp64", "precision fp65"), 1, "precision fp65 is none of"),
            (good.replace("precision fp64", "speed high"), 1, "unknown keyword speed"),
            (good.replace("precision fp64", "threads 0"), 1, "threads 0, expected 1 to 4096"),
            (good.replace("precision fp64", "radial rough"), 1, "radial rough, expected tables or exact"),
            (good.replace("precision fp64", "rows fast"), 1, "rows fast, expected auto, host, device, shared or window"),
            (good.replace("precision fp64", "head nobody"), 2, "no head 'nobody'"),
            (good.replace("device " + DEVICE, "device"), 1, "device has no value"),
            (good.replace("device " + DEVICE, "device toaster"), 1, "device 'toaster' is none of"),
            (good.replace("device " + DEVICE, "device reference"), 2, "device reference works on one MPI rank only"),
            (good.replace("device " + DEVICE, "device cuda:99"), 2, "builtin: device 'cuda:99'"),
            (good.replace("units metal", "units lj") + "run 0\n", 1, "needs units metal or real, not lj"),
            (good.replace("units metal", "units metal\nnewton off") + "run 0\n", 2, "needs newton pair on"),
            (good + "group o type 2\nneigh_modify exclude group o o\nrun 0\n", 2, "neigh_modify exclude"),
            (good + "compute c all centroid/stress/atom NULL\nrun 0\n", 1, "centroid"),
        ]
        for script, ranks, message in cases:
            with self.subTest(message):
                self.assertIn(message, " ".join(self.lammps(script, ranks, fails=True).split()))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
