# SPDX-License-Identifier: MIT
"""Functions, sessions and calculators side by side: times, and how far their results are apart."""
from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..errors import ArgumentError
from ..session import Session, System
from .measurement import Measurement, finite_or_none, sample_in_turns, time_unit

_ALL_CHANGES = ["positions", "numbers", "cell", "pbc", "initial_charges", "initial_magmoms"]  # those of ASE


class _Outcome(NamedTuple):
    energy: float
    forces: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Row:
    """One candidate of a comparison. Differences are None where there are no results, or none to compare with."""

    name: str
    measurement: Measurement
    speed: float
    """time of the first / time of this one: above 1 is faster"""
    speed_interval: tuple[float, float]
    """95 % confidence interval"""
    energy: float | None = None
    """eV"""
    forces: NDArray[np.float64] | None = None
    """[atoms][3], eV/angstrom"""
    energy_difference: float | None = None
    """from the first candidate with results, eV/atom"""
    force_difference: float | None = None
    """from the same, the largest of all components, eV/angstrom"""

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, **self.measurement.to_dict(), "speed": finite_or_none(self.speed), "speed_interval": [finite_or_none(x) for x in self.speed_interval],
                "energy": finite_or_none(self.energy), "energy_difference": finite_or_none(self.energy_difference), "force_difference": finite_or_none(self.force_difference)}


