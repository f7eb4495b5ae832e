# SPDX-License-Identifier: MIT
"""Sessions evaluate a model. They own the threads, the scratch memory and, on a GPU, the stream."""
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core, arrays
from .errors import ArgumentError, UnsupportedError
from .model import Model

PRECISIONS = {"auto": 0, "mixed": 1, "fp64": 2, "fp32": 3, "fast": 4}  # the values of mlff_precision
_PRECISION_NAMES = {value: name for name, value in PRECISIONS.items()}


class System(NamedTuple):
    """Atoms: one entry of a batch."""

    numbers: ArrayLike
    """[atoms] atomic numbers"""
    positions: ArrayLike
    """[atoms][3], angstrom; atoms may lie outside the cell"""
    cell: ArrayLike | None = None
    """[3][3], one lattice vector per row, angstrom"""
    pbc: bool | ArrayLike | None = None
    """Periodic directions: one flag or three. None: all if there is a cell."""
    charge: float = 0.0
    """Total charge, for models that use it"""
    spin: float = 1.0
    """Multiplicity 2S + 1, for models that use it"""


@dataclass(slots=True, eq=False)
class Result:
    """The results. Arrays that were not requested are None. All arrays are float64 and owned by the result."""

    energy: float
    """eV"""
    forces: NDArray[np.float64] | None = None
    """[atoms][3], eV/angstrom"""
    stress: NDArray[np.float64] | None = None
    """[6]: xx yy zz yz xz xy = (dE/dstrain) / volume, eV/angstrom^3: the sign and order of ASE"""
    virial: NDArray[np.float64] | None = None
    """[3][3] = -dE/dstrain, eV"""
    atom_energies: NDArray[np.float64] | None = None
    """[atoms], eV; their sum is the energy"""
    atom_virials: NDArray[np.float64] | None = None
    """[atoms][3][3], eV; their sum is the virial"""
    descriptors: NDArray[np.float64] | None = None
    """[atoms][model.descriptor_count]: invariant features of every layer"""
    sigma_forces: NDArray[np.float64] | None = None
    """[atoms], eV/angstrom: how far the forces of a committee's members are apart, as a standard deviation"""
    sigma_energy_per_atom: float | None = None
    """eV: the same for the energy, divided by the number of atoms"""
    sigma_max_force: float | None = None
    """eV/angstrom: the largest of `sigma_forces`; 0 without atoms"""
    expected_errors: NDArray[np.float64] | None = None
    """[atoms], eV/angstrom: the probable error of the force on each atom, from the trust meter of the model"""
    novelties: NDArray[np.float64] | None = None
    """[atoms]: distance from the training atoms; above 1: unlike anything in training"""


_NO_ARRAYS = Result(float("nan"))


@dataclass(slots=True, eq=False)
class Hessian:
    """What `Session.hessian` returns, in eV/angstrom^2."""

    values: NDArray[np.float64]
    """[3 atoms, 3 atoms], symmetric"""
    step_error: float
    """of the finite step: the largest that a few displacements showed"""
    asymmetry: float
    """the largest difference between a number and its mirror image, before it was removed"""
    sum_rule_error: float
    """the largest sum over atoms of a row, which is 0 in theory"""
    evaluation_count: int
    operation_count: int
    """symmetry operations that were used; 1: only the identity"""
    is_extrapolated: bool
    """step_error was too large, so the leading error was removed with displacements of twice the step"""


