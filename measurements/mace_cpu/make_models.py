# SPDX-License-Identifier: MIT
"""Saves MACE models in the shapes of released ones, with seeded weights: cost does not depend on what the weights are.
The last linear map of each interaction is scaled so that its messages have size one, and the energy so that forces have: then
the higher orders take part and errors of forces can be read in eV/A.

  python make_models.py FOLDER [NAME...]"""
import os
import sys
import warnings

warnings.filterwarnings("ignore")

import numpy as np
import torch
from ase import Atoms
from e3nn import o3
from mace import data, modules
from mace.tools import AtomicNumberTable, torch_geometric

import systems

RESIDUAL, DENSITY = "RealAgnosticResidualInteractionBlock", "RealAgnosticDensityResidualInteractionBlock"
MP = dict(r_max=6.0, num_bessel=10, first=RESIDUAL, other=RESIDUAL, neighbors=61.9, elements=[1, 6, 7, 8, 14])
OFF = dict(r_max=4.5, num_bessel=8, first="RealAgnosticInteractionBlock", other=RESIDUAL, neighbors=20.0,
           elements=[1, 6, 7, 8, 9, 15, 16, 17, 35, 53])
SHAPES = {
    "mp0-small": dict(MP, hidden="128x0e"),
    "mp0-medium": dict(MP, hidden="128x0e+128x1o"),
    "mp0-large": dict(MP, hidden="128x0e+128x1o+128x2e"),
    "mp0-medium-89": dict(MP, hidden="128x0e+128x1o", elements=list(range(1, 90))),
    "mpa0-medium": dict(MP, hidden="128x0e+128x1o", first="RealAgnosticDensityInteractionBlock", other=DENSITY, pair_repulsion=True,
                        distance_transform="Agnesi"),
    "off23-small": dict(OFF, hidden="96x0e"),
    "off23-medium": dict(OFF, hidden="128x0e+128x1o", r_max=5.0),
}


def build(shape):
    torch.manual_seed(2024)
    return modules.ScaleShiftMACE(
        r_max=shape["r_max"], num_bessel=shape["num_bessel"], num_polynomial_cutoff=5, max_ell=3,
        interaction_cls=modules.interaction_classes[shape["other"]], interaction_cls_first=modules.interaction_classes[shape["first"]],
        num_interactions=2, num_elements=len(shape["elements"]), hidden_irreps=o3.Irreps(shape["hidden"]), MLP_irreps=o3.Irreps("16x0e"),
        gate=torch.nn.functional.silu, atomic_energies=np.array([-1.0 - 0.37 * i for i in range(len(shape["elements"]))]),
        avg_num_neighbors=shape["neighbors"], atomic_numbers=shape["elements"], correlation=3, radial_type="bessel", radial_MLP=[64, 64, 64],
        pair_repulsion=shape.get("pair_repulsion", False), distance_transform=shape.get("distance_transform", "None"),
        atomic_inter_scale=1.0, atomic_inter_shift=0.0, use_reduced_cg=False)  # as in released models, with or without cuEquivariance installed


def forces(model, atoms):
    item = data.AtomicData.from_config(data.config_from_atoms(atoms), z_table=AtomicNumberTable([int(z) for z in model.atomic_numbers]),
                                       cutoff=float(model.r_max), heads=["Default"])
    batch = next(iter(torch_geometric.dataloader.DataLoader([item], batch_size=1)))
    return model(batch.to_dict(), compute_force=True)["forces"].detach()


def calibrate(model, atoms):
    for interaction in model.interactions:
        seen = []
        hook = interaction.register_forward_hook(lambda module, given, result: seen.append(result[0].detach()))
        forces(model, atoms)
        hook.remove()
        with torch.no_grad():
            interaction.linear.weight.div_(seen[0].pow(2).mean().sqrt())
    size = forces(model, atoms).pow(2).mean().sqrt()
    with torch.no_grad():
        model.scale_shift.scale.div_(size)


def main():
    torch.set_default_dtype(torch.float64)
    folder, names = sys.argv[1], sys.argv[2:] or list(SHAPES)
    os.makedirs(folder, exist_ok=True)
    numbers, positions, cell = systems.water(2)
    water = Atoms(numbers, positions=positions, cell=cell, pbc=True)
    for name in names:
        model = build(SHAPES[name])
        calibrate(model, water)
        torch.save(model, os.path.join(folder, name + ".model"))
        print("made", name, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
