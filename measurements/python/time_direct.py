# SPDX-License-Identifier: MIT
"""The same calls as time_calls.c, by Python itself: FACTORY MODEL SYSTEM CALLS, where FACTORY is one of timed.py."""
import sys
import time

import numpy
import timed
from ase import Atoms


def main():
    factory, model, path, calls = sys.argv[1:]
    words = open(path).read().split()
    count, cell = int(words[0]), numpy.array(words[1:10], dtype=float).reshape(3, 3)
    rows = numpy.array(words[10:], dtype=float).reshape(count, 4)
    calculator = timed.mace(model) if factory == "mace" else timed.Nothing()
    atoms = Atoms(numbers=rows[:, 0].astype(int), positions=rows[:, 1:], cell=cell, pbc=True, calculator=calculator)
    for call in range(-3, int(calls)):
        atoms.positions[0, 0] += 1e-4
        begin = time.perf_counter()
        inside = atoms.get_potential_energy()
        atoms.get_forces()
        if call >= 0:
            print("seconds %.9f %.9f" % (time.perf_counter() - begin, inside))


main()
