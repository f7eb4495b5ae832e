# SPDX-License-Identifier: MIT
"""GFN2-xTB energies (eV) and forces (eV/angstrom) through tblite."""
import numpy as np
from tblite.interface import Calculator

HARTREE = 27.211386245988  # eV
BOHR = 0.529177210903  # angstrom
ACCURACY = 0.1  # tblite's unit: ten times tighter than its default; forces then repeat to well below 1 meV/angstrom
ELECTRONIC_TEMPERATURE = 300.0  # kelvin
MAX_FORCE = 30.0  # eV/angstrom
MIN_DISTANCE = 0.5  # angstrom


class Rejected(Exception):
    """A frame that must not be used; the text is the reason it is counted under."""


class Labeller:
    """Labels frames of one system. Every call starts from the same guess, so a label depends on its frame alone."""

    def __init__(self, numbers):
        self.numbers = np.asarray(numbers)
        self.calculator = self.loose = self.last = None

    def roughly(self, positions):
        """Forces for a sampler: less accurate, from the density of the call before, and twice as fast."""
        try:
            if self.loose is None:
                self.loose = Calculator("GFN2-xTB", self.numbers, positions / BOHR)
                self.loose.set("verbosity", 0)
                self.loose.set("accuracy", 2.0)
                self.loose.set("temperature", ELECTRONIC_TEMPERATURE * 3.166808578545117e-06)
            else:
                self.loose.update(positions / BOHR)
            self.last = self.loose.singlepoint(self.last)
            forces = -self.last.get("gradient") * (HARTREE / BOHR)
        except RuntimeError as error:
            self.loose = self.last = None
            raise Rejected("xTB failed") from error
        if not np.isfinite(forces).all() or np.abs(forces).max() > 2 * MAX_FORCE:
            self.loose = self.last = None
            raise Rejected("force of the sampler too large")
        return forces

    def __call__(self, positions):
        positions = np.asarray(positions, float)
        if not np.isfinite(positions).all():
            raise Rejected("positions not finite")
        if len(positions) > 1:
            gap = positions[:, None] - positions[None]
            distance2 = (gap * gap).sum(-1)
            np.fill_diagonal(distance2, np.inf)
            if distance2.min() < MIN_DISTANCE**2:
                raise Rejected("atoms closer than 0.5 A")
        try:
            if self.calculator is None:
                self.calculator = Calculator("GFN2-xTB", self.numbers, positions / BOHR)
                self.calculator.set("verbosity", 0)
                self.calculator.set("accuracy", ACCURACY)
                self.calculator.set("temperature", ELECTRONIC_TEMPERATURE * 3.166808578545117e-06)
            else:
                self.calculator.update(positions / BOHR)
            result = self.calculator.singlepoint()
            energy = float(result.get("energy")) * HARTREE
            forces = -result.get("gradient") * (HARTREE / BOHR)
        except RuntimeError as error:
            self.calculator = None
            raise Rejected("xTB failed") from error
        if not (np.isfinite(energy) and np.isfinite(forces).all()):
            raise Rejected("label not finite")
        if np.sqrt((forces * forces).sum(-1)).max() > MAX_FORCE:
            raise Rejected("force above 30 eV/A")
        return energy, forces
