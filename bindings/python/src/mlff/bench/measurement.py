# SPDX-License-Identifier: MIT
"""Times of repeated calls, and their statistics."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core, arrays
from ..device import device_name
from ..errors import ArgumentError


@dataclass(frozen=True, eq=False)
class Measurement:
    """Statistics of samples, which are seconds of single calls."""

    samples: NDArray[np.float64]
    mean: float
    median: float
    std: float
    """standard deviation, with divisor samples - 1; 0 for one sample"""
    minimum: float
    maximum: float
    p95: float
    """95 % of the samples are below"""
    p99: float
    interval: tuple[float, float]
    """95 % confidence interval of the median, by bootstrap; always the same for the same samples"""
    outlier_count: int
    """samples more than 3.5 (robust) standard deviations from the median: disturbances"""
    items: float = 1.0
    """what one call works on, for example a number of atoms"""

    @property
    def throughput(self) -> float:
        """Items per second: items / median; infinite if the median is 0."""
        return self.items / self.median if self.median > 0 else float("inf")

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON. The samples are a list."""
        names = ("mean", "median", "std", "minimum", "maximum", "p95", "p99", "outlier_count", "items")
        return {**{name: getattr(self, name) for name in names}, "interval": list(self.interval), "throughput": finite_or_none(self.throughput),
                "samples": self.samples.tolist()}

    def __str__(self) -> str:
        scale, unit = time_unit(self.median)
        low, high = self.interval
        return (f"median {scale * self.median:.4g} {unit} ({scale * low:.4g} to {scale * high:.4g}), mean {scale * self.mean:.4g}, std {scale * self.std:.2g}, "
                f"P95 {scale * self.p95:.4g}, P99 {scale * self.p99:.4g} {unit}; {self.throughput:.4g}/s; {len(self.samples)} samples, {self.outlier_count} outliers")


def statistics(samples: ArrayLike, items: float = 1.0) -> Measurement:
    """Statistics of any samples. Raises ArgumentError if there is none, or one is not finite."""
    values = arrays.real_array("samples", samples)
    if values.ndim != 1:
        raise ArgumentError(f"samples has the shape {values.shape}, expected a list of numbers")
    return Measurement(values, **_core.statistics(values), items=checked_items(items))


def measure(function: Callable[[], Any], *, items: float = 1.0, warm_up_calls: int = 3, warm_up_seconds: float = 0.2, least_samples: int = 20, most_samples: int = 1000,
            seconds: float = 1.0, device: str | None = None) -> Measurement:
    """Times calls of a function without arguments, as `mlff bench` does.

    items: what one call works on; makes `throughput` items per second
    warm_up_calls, warm_up_seconds: at least so many calls, for at least so long, are not counted
    least_samples, most_samples, seconds: sampling ends after the time, but not below or above these numbers of samples
    device: wait for this device after each call, within the time that is measured: for functions that only start work on a GPU
    """
    items = checked_items(items)
    times, = sample_in_turns([function], warm_up_calls, warm_up_seconds, least_samples, most_samples, seconds, device)
    return Measurement(times, **_core.statistics(times), items=items)


def sample_in_turns(functions: Sequence[Callable[[], Any]], warm_up_calls: int, warm_up_seconds: float, least_samples: int, most_samples: int, seconds: float,
                    device: str | None) -> list[NDArray[np.float64]]:
    """Seconds of calls of each function, which take turns."""
    for function in functions:
        if not callable(function):
            raise ArgumentError(f"a {type(function).__name__} cannot be called, expected a function without arguments")
    for name, value, kind in (("warm_up_calls", warm_up_calls, int), ("warm_up_seconds", warm_up_seconds, (int, float)), ("least_samples", least_samples, int),
                              ("most_samples", most_samples, int), ("seconds", seconds, (int, float))):
        if isinstance(value, bool) or not isinstance(value, kind) or not 0 <= value < 2**31:
            raise ArgumentError(f"{name} is {value!r}, expected {'a number' if kind is int else 'seconds'} of 0 or more")
    if not 1 <= least_samples <= most_samples:
        raise ArgumentError(f"least_samples is {least_samples} and most_samples is {most_samples}, expected 1 <= least_samples <= most_samples")
    return _core.measure(list(functions), warm_up_calls, float(warm_up_seconds), least_samples, most_samples, float(seconds),
                         "" if device is None else device_name(device))


def checked_items(items: float) -> float:
    if not (number := arrays.one_number("items", items)) > 0:
        raise ArgumentError(f"items is {items!r}, expected a number above 0")
    return number


def time_unit(seconds: float) -> tuple[float, str]:
    """(factor, unit) in which a time of this size is easy to read"""
    for scale, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * scale >= 1:
            return scale, unit
    return 1e9, "ns"


def finite_or_none(value: float | None) -> float | None:
    """JSON knows no infinity and no NaN."""
    return None if value is None or not np.isfinite(value) else float(value)
