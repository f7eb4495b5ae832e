# SPDX-License-Identifier: MIT
"""Calculators for tests, with numpy alone: the pair potential of mlff's model "analytic", and ways to misbehave."""
import fcntl
import logging
import os
import signal
import sys
import time
import warnings

import numpy

RADII = {1: 0.31, 6: 0.76, 8: 0.66, 14: 1.11}  # angstrom, those of src/core/elements.cpp
DEPTH, STEEPNESS, SWITCH_BEGIN, CUTOFF = 1.0, 1.8, 3.0, 5.0


def pair(distance, equilibrium):
    """Energy and slope of a pair, see src/engine/analytic_model.h."""
    decay = numpy.exp(-STEEPNESS * (distance - equilibrium))
    well = DEPTH * ((1 - decay) ** 2 - 1)
    well_slope = 2 * DEPTH * STEEPNESS * (1 - decay) * decay
    t = numpy.clip((distance - SWITCH_BEGIN) / (CUTOFF - SWITCH_BEGIN), 0, 1)
    fade = 1 + t**3 * (-10 + t * (15 - 6 * t))
    fade_slope = -30 * t**2 * (1 - t) ** 2 / (CUTOFF - SWITCH_BEGIN)
    return well * fade, well_slope * fade + well * fade_slope


class Pairs:
    """Every pair of every image that can be near enough."""

    implemented_properties = ["energy", "forces", "stress", "energies"]

    def __init__(self, scale=1.0):
        self.scale, self.results = scale, {}

    def calculate(self, atoms, properties, system_changes):
        positions, cell = numpy.asarray(atoms.positions), numpy.asarray(atoms.cell)
        radii = numpy.array([RADII[int(z)] for z in atoms.numbers])
        energies, forces, virial = numpy.zeros(len(atoms)), numpy.zeros((len(atoms), 3)), numpy.zeros((3, 3))
        for shift in images(cell, atoms.pbc):
            vectors = positions[None, :, :] + shift - positions[:, None, :]
            distances = numpy.linalg.norm(vectors, axis=2)
            near = (distances < CUTOFF) & (distances > 0)
            energy, slope = pair(numpy.where(near, distances, 1.0), radii[:, None] + radii[None, :])
            energy, slope = numpy.where(near, energy, 0.0), numpy.where(near, slope, 0.0)
            pulls = (slope / numpy.where(near, distances, 1.0))[:, :, None] * vectors
            energies += 0.5 * energy.sum(axis=1)
            forces += pulls.sum(axis=1)
            virial -= 0.5 * numpy.einsum("ija,ijb->ab", pulls, vectors)
        self.results = {"energy": self.scale * energies.sum(), "energies": self.scale * energies, "forces": self.scale * forces}
        if "stress" in properties:
            full = -self.scale * virial / atoms.get_volume()
            self.results["stress"] = full[[0, 1, 2, 1, 0, 0], [0, 1, 2, 2, 2, 1]]


def images(cell, pbc):
    if not any(pbc):
        return [numpy.zeros(3)]
    heights = abs(numpy.linalg.det(cell)) / numpy.array([numpy.linalg.norm(numpy.cross(cell[i - 2], cell[i - 1])) for i in range(3)])
    counts = [int(numpy.ceil(CUTOFF / height)) + 1 if periodic else 0 for height, periodic in zip(heights, pbc)]
    ranges = [numpy.arange(-count, count + 1) for count in counts]
    return numpy.stack(numpy.meshgrid(*ranges), axis=-1).reshape(-1, 3) @ cell


class EnergyOnly(Pairs):
    """No stress and no energies of atoms."""

    implemented_properties = ["energy", "forces"]


class Waves:
    """Each atom alone in a field: takes little time whatever the number of atoms. Remembers its results as ASE's calculators do; 2 ms unless it does."""

    implemented_properties = ["energy", "forces"]

    def __init__(self):
        self.results, self.seen = {}, None

    def check_state(self, atoms):
        return [] if self.seen is not None and numpy.array_equal(self.seen, atoms.positions) else ["positions"]

    def reset(self):
        self.results = {}

    def calculate(self, atoms, properties, system_changes):
        self.seen = numpy.array(atoms.positions)
        time.sleep(0.002)
        self.results = {"energy": float((1 - numpy.cos(self.seen)).sum()), "forces": -numpy.sin(self.seen)}


class NotFinite(Pairs):
    def calculate(self, atoms, properties, system_changes):
        super().calculate(atoms, properties, system_changes)
        self.results["forces"][-1, 2] = float("nan")


