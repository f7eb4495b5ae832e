# SPDX-License-Identifier: MIT
"""Machine-learned force fields, natively.

    session = mlff.Session("builtin")
    water = session.evaluate([8, 1, 1], [[0, 0, 0], [0.96, 0, 0], [-0.24, 0.93, 0]])
    water.energy, water.forces

Units: angstrom, eV, eV/angstrom, eV/angstrom^3. For ASE: `from mlff.ase import MLFFCalculator`.
"""
from typing import Any

from . import _core, log as _log
from .device import DeviceInfo, DeviceMemory, device_info, device_memory
from .errors import (ArgumentError, DeviceError, Error, FileError, FormatError, InternalError, OutOfMemoryError, Status, StructureError, UnsupportedError)
from .model import Model
from .neighbor_list import Neighbors, neighbors
from .paths import get_include, get_library
from .session import Hessian, Result, Session, System, evaluate
from . import bench

if _core.abi_version() != _core.ABI_VERSION:
    raise ImportError(f"libmlff has ABI version {_core.abi_version()}, but this package was built for version {_core.ABI_VERSION}")

__version__: str = _core.version()


def devices() -> list[dict[str, Any]]:
    """GPUs that the library can use: name, compute_capability (90 for 9.0), memory_bytes. If there are none, `why_no_device` gives the reason.
    `device_info` has more figures."""
    return _core.devices()


def why_no_device() -> str:
    """Why `devices()` is empty; "" if it is not."""
    return _core.why_no_device()


__all__ = ["ArgumentError", "DeviceError", "DeviceInfo", "DeviceMemory", "Error", "FileError", "FormatError", "Hessian", "InternalError", "Model", "Neighbors", "OutOfMemoryError",
           "Result", "Session", "Status", "StructureError", "System", "UnsupportedError", "bench", "device_info", "device_memory", "devices", "evaluate", "get_include",
           "get_library", "neighbors", "why_no_device"]
