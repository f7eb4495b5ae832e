# SPDX-License-Identifier: MIT
"""Prints the paths of this Python's LibTorch as NAME=VALUE lines for src/train/CMakeLists.txt; lists are joined with ';'.

Only paths are needed, so this requires neither the CUDA toolkit nor torch's CMake package.
"""
import glob
import os
import shutil
import sys

import torch

root = os.path.dirname(torch.__file__)
libraries = os.path.join(root, "lib")


def existing(paths):
    return [path for path in dict.fromkeys(paths) if os.path.exists(path)]


has_cuda = os.path.exists(os.path.join(libraries, "libtorch_cuda.so"))
names = ["libtorch.so", "libtorch_cpu.so", "libc10.so"] + (["libtorch_cuda.so", "libc10_cuda.so"] if has_cuda else [])
includes = [os.path.join(root, "include"), os.path.join(root, "include/torch/csrc/api/include")]

# CUDA graph headers include cuda_runtime_api.h, from a toolkit or from the wheels installed with torch.
graph_headers = []
if has_cuda:
    nvcc = shutil.which("nvcc")
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda",
             os.path.dirname(os.path.dirname(os.path.realpath(nvcc))) if nvcc else None]
    candidates = [os.path.join(home, "include") for home in homes if home]
    candidates += sorted(glob.glob(os.path.join(os.path.dirname(root), "nvidia/*/include")))
    graph_headers = [path for path in existing(candidates) if os.path.exists(os.path.join(path, "cuda_runtime_api.h"))][:1]
    # In the wheels, cuBLAS and others have their own folders next to that of the runtime.
    graph_headers += [path for path in sorted(glob.glob(os.path.join(os.path.dirname(root), "nvidia/*/include"))) if graph_headers]

print("version=" + torch.__version__)
print("includes=" + ";".join(existing(includes)))
print("libraries=" + ";".join(existing(os.path.join(libraries, name) for name in names)))
print("cuda=" + ("1" if has_cuda else "0"))
print("cuda_includes=" + ";".join(existing(graph_headers)))
print("new_abi=" + ("1" if torch.compiled_with_cxx11_abi() else "0"))
sys.stdout.flush()
