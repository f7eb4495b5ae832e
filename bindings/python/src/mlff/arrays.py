# SPDX-License-Identifier: MIT
"""Converts arguments for the C interface. Arrays that are C-contiguous and of the right type are passed on unchanged; others are converted once,
or rejected if that would change their meaning."""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import ArgumentError

INT32 = np.dtype(np.int32)
FLOAT64 = np.dtype(np.float64)


def _as_array(name: str, values: Any) -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ArgumentError(f"{name} is not an array of numbers: {error}") from None


def real_array(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """C-contiguous float64."""
    array = values if type(values) is np.ndarray else _as_array(name, values)
    if array.dtype is not FLOAT64 and array.dtype.kind not in "fiu":
        raise ArgumentError(f"{name} has the type {array.dtype}, expected real numbers")
    return np.ascontiguousarray(array, FLOAT64) if array.ndim else array.astype(FLOAT64)


def atomic_numbers(values: ArrayLike) -> NDArray[np.int32]:
    array = values if type(values) is np.ndarray else _as_array("numbers", values)
    if array.ndim != 1:
        raise ArgumentError(f"numbers has the shape {array.shape}, expected one atomic number for each atom")
    if array.dtype == INT32:
        return np.ascontiguousarray(array)
    if array.size == 0:
        return np.empty(0, INT32)
    if array.dtype.kind not in "iu":
        raise ArgumentError(f"numbers has the type {array.dtype}, expected integers: atomic numbers")
    converted = array.astype(INT32)
    if not (converted == array).all():
        raise ArgumentError("numbers holds a value that is not an atomic number")
    return converted


def positions_array(values: ArrayLike, atom_count: int | None) -> NDArray[np.float64]:
    array = real_array("positions", values)
    if array.size == 0 and atom_count == 0:
        return array.reshape(0, 3)
    if array.ndim != 2 or array.shape[1] != 3 or atom_count not in (None, array.shape[0]):
        raise ArgumentError(f"positions has the shape {array.shape}, expected ({'atoms' if atom_count is None else atom_count}, 3)")
    return array


def cell_array(values: ArrayLike | None) -> NDArray[np.float64] | None:
    if values is None:
        return None
    array = real_array("cell", values)
    if array.shape != (3, 3):
        raise ArgumentError(f"cell has the shape {array.shape}, expected (3, 3): one lattice vector per row")
    return array


def periodic_directions(pbc: Any, has_cell: bool) -> tuple[bool, bool, bool]:
    """None: all if there is a cell, else none."""
    if pbc is None:
        return (has_cell,) * 3
    if isinstance(pbc, (bool, np.bool_)):
        flags: tuple[bool, ...] = (bool(pbc),) * 3
    else:
        array = _as_array("pbc", pbc)
        if array.shape != (3,) or not (array.dtype.kind == "b" or array.dtype.kind in "iu" and np.isin(array, (0, 1)).all()):
            raise ArgumentError(f"pbc is {pbc!r}, expected one truth value or three")
        flags = tuple(array.astype(bool).tolist())
    if any(flags) and not has_cell:
        raise ArgumentError("pbc has periodic directions, but there is no cell")
    return flags[0], flags[1], flags[2]


def one_number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} is {value!r}, expected a number") from None


def output_array(name: str, given: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """A new array, or the given one if the library can write to it."""
    if given is None:
        return np.empty(shape)
    if not isinstance(given, np.ndarray) or given.dtype != FLOAT64 or given.shape != shape or not given.flags.c_contiguous or not given.flags.writeable:
        found = f"{given.dtype} array of the shape {given.shape}" if isinstance(given, np.ndarray) else type(given).__name__
        raise ArgumentError(f"out.{name} is a {found}, expected a writable, C-contiguous float64 array of the shape {shape}")
    return given
