# SPDX-License-Identifier: MIT
"""Memory in use while something runs, and whether it leaks."""
from __future__ import annotations

import threading
from typing import Any

from .. import _core
from ..device import device_memory, device_name
from ..errors import ArgumentError, Error


class MemoryWatch:
    """Memory of a `with` block: resident memory of this process and its child processes ("cpu"), or what is in use on a GPU, by any process.

    To find leaks, call `read()` after each of several equal pieces of work, after one that has warmed up. It is a leak if memory grew by more than
    10 MB, or if it grew in more than half of the intervals (of 4 or more), by 256 KiB in total.

    poll_seconds: how often a thread looks at the memory of a GPU, for the peak; 0: never. The kernel keeps the peak of the CPU.
    """

    def __init__(self, device: str = "auto", poll_seconds: float = 0.01) -> None:
        self._device = device_name(device)
        if not isinstance(poll_seconds, (int, float)) or not poll_seconds >= 0:
            raise ArgumentError(f"poll_seconds is {poll_seconds!r}, expected seconds")
        self._is_gpu = _core.device_info(self._device)["compute_capability"] > 0
        self._poll_seconds = float(poll_seconds) if self._is_gpu else 0.0
        self._watch: _core.MemoryWatch | None = None
        self._report: dict[str, Any] | None = None
        self._polled_peak = 0
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def read(self) -> None:
        """One more reading."""
        if self._watch is None:
            raise ArgumentError("the memory watch is not running: use it in a with block")
        self._watch.read()
        self._report = None

    def __enter__(self) -> MemoryWatch:
        self._watch, self._report, self._polled_peak = _core.MemoryWatch(self._device), None, 0
        if self._poll_seconds > 0:
            self._done.clear()
            self._thread = threading.Thread(target=self._poll, name="mlff memory watch", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._thread is not None:
            self._done.set()
            self._thread.join()
            self._thread = None
        self.read()
        self._figure("last")  # the report is that of now
        self._watch = None

    def _poll(self) -> None:
        while not self._done.wait(self._poll_seconds):
            try:
                self._polled_peak = max(self._polled_peak, device_memory(self._device).used)
            except Error:  # the GPU failed; whoever uses it is told
                return

    def _figure(self, name: str) -> Any:
        if self._watch is not None:
            self._report = self._watch.report()  # of now: the peak may have grown since the last question
        if self._report is None:
            raise ArgumentError("the memory watch has not run: use it in a with block")
        return self._report[name]

    @property
    def first(self) -> int:
        """Bytes in use at the beginning"""
        return self._figure("first")

    @property
    def used(self) -> int:
        """Bytes in use at the last reading, which is the end of the block after it"""
        return self._figure("last")

    @property
    def peak(self) -> int:
        """The most bytes in use since the beginning"""
        return max(self._figure("peak"), self._polled_peak)

    @property
    def growth(self) -> int:
        """used - first"""
        return self._figure("growth")

    @property
    def reading_count(self) -> int:
        return self._figure("reading_count")

    @property
    def is_trend(self) -> bool:
        """Memory grew in more than half of the intervals between readings."""
        return self._figure("is_trend")

    @property
    def is_leak(self) -> bool:
        """A trend, or growth by more than 10 MB."""
        return self._figure("is_leak")

    def __repr__(self) -> str:
        if self._report is None:
            return f"<MemoryWatch of {self._device}>"
        return (f"<MemoryWatch of {self._device}: {self.used / 1e6:.1f} MB used, {self.peak / 1e6:.1f} MB peak, {self.growth / 1e6:+.1f} MB in {self.reading_count} readings, "
                f"{'a leak' if self.is_leak else 'no leak'}>")


def memory_watch(device: str = "auto", poll_seconds: float = 0.01) -> MemoryWatch:
    """`with mlff.bench.memory_watch("cpu") as watch:`; see `MemoryWatch`."""
    return MemoryWatch(device, poll_seconds)
