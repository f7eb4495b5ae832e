# SPDX-License-Identifier: MIT
"""What scripts/install --python checks an environment against: a water molecule, by the package itself, without mlff.

    ENVIRONMENT/bin/python3 check.py NAME FOLDER

Prints the name of a model for `mlff eval` and the energy (eV) that it must give for FOLDER/water.xyz. Packages that bring no weights (orb, fennol) get a
file in FOLDER, written by themselves: a network of the real kind with the numbers it has before training."""
import os
import sys


def orb(folder):
    import torch
    from orb_models.forcefield import atomic_system, pretrained
    from orb_models.forcefield.calculator import ORBCalculator

    torch.manual_seed(7)
    path = os.path.join(folder, "orb.ckpt")
    settings = atomic_system.SystemConfig(radius=6.0, max_num_neighbors=120)
    torch.save(pretrained.orb_v3_conservative_architecture(device="cpu", system_config=settings).state_dict(), path)
    network = pretrained.orb_v3_conservative_inf_omat(weights_path=path, device="cpu", compile=False, precision="float64")
    return "python:orb?precision=float64&weights_path=" + path, ORBCalculator(network, device="cpu")


def fennol(folder):
    import jax

    jax.config.update("jax_enable_x64", True)
    from fennol import FENNIX
    from fennol.ase import FENNIXCalculator

    modules = {
        "embedding": {"module_name": "PAINN", "dim": 32, "nlayers": 2, "nchannels": 8},
        "energy": {"module_name": "NEURAL_NET", "neurons": [32, 1], "input_key": "embedding"},
    }
    path = os.path.join(folder, "painn.fnx")
    FENNIX(cutoff=5.0, modules=modules, energy_terms=["energy"], energy_unit="eV", rng_key=jax.random.PRNGKey(7)).save(path)
    return "python:fennol?use_float64=true&model=" + path, FENNIXCalculator(model=path, use_float64=True)


def tblite(folder):
    from tblite.ase import TBLite

    return "python:tblite", TBLite(method="GFN2-xTB", verbosity=0)


def sevennet(folder):
    from sevenn.calculator import SevenNetCalculator

    return "python:sevennet", SevenNetCalculator("7net-0", device="cpu")


def chgnet(folder):
    from chgnet.model.dynamics import CHGNetCalculator

    return "python:chgnet", CHGNetCalculator(use_device="cpu")


name, folder = sys.argv[1:]
output, sys.stdout = sys.stdout, sys.stderr  # packages greet their users
from ase.io import read

model, calculator = {"orb": orb, "fennol": fennol, "tblite": tblite, "sevennet": sevennet, "chgnet": chgnet}[name](folder)
atoms = read(os.path.join(folder, "water.xyz"))
atoms.calc = calculator
print(model, "%.9f" % atoms.get_potential_energy(), file=output)
