# SPDX-License-Identifier: MIT
"""Writes mace_descriptors.json: invariant descriptors by mace-torch 0.3.16 (MACECalculator.get_descriptors) in float64 for some of
the golden models, each with the first small system of its case.

  python make_descriptors.py      (in an environment with mace-torch)"""
import json
import os
import warnings

warnings.filterwarnings("ignore")

from ase import Atoms
from mace.calculators import MACECalculator

CASES = ["p02_mp0like_l1_c3_f32", "p04_density_agnesi_zbl", "p09_l2_ell3", "p11_3layers_corrlist"]
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mace")


def main():
    found = {}
    for case in CASES:
        with open(os.path.join(FOLDER, case + ".json")) as file:
            golden = json.load(file)
        calculator = MACECalculator(model_paths=os.path.join(FOLDER, golden["model_file"]), device="cpu", default_dtype="float64")
        system = next(s for s in golden["systems"] if 0 < len(s["numbers"]) <= 12)
        atoms = Atoms(system["numbers"], positions=system["positions"], cell=system["cell"], pbc=system["pbc"])
        found[case] = {"system": system["name"], "descriptors": calculator.get_descriptors(atoms, invariants_only=True).tolist()}
    with open(FOLDER + "_descriptors.json", "w") as file:
        json.dump(found, file)
        file.write("\n")


if __name__ == "__main__":
    main()
