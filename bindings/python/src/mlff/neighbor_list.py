# SPDX-License-Identifier: MIT
"""Neighbour lists, for programs that need only the search."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core, arrays


class Neighbors(NamedTuple):
    """Pairs of atoms, grouped by the first atom: those of atom i are first[i] ... first[i + 1] - 1."""

    first: NDArray[np.int64]
    """[atoms + 1]"""
    senders: NDArray[np.int32]
    """[pairs], the neighbour"""
    shifts: NDArray[np.int32]
    """[pairs][3]: the neighbour is at positions[sender] + shifts @ cell"""
    vectors: NDArray[np.float64]
    """[pairs][3], from the atom to the neighbour's image, angstrom"""
    distances: NDArray[np.float64]
    """[pairs], angstrom"""

    @property
    def receivers(self) -> NDArray[np.int32]:
        """[pairs], the atom that has the neighbour"""
        return np.repeat(np.arange(len(self.first) - 1, dtype=np.int32), np.diff(self.first))


def neighbors(positions: ArrayLike, cutoff: float, cell: ArrayLike | None = None, pbc: bool | ArrayLike | None = None, *, half: bool = False,
              threads: int = 0) -> Neighbors:
    """All pairs of atoms closer than the cutoff (angstrom), in any cell, in time linear in the number of atoms.

    half: each pair once instead of in both directions
    """
    cell = arrays.cell_array(cell)
    periodic = arrays.periodic_directions(pbc, cell is not None)
    return Neighbors(*_core.neighbors(arrays.positions_array(positions, None), float(cutoff), cell, list(periodic), half, threads))
