# SPDX-License-Identifier: MIT
"""Second derivatives of a golden MACE model by automatic differentiation, for tests/unit/test_hessian.cpp.

  python make_hessian.py ../mace/p03_mace_plain_l1.json p03_mace_plain_l1.json

Needs mace-torch (0.3.16 made the file here). The structure is the first molecule of the golden file."""
import json
import pathlib
import sys

import ase
import torch
from mace.calculators import MACECalculator


def main():
    path = pathlib.Path(sys.argv[1])
    golden = json.loads(path.read_text())
    system = next(system for system in golden["systems"] if not any(system["pbc"]) and 3 <= len(system["numbers"]) <= 12)
    atoms = ase.Atoms(system["numbers"], system["positions"])
    model = torch.load(path.parent / golden["model_file"], map_location="cpu", weights_only=False).double()
    calculator = MACECalculator(models=[model], device="cpu", default_dtype="float64")
    width = 3 * len(atoms)
    hessian = calculator.get_hessian(atoms).reshape(width, width)
    with open(sys.argv[2], "w") as file:
        json.dump({"model_file": golden["model_file"], "system": system["name"], "numbers": system["numbers"], "positions": system["positions"],
                   "hessian": hessian.reshape(-1).tolist()}, file)


main()