class Comparison:
    """The rows of a comparison, in the order of the candidates; `str()` of it is the table."""

    def __init__(self, rows: list[Row], atom_count: int | None) -> None:
        self.rows, self.atom_count = rows, atom_count

    def __getitem__(self, name: str) -> Row:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """All figures with their samples, in seconds, eV and angstrom. Also writes them to a file, if there is a path. What is not finite is null."""
        text = json.dumps({"atom_count": self.atom_count, "reference": self.rows[0].name, "rows": [row.to_dict() for row in self.rows]}, indent=2, allow_nan=False)
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text + "\n")
        return text

    def to_markdown(self) -> str:
        head, *body = self._cells()
        lines = [head, ["---"] + ["---:"] * (len(head) - 1), *([cell.replace("|", "\\|") for cell in row] for row in body)]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
        return "\n".join("  ".join(cell.ljust(width) if column == 0 else cell.rjust(width) for column, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in cells)

    def _cells(self) -> list[list[str]]:
        """The table: its head, and a line for each row."""
        scale, unit = time_unit(min(row.measurement.median for row in self.rows))
        has_results = any(row.energy is not None for row in self.rows)
        cells = [["name", f"median/{unit}", "95 %", "mean", "std", "P95", "P99", "calls/s" if self.atom_count is None else "atoms/s", "speed", "95 %"]]
        if has_results:
            cells[0] += ["dE/(eV/atom)", "max dF/(eV/A)"]
        for row in self.rows:
            times = row.measurement
            line = [row.name, f"{scale * times.median:.4g}", _range(scale * times.interval[0], scale * times.interval[1])]
            line += [f"{scale * value:.4g}" for value in (times.mean, times.std, times.p95, times.p99)]
            line += [_rate(times.throughput), f"{row.speed:.3g}", _range(*row.speed_interval, digits=3)]
            if has_results:
                line += [_difference(row.energy, row.energy_difference), _difference(row.energy, row.force_difference)]
            cells.append(line)
        return cells


def compare(candidates: Mapping[str, Any], atoms: Any = None, *, show: bool = True, warm_up_calls: int = 3, warm_up_seconds: float = 0.2, least_samples: int = 20,
            most_samples: int = 1000, seconds: float = 1.0, device: str | None = None) -> Comparison:
    """Times candidates in turns, so that disturbances affect all of them alike, and prints a table.

    candidates: a name for each of: a function without arguments, a `Session`, an ASE calculator. Speeds are relative to the first.
    atoms: what sessions and calculators evaluate (energy and forces): ASE's Atoms, a `System`, or a tuple or mapping of its fields. Each call computes
        anew, as if the atoms had moved; candidates for neighbours may be kept. The differences of their results are in the table.
    show: print the table
    The others are those of `measure`, for each candidate.
    """
    if not isinstance(candidates, Mapping) or not candidates:
        raise ArgumentError("candidates must be a dictionary with a name for each function, session or calculator")
    calls: list[Callable[[], Any]] = []
    evaluations: list[Callable[[], _Outcome] | None] = []
    for name, candidate in candidates.items():
        evaluation = _evaluation(str(name), candidate, atoms)
        evaluations.append(evaluation)
        calls.append(candidate if evaluation is None else evaluation)
    times = sample_in_turns(calls, warm_up_calls, warm_up_seconds, least_samples, most_samples, seconds, device)
    atom_count = None if all(evaluation is None for evaluation in evaluations) else len(_system(atoms).numbers)  # type: ignore[arg-type]
    rows: list[Row] = []
    reference: _Outcome | None = None
    for name, evaluation, samples in zip(candidates, evaluations, times):
        measurement = Measurement(samples, **_core.statistics(samples), items=float(atom_count or 1))
        is_measurable = times[0].min() > 0 and samples.min() > 0
        speed, low, high = _core.median_ratio(times[0], samples) if is_measurable else (float("nan"),) * 3
        found: dict[str, Any] = {}
        if evaluation is not None:
            outcome = evaluation()
            reference = reference or outcome
            found = {"energy": outcome.energy, "forces": outcome.forces, "energy_difference": (outcome.energy - reference.energy) / max(1, len(outcome.forces)),
                     "force_difference": float(np.abs(outcome.forces - reference.forces).max(initial=0.0))}
        rows.append(Row(str(name), measurement, speed, (low, high), **found))
    comparison = Comparison(rows, atom_count)
    if show:
        print(comparison)
    return comparison


def _evaluation(name: str, candidate: Any, atoms: Any) -> Callable[[], _Outcome] | None:
    """A function that evaluates the atoms with a session or a calculator; None for other functions."""
    is_calculator = hasattr(candidate, "calculate") and hasattr(candidate, "get_potential_energy")
    if not isinstance(candidate, Session) and not is_calculator:
        if not callable(candidate):
            raise ArgumentError(f"{name!r} is a {type(candidate).__name__}, expected a function, a session or a calculator of ASE")
        return None
    if atoms is None:
        raise ArgumentError(f"{name!r} needs atoms to evaluate: compare(..., atoms)")
    if isinstance(candidate, Session):
        system = _system(atoms)

        def evaluate() -> _Outcome:
            result = candidate.evaluate(*system, forces=True, stress=False)
            return _Outcome(result.energy, result.forces)  # type: ignore[arg-type]
        return evaluate
    structure = _ase_atoms(atoms)
    candidate.calculate(structure, ["energy", "forces"], _ALL_CHANGES)

    def calculate() -> _Outcome:
        candidate.calculate(structure, ["energy", "forces"], ["positions"])  # as in dynamics
        return _Outcome(float(candidate.results["energy"]), np.array(candidate.results["forces"], float))
    return calculate


def _system(atoms: Any) -> System:
    if hasattr(atoms, "get_positions"):
        from ..ase import system_of  # needs ASE, which made the atoms
        return system_of(atoms)
    try:
        return System(**atoms) if isinstance(atoms, Mapping) else System(*atoms)
    except TypeError:
        raise ArgumentError(f"atoms is a {type(atoms).__name__}, expected Atoms of ASE, a System, or its fields") from None


def _ase_atoms(atoms: Any) -> Any:
    if hasattr(atoms, "get_positions"):
        return atoms.copy()
    from ase import Atoms
    system = _system(atoms)
    info = {"total_charge": system.charge, "total_spin": system.spin}
    pbc = system.cell is not None if system.pbc is None else system.pbc
    return Atoms(system.numbers, system.positions, cell=system.cell, pbc=pbc, info=info)


def _range(low: float, high: float, digits: int = 4) -> str:
    return f"{low:.{digits}g} to {high:.{digits}g}"


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}" if 1000 <= per_second < 1e15 else f"{per_second:.4g}"


def _difference(energy: float | None, difference: float | None) -> str:
    if energy is None or difference is None:
        return ""
    return f"{difference:.1e}" if np.isfinite(difference) else "not finite"