class WrongShape(Pairs):
    def calculate(self, atoms, properties, system_changes):
        super().calculate(atoms, properties, system_changes)
        self.results["forces"] = self.results["forces"][:, :2]


class Misbehaves(Pairs):
    """Does `what` whenever the first atom is beyond 50 angstrom, else calculates."""

    def __init__(self, what):
        super().__init__()
        self.what = what

    def calculate(self, atoms, properties, system_changes):
        if atoms.positions[0][0] > 50:
            getattr(self, self.what)()
        super().calculate(atoms, properties, system_changes)

    def raises(self):
        raise ValueError("the orbitals\ndid not converge")

    def raises_odd_text(self):
        raise ValueError("half \ud800 a character")

    def kills(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def aborts(self):
        os.write(2, b"the last words of a calculator\n")
        os.abort()

    def exits(self):
        os._exit(7)

    def hangs(self):
        while True:
            time.sleep(0.01)

    def sleeps(self):  # long enough for a test to do something meanwhile
        time.sleep(20)

    def stops(self):
        os.kill(os.getpid(), signal.SIGSTOP)

    def shrinks(self):
        os.ftruncate(4, 0)  # the memory shared with libmlff, see src/python_models/protocol.h

    def seals(self):
        fcntl.fcntl(4, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)  # libmlff could no longer enlarge it

    def takes_memory(self):
        numpy.ones(1 << 50)  # 8 PiB


def fails_to_start(**arguments):
    return numpy.linalg.inv(numpy.zeros((2, 2)))


def needs_absent_module():
    import a_module_that_is_not_there

    return a_module_that_is_not_there


def no_calculator():
    return "a text"


class Talks(Pairs):
    def __init__(self):
        super().__init__()
        print("hello from print")
        sys.stderr.write("hello from stderr\n")
        logging.getLogger("teacher").warning("hello from logging")
        warnings.warn("hello from warnings")


class Reports(Pairs):
    """Its energy is that of `pin`, a module that is different in two environments; fails if anything of the host's Python is seen."""

    def calculate(self, atoms, properties, system_changes):
        import pin

        super().calculate(atoms, properties, system_changes)
        self.results["energy"] = pin.NUMBER


class Isolated(Pairs):
    def calculate(self, atoms, properties, system_changes):
        super().calculate(atoms, properties, system_changes)
        assert not [path for path in sys.path if "/not/for/us" in path], sys.path
        assert sys.flags.isolated == 1 and sys.flags.no_user_site == 1
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        self.results["energy"] = float(len([name for name in os.environ if name.startswith("PYTHON")]))


class Descriptors(Pairs):
    """Its energy is the number of open files."""

    def calculate(self, atoms, properties, system_changes):
        super().calculate(atoms, properties, system_changes)
        self.results["energy"] = float(len(os.listdir("/proc/self/fd")) - 1)  # without the one of the listing


class ProcessNumber(Pairs):
    def calculate(self, atoms, properties, system_changes):
        super().calculate(atoms, properties, system_changes)
        self.results["energy"] = float(os.getpid())


class Charged(Pairs):
    """Keeps results as ASE's calculators do, which look at atoms and not at their info."""

    reads_initial_charges = True

    def __init__(self):
        super().__init__()
        self.positions = None

    def check_state(self, atoms):
        return [] if numpy.array_equal(self.positions, atoms.positions) else ["positions"]

    def reset(self):
        self.results = {}

    def calculate(self, atoms, properties, system_changes):
        super().calculate(atoms, properties, system_changes)
        self.positions = atoms.positions.copy()
        self.results["energy"] += 100 * atoms.info["charge"] + 1000 * atoms.info["spin"] + 1e4 * sum(atoms.get_initial_charges()) + 1e5 * sum(atoms.get_initial_magnetic_moments())


def claims(what):
    """A description that nobody should believe: any program can put one in the place of ours."""
    changes = {
        "huge": {"elements": [1, 10**9]},
        "beyond": {"elements": [1, 119]},
        "zero": {"elements": [0]},
        "text": {"elements": "H"},
        "heads": {"heads": []},
        "cutoff": {"cutoff": float("nan")},
        "class": {"class": "\ud800"},
    }[what]
    teacher = sys._getframe(1).f_globals["AseTeacher"]
    describe = teacher.describe
    teacher.describe = lambda self: dict(describe(self), **changes)
    return Pairs()
