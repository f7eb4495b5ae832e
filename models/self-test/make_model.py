# SPDX-License-Identifier: MIT
"""Makes the model that `mlff doctor` and the installer test backends with: a MACE model with seeded weights that is as small as goes through all kernels of
the released ones: two layers, correlation 3, features of degree 0 and 1. It knows H, C, N and O, and is no force field. Its messages and forces are scaled to
size one, so that all orders of the contraction take part and errors can be read in eV/A.

  pip install torch==2.13.0 mace-torch==0.3.16
  python make_model.py self-test.model
  mlff model convert self-test.model self-test.safetensors && gzip -9 -n self-test.safetensors"""
import pathlib
import sys
import warnings

warnings.filterwarnings("ignore")

import numpy as np
import torch
from ase import Atoms
from e3nn import o3
from mace import modules

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "measurements" / "mace_cpu"))
import make_models

ELEMENTS = [1, 6, 7, 8]
GLYCINE = Atoms("NCCOOHHHHH", [[-1.88, 0.04, 0.05], [-0.55, -0.58, 0.02], [0.57, 0.44, 0.01], [0.43, 1.64, 0.02], [1.78, -0.14, -0.01],
                               [-1.97, 0.63, 0.87], [-2.00, 0.65, -0.75], [-0.44, -1.22, 0.90], [-0.42, -1.20, -0.87], [2.43, 0.58, -0.02]])


def build():
    residual = modules.interaction_classes["RealAgnosticResidualInteractionBlock"]
    return modules.ScaleShiftMACE(
        r_max=4.0, num_bessel=4, num_polynomial_cutoff=5, max_ell=2, interaction_cls=residual, interaction_cls_first=residual, num_interactions=2,
        num_elements=len(ELEMENTS), hidden_irreps=o3.Irreps("4x0e+4x1o"), MLP_irreps=o3.Irreps("4x0e"), gate=torch.nn.functional.silu,
        atomic_energies=np.array([-0.5, -1.5, -2.0, -2.5]), avg_num_neighbors=8.0, atomic_numbers=ELEMENTS, correlation=3, radial_type="bessel", radial_MLP=[8, 8],
        atomic_inter_scale=1.0, atomic_inter_shift=0.1, use_reduced_cg=False)


torch.set_default_dtype(torch.float32)
torch.manual_seed(2026)
model = build()
make_models.calibrate(model, GLYCINE)
torch.save(model, sys.argv[1])
