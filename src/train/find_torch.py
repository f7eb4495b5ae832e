# SPDX-License-Identifier: MIT
"""Prints the paths of this Python's LibTorch as NAME=VALUE lines for src/train/CMakeLists.txt; lists are joined with ';'.

Only paths are needed, so torch is not imported, and this requires neither what torch's Python part depends on, nor the CUDA toolkit, nor torch's CMake package.
"""
import glob
import importlib.metadata
import importlib.util
import os
import shutil
import sys

torch = importlib.util.find_spec("torch")
if torch is None or not torch.submodule_search_locations:
    sys.exit(f"{sys.executable} has no torch")
root = list(torch.submodule_search_locations)[0]
libraries = os.path.join(root, "lib")


def existing(paths):
    return [path for path in dict.fromkeys(paths) if os.path.exists(path)]


def uses_new_abi():
    """Whether std::string is that of GCC 5 and later: it is part of the name of this constructor."""
    with open(os.path.join(libraries, "libc10.so"), "rb") as file:
        library = file.read()
    if b"_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx11" in library:
        return True
    if b"_ZN3c105ErrorC1ENS_14SourceLocationESs" in library:
        return False
    sys.exit(f"{libraries}/libc10.so has no c10::Error as this script knows it; torch 2.x is needed")


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

print("version=" + importlib.metadata.version("torch"))
print("includes=" + ";".join(existing(includes)))
print("libraries=" + ";".join(existing(os.path.join(libraries, name) for name in names)))
print("cuda=" + ("1" if has_cuda else "0"))
print("cuda_includes=" + ";".join(existing(graph_headers)))
print("new_abi=" + ("1" if uses_new_abi() else "0"))
sys.stdout.flush()
