# SPDX-License-Identifier: MIT
"""Measures any function: time, statistics, memory. `mlff bench` uses the same rules.

    mlff.bench.measure(lambda: session.evaluate(numbers, positions))
    mlff.bench.compare({"mlff": session, "other": calculator}, atoms)
    with mlff.bench.timer("cuda") as timer: ...
    with mlff.bench.memory_watch("cpu") as watch: ...
"""
from ..device import DeviceInfo, DeviceMemory, device_info, device_memory, synchronize
from .comparison import Comparison, Row, compare
from .measurement import Measurement, measure, statistics
from .memory import MemoryWatch, memory_watch
from .streams import Stream, Timer, stream, timer

__all__ = ["Comparison", "DeviceInfo", "DeviceMemory", "Measurement", "MemoryWatch", "Row", "Stream", "Timer", "compare", "device_info", "device_memory", "measure",
           "memory_watch", "statistics", "stream", "synchronize", "timer"]
