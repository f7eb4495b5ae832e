# SPDX-License-Identifier: MIT
"""ASE calculators that say how long they took: their energy is the seconds spent inside calculate(). So what a caller adds can be told from what the
calculation takes, on a busy machine too."""
import time

import numpy
from ase.calculators.calculator import Calculator, all_changes


class Nothing(Calculator):
    """Computes nothing."""

    implemented_properties = ["energy", "forces"]

    def calculate(self, atoms=None, properties=("energy",), system_changes=all_changes):
        begin = time.perf_counter()
        super().calculate(atoms, properties, system_changes)
        self.results = {"energy": 0.0, "forces": numpy.zeros((len(atoms), 3))}
        self.results["energy"] = time.perf_counter() - begin


def mace(model):
    from mace.calculators import MACECalculator

    class Timed(MACECalculator):
        def calculate(self, *arguments, **options):
            begin = time.perf_counter()
            super().calculate(*arguments, **options)
            self.results["energy"] = time.perf_counter() - begin

    return Timed(model_paths=model, device="cpu", default_dtype="float64")
