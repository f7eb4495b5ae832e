# SPDX-License-Identifier: MIT
"""The package sevenn: its checkpoints, its calculator, and the same network in double precision."""
import functools
import importlib.util
import pathlib
import warnings

warnings.filterwarnings("ignore")
CHECKPOINTS = {"SevenNet-0": "SevenNet_0__11Jul2024/checkpoint_sevennet_0.pth", "SevenNet-0 (22May2024)": "SevenNet_0__22May2024/checkpoint_sevennet_0.pth",
               "SevenNet-l3i5": "SevenNet_l3i5/checkpoint_l3i5.pth", "SevenNet-MF-0": "SevenNet_MF_0/checkpoint_sevennet_mf_0.pth"}


def checkpoint(model):
    folder = pathlib.Path(importlib.util.find_spec("sevenn").origin).parent
    return str(folder / "pretrained_potentials" / CHECKPOINTS[model])


def calculator(path, head, precision, threads):
    """The package computes in fp32. For "fp64" the numbers of the file are used in double precision, and so are positions. In one process, make those in fp64 last."""
    import sevenn.util
    import torch
    from sevenn.calculator import SevenNetCalculator
    from sevenn.nn.node_embedding import OnehotEmbedding
    torch.set_num_threads(threads)
    made = SevenNetCalculator(path, device="cpu", modal=head)
    if precision == "fp64":
        made.model.double()
        sevenn.util.dtype_correct = functools.partial(sevenn.util.dtype_correct, float_dtype=torch.float64)

        def in_double(module, given, data):
            for key in list(data.keys()):
                if isinstance(data[key], torch.Tensor) and data[key].dtype == torch.float32:
                    data[key] = data[key].double()
            return data
        for module in made.model.modules():
            if isinstance(module, OnehotEmbedding):
                module.register_forward_hook(in_double)
    return made
