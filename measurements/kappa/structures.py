#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the crystals of docs/thermal-conductivity.md, conventional cells near their lattice constants: structures.py FOLDER. Needs ase."""
import pathlib
import sys

from ase.build import bulk
from ase.io import write

CRYSTALS = {"NaCl": ("rocksalt", 5.65), "MgO": ("rocksalt", 4.26), "LiF": ("rocksalt", 4.06), "NaF": ("rocksalt", 4.62), "CaO": ("rocksalt", 4.83), "GaAs": ("zincblende", 5.75),
            "AlN": ("zincblende", 4.40), "SiC": ("zincblende", 4.38), "ZnSe": ("zincblende", 5.74), "CdTe": ("zincblende", 6.63), "GaN": ("zincblende", 4.55),
            "ZnO": ("zincblende", 4.63), "Si": ("diamond", 5.47), "C": ("diamond", 3.57)}

if len(sys.argv) != 2:
    sys.exit(__doc__)
folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for name, (kind, constant) in CRYSTALS.items():
    write(folder / f"{name}.xyz", bulk(name, kind, a=constant, cubic=True), format="extxyz")
