# SPDX-License-Identifier: MIT
"""Devices: their figures and their memory. Names are "auto" (the first GPU, or the CPU if there is none), "cpu", "cuda" and "cuda:1"."""
from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from . import _core
from .errors import ArgumentError


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """The fields of mlff_device_info. 0 or "": not known, or the device has none."""

    name: str
    compute_capability: int
    """90 for 9.0; 0 for the CPU"""
    memory_bytes: int
    """for the CPU: what this process may use"""
    l2_cache_bytes: int
    """for the CPU: of one core"""
    shared_memory_per_block_bytes: int
    shared_memory_per_multiprocessor_bytes: int
    memory_bandwidth: float
    """bytes/s, from memory clock and bus width: no program reaches it"""
    multiprocessor_count: int
    clock_kHz: int
    memory_clock_kHz: int
    memory_bus_bits: int
    cuda_runtime_version: int
    """13000 for 13.0: that of the library"""
    cuda_driver_version: int
    """the newest that the driver supports"""
    core_count: int
    """that this process may use; the CPU only"""
    kernels: str
    """the instruction set that is used, for example "avx512"; the CPU only"""


class DeviceMemory(NamedTuple):
    """Bytes; -1: not known."""

    total: int
    """for the CPU: of the machine, or the limit of a container or batch job if that is less"""
    free: int
    """what this process could still take"""
    used: int
    """total - free: by all processes"""
    process: int
    """resident memory of this process and its child processes; -1 on GPUs: CUDA does not say"""


def device_name(device: object) -> str:
    if not isinstance(device, str):
        raise ArgumentError(f"device is {device!r}, expected a name")
    return device


def device_info(device: str = "auto") -> DeviceInfo:
    """The figures of a device."""
    return DeviceInfo(**_core.device_info(device_name(device)))


def device_memory(device: str = "auto") -> DeviceMemory:
    """Memory of a device, now."""
    return DeviceMemory(*_core.device_memory(device_name(device)))


def synchronize(device: str = "auto") -> None:
    """Waits until a GPU has done all that this process asked of it, through any library. Has no effect on the CPU."""
    _core.synchronize(device_name(device))
