# SPDX-License-Identifier: MIT
"""Saves a model of the shape of MACE-MP-0 medium with all its 89 elements and seeded weights: a file of about 44 MB.

  python make_model.py OUT.model"""
import sys
import warnings

warnings.filterwarnings("ignore")

import numpy as np
import torch
from e3nn import o3
from mace import modules

torch.manual_seed(1)
torch.set_default_dtype(torch.float64)
elements = list(range(1, 84)) + list(range(89, 95))
block = modules.interaction_classes["RealAgnosticResidualInteractionBlock"]
model = modules.ScaleShiftMACE(
    r_max=6.0, num_bessel=10, num_polynomial_cutoff=5, max_ell=3, interaction_cls=block, interaction_cls_first=block,
    num_interactions=2, num_elements=len(elements), hidden_irreps=o3.Irreps("128x0e+128x1o"), MLP_irreps=o3.Irreps("16x0e"),
    gate=torch.nn.functional.silu, atomic_energies=np.zeros(len(elements)), avg_num_neighbors=61.9, atomic_numbers=elements,
    correlation=3, radial_type="bessel", radial_MLP=[64, 64, 64], atomic_inter_scale=1.0, atomic_inter_shift=0.0)
torch.save(model, sys.argv[1])