class Session:
    """Evaluates a model on one device.

    A session serves one thread at a time. Other threads that call it wait, without holding the GIL. To work in parallel, create
    one session per thread; sessions share the model. After a fork, the new process needs its own session.

    model: a Model, or an argument of `Model`
    device: "auto" (a GPU if there is one), "cpu", "reference" (plain fp64 loops), "cuda", "cuda:1"
    precision: "auto", "mixed", "fp64", "fp32" or "fast"
    threads: 0 means one per core that this process may use
    head: one of the model's heads; None if it has only one
    skin: angstrom > 0 keeps candidates for neighbours from call to call while that is exact; 0 is the library's choice: 1 on a GPU; on the CPU 0.5 with is_trajectory, else none
    is_trajectory: atoms move little from call to call, as in dynamics
    exact_radial: no tables of radial functions; slower, and exact to rounding in fp64
    gpu_memory_limit: maximum bytes for atoms and edges on a GPU; 0 means all free memory
    """

    def __init__(self, model: Model | str | os.PathLike[str] = "builtin", device: str = "auto", precision: str = "auto", threads: int = 0,
                 head: str | None = None, skin: float = 0.0, exact_radial: bool = False, gpu_memory_limit: int = 0,
                 is_trajectory: bool = False) -> None:
        if precision not in PRECISIONS:
            raise ArgumentError(f"precision is {precision!r}, expected one of {', '.join(PRECISIONS)}")
        for name, value, kind, expected in (("device", device, str, "a name"), ("head", head or "", str, "a name"), ("threads", threads, int, "a number of threads"),
                                            ("skin", skin, (int, float), "angstrom"), ("gpu_memory_limit", gpu_memory_limit, int, "bytes")):
            if not isinstance(value, kind):
                raise ArgumentError(f"{name} is {value!r}, expected {expected}")
        self.model: Model = model if isinstance(model, Model) else Model(model)
        self._options = (device, precision, threads, head, skin, exact_radial, gpu_memory_limit, is_trajectory)
        self._handle = _core.Session(self.model._handle, device, PRECISIONS[precision], threads, head or "", skin, exact_radial, gpu_memory_limit, is_trajectory)
        self._has_trust_meter: bool = self._handle.info()["has_trust_meter"]

    def evaluate(self, numbers: ArrayLike, positions: ArrayLike, cell: ArrayLike | None = None, pbc: bool | ArrayLike | None = None,
                 charge: float = 0.0, spin: float = 1.0, *, forces: bool = True, stress: bool | None = None, virial: bool = False, atom_energies: bool = False,
                 atom_virials: bool = False, descriptors: bool = False, spread: bool | None = None, trust: bool | None = None,
                 out: Result | None = None) -> Result:
        """Computes the energy and other requested properties of one system; see `System` for the arguments and `Result` for the results.

        stress: None means yes if any direction is periodic
        spread: the results of `Result` that begin with sigma; None means yes if the model is a committee
        trust: `expected_errors` and `novelties`; None means yes if the model has a trust meter
        out: the result of an earlier call; its arrays are reused. If the call fails they are unchanged.
        """
        wanted = (forces, stress, virial, atom_energies, atom_virials, descriptors, spread, trust)
        job = self._job((numbers, positions, cell, pbc, charge, spin), wanted, out)
        energy, = self._handle.evaluate([job])
        result = _result(energy, job)
        if out is None:
            return result
        for name in Result.__slots__:
            setattr(out, name, getattr(result, name))
        return out

    def evaluate_batch(self, systems: Iterable[System | tuple[Any, ...] | Mapping[str, Any]], *, forces: bool = True, stress: bool | None = None,
                       virial: bool = False, atom_energies: bool = False, atom_virials: bool = False, descriptors: bool = False,
                       spread: bool | None = None, trust: bool | None = None) -> list[Result]:
        """Evaluates a batch of systems of any sizes, which is faster than one by one if they are small.

        systems: `System` objects, tuples in the order of its fields, or mappings with its field names
        All systems are checked before the first is computed. An error names the system.
        """
        wanted = (forces, stress, virial, atom_energies, atom_virials, descriptors, spread, trust)
        jobs = []
        for index, system in enumerate(systems):
            try:
                jobs.append(self._job(System(**system) if isinstance(system, Mapping) else System(*system), wanted, None))
            except (ArgumentError, TypeError) as error:
                raise ArgumentError(f"system {index}: {error}") from None
        return [_result(energy, job) for energy, job in zip(self._handle.evaluate(jobs), jobs)]

    def hessian(self, numbers: ArrayLike, positions: ArrayLike, cell: ArrayLike | None = None, pbc: bool | ArrayLike | None = None,
                charge: float = 0.0, spin: float = 1.0, *, step: float = 0.0, symmetry_tolerance: float = 0.0) -> Hessian:
        """Second derivatives of the energy of one system. The session needs precision="fp64".

        step: angstrom that atoms are displaced; 0 means 2e-4
        symmetry_tolerance: angstrom that atoms of a molecule may be from symmetric places, where equal displacements are computed once; 0 means 1e-6, below 0 no symmetry
        """
        job = self._job((numbers, positions, cell, pbc, charge, spin), (False,) * 8, None)
        width = 3 * len(job[0])
        values = np.empty((width, width))
        report = self._handle.hessian(job, values.reshape(-1), arrays.one_number("step", step), arrays.one_number("symmetry_tolerance", symmetry_tolerance))
        return Hessian(values, **report)

    def _job(self, system: tuple[Any, ...], wanted: tuple[Any, ...], out: Result | None) -> tuple[Any, ...]:
        """One job for `_core.Session.evaluate`; its last eleven parts are outputs."""
        numbers, positions, cell, pbc, charge, spin = system
        numbers = arrays.atomic_numbers(numbers)
        count = len(numbers)
        positions = arrays.positions_array(positions, count)
        cell = arrays.cell_array(cell)
        periodic = arrays.periodic_directions(pbc, cell is not None)
        forces, stress, virial, atom_energies, atom_virials, descriptors, spread, trust = wanted
        if stress is None:
            stress = any(periodic)
        if spread is None:
            spread = self.model.member_count > 0
        if trust is None:
            trust = self._has_trust_meter
        if descriptors and self.model.descriptor_count == 0:
            raise UnsupportedError(f"descriptors were requested, but {self.model!r} has none")
        if out is not None and not isinstance(out, Result):
            raise ArgumentError(f"out is a {type(out).__name__}, expected the Result of an earlier call")
        given = _NO_ARRAYS if out is None else out
        new = arrays.output_array
        outputs = (new("forces", given.forces, (count, 3)) if forces else None,
                   new("stress", given.stress, (6,)) if stress else None,
                   new("virial", given.virial, (3, 3)) if virial else None,
                   new("atom_energies", given.atom_energies, (count,)) if atom_energies else None,
                   new("atom_virials", given.atom_virials, (count, 3, 3)) if atom_virials else None,
                   new("descriptors", given.descriptors, (count, self.model.descriptor_count)) if descriptors else None,
                   np.empty(1) if spread else None,
                   new("sigma_forces", given.sigma_forces, (count,)) if spread else None,
                   np.empty(1) if spread else None,
                   new("expected_errors", given.expected_errors, (count,)) if trust else None,
                   new("novelties", given.novelties, (count,)) if trust else None)
        if out is not None and any(array is not None and np.may_share_memory(array, positions) for array in outputs):
            raise ArgumentError("an array of out shares memory with positions, which would be overwritten while they are read")
        return (numbers, positions, cell, periodic, arrays.one_number("charge", charge), arrays.one_number("spin", spin), *outputs)

    @property
    def info(self) -> dict[str, Any]:
        """device, device_reason, precision, thread_count, evaluation_count (systems so far) and neighbor_build_count (neighbour searches; the skin saved
        the difference) and has_trust_meter (False also where the meter of the model was fitted to another head)"""
        info = self._handle.info()
        info["precision"] = _PRECISION_NAMES[info["precision"]]
        return info

    @property
    def device(self) -> str:
        """The device in use: "cpu" or "cuda:0", never "auto"."""
        return self.info["device"]

    @property
    def precision(self) -> str:
        """The precision in use, never "auto"."""
        return self.info["precision"]

    def close(self) -> None:
        """Releases threads and memory now, instead of when the object is destroyed."""
        self._handle.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"mlff.Session({self.model!r}, device={self._options[0]!r}, precision={self._options[1]!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Session, (self.model, *self._options)


def _result(energy: float, job: tuple[Any, ...]) -> Result:
    """The results that a job was evaluated for."""
    sigma_energy, sigma_forces, sigma_max, *trust = job[-5:]
    spread = (None, None, None) if sigma_forces is None else (sigma_forces, float(sigma_energy[0]), float(sigma_max[0]))
    return Result(energy, *job[-11:-5], *spread, *trust)


def evaluate(numbers: ArrayLike, positions: ArrayLike, cell: ArrayLike | None = None, pbc: bool | ArrayLike | None = None, charge: float = 0.0,
             spin: float = 1.0, *, model: Model | str | os.PathLike[str] = "builtin", device: str = "auto", precision: str = "auto", threads: int = 0,
             head: str | None = None, **wanted: Any) -> Result:
    """Evaluates one system once: opens the model, evaluates and closes. `wanted`: keywords of `Session.evaluate`. For several calls, create a `Session`."""
    with Session(model, device, precision, threads, head) as session:
        return session.evaluate(numbers, positions, cell, pbc, charge, spin, **wanted)
