# SPDX-License-Identifier: MIT
"""mace-torch as the peer, plain ("e3nn") or with cuEquivariance ("cueq"), timed kindly: its neighbour list is made beforehand, results
stay on the device, and stress is computed only where it is asked for."""
import importlib.metadata

import torch
from ase import Atoms
from mace import data
from mace.tools import AtomicNumberTable, torch_geometric

PACKAGES = ["torch", "mace-torch", "e3nn", "cuequivariance", "cuequivariance-torch", "cuequivariance-ops-cu13", "cuequivariance-ops-torch-cu13", "cuequivariance-ops-cu12",
            "cuequivariance-ops-torch-cu12"]


def versions():
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return {**found, "torch CUDA": torch.version.cuda}


def load(model_file, kind, precision, device):
    """The model in its parameters' type; torch's default type is set to the same, as mace-torch wants."""
    dtype = {"mixed": torch.float32, "fp64": torch.float64}[precision]
    torch.set_default_dtype(dtype)
    model = torch.load(model_file, map_location=device, weights_only=False).to(dtype)
    if kind == "cueq":
        if device == "cuda":
            import cuequivariance_ops_torch  # noqa: F401  without it cuEquivariance falls back to slow operations and says nothing
        from mace.cli.convert_e3nn_cueq import run as convert
        model = convert(model, device=device).to(device)
    for parameter in model.parameters():
        parameter.requires_grad = False
    return model


def prepare(model, system, device):
    """The input of a model: atoms and their neighbours, on the device."""
    torch.set_default_dtype(next(model.parameters()).dtype)
    numbers, positions, cell = system
    atoms = Atoms(numbers, positions=positions, cell=cell, pbc=cell is not None)
    item = data.AtomicData.from_config(data.config_from_atoms(atoms), z_table=AtomicNumberTable([int(z) for z in model.atomic_numbers]),
                                       cutoff=float(model.r_max), heads=["Default"])
    return next(iter(torch_geometric.dataloader.DataLoader([item], batch_size=1))).to(device).to_dict()


class Peer:
    def __init__(self, model, batch, device, stress):
        self.model, self.batch, self.device, self.stress = model, batch, device, stress

    def evaluate(self):
        """Waits until the device is done."""
        torch.set_default_dtype(next(self.model.parameters()).dtype)
        given = {name: value.clone() if torch.is_tensor(value) else value for name, value in self.batch.items()}
        self.output = self.model(given, compute_stress=self.stress, training=False)
        if self.device == "cuda":
            torch.cuda.synchronize()

    def results(self):
        """Energy, forces and, where it was asked for, stress (xx yy zz yz xz xy), as numpy arrays of doubles."""
        def array(name):
            return self.output[name].detach().cpu().double().numpy()
        stress = array("stress").reshape(3, 3)[[0, 1, 2, 1, 0, 0], [0, 1, 2, 2, 2, 1]] if self.stress else None
        return array("energy")[0], array("forces"), stress
