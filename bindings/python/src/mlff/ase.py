# SPDX-License-Identifier: MIT
"""mlff as an ASE calculator.

    atoms.calc = MLFFCalculator("builtin")
    atoms.get_potential_energy(), atoms.get_forces()
"""
from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from ase import Atoms
from ase.calculators.calculator import Calculator, PropertyNotImplementedError, all_changes
from ase.outputs import Properties, all_outputs

from .arrays import INT32, one_number
from .errors import ArgumentError, Error, StructureError
from .model import Model
from .session import Result, Session, System

_VOIGT = ((0, 1, 2, 1, 0, 0), (0, 1, 2, 2, 2, 1))  # rows and columns of xx yy zz yz xz xy
_SPREAD = ("sigma_energy_per_atom", "sigma_forces", "sigma_max_force")  # of committees
_TRUST = ("expected_errors", "novelties")  # of models with a trust meter


class MLFFCalculator(Calculator):
    """Energy, free energy (the same), forces, atomic energies, stress and atomic stresses; the last two if the cell has three lattice vectors.

    A committee of models also has `results["sigma_forces"]` (one number for each atom), `["sigma_energy_per_atom"]` and `["sigma_max_force"]`: how far its
    members are apart, see `mlff.Result`. A model with a trust meter has `results["expected_errors"]` and `["novelties"]`, one number for each atom. `get_property`
    gives them too.

    model: a path, "builtin", "analytic", or a Model
    device, precision, threads, head, skin, exact_radial: see mlff.Session; calls are steps of a trajectory (is_trajectory), so that dynamics
    searches neighbours now and then instead of at each step

    `atoms.info` may contain `total_charge` (or `charge`), `total_spin` (or `spin`, the multiplicity 2S + 1) for models that use them, and `head`.
    """

    implemented_properties = ["energy", "free_energy", "forces", "energies", "stress", "stresses"]
    default_parameters = {"model": "builtin", "device": "auto", "precision": "auto", "threads": 0, "head": None, "skin": 0.0, "exact_radial": False}

    def __init__(self, model: Model | str | os.PathLike[str] = "builtin", device: str = "auto", precision: str = "auto", threads: int = 0,
                 head: str | None = None, skin: float = 0.0, exact_radial: bool = False, **kwargs: Any) -> None:
        self._model: Model | None = None
        self._sessions: dict[str | None, Session] = {}
        self._process = os.getpid()
        self._state: _State | None = None
        super().__init__(model=model, device=device, precision=precision, threads=threads, head=head, skin=skin, exact_radial=exact_radial, **kwargs)
        if self.model.member_count:
            self.implemented_properties = [*type(self).implemented_properties, *_SPREAD]
        if self.model.has_trust_meter:
            self.implemented_properties = [*type(self).implemented_properties, *_TRUST]
        if head is not None or len(self.model.heads) == 1:  # otherwise atoms.info selects one
            self._session(head)

    # ---- Called by ASE ----

    def calculate(self, atoms: Atoms | None = None, properties: Sequence[str] = ("energy",), system_changes: Sequence[str] = tuple(all_changes)) -> None:
        if atoms is not None:
            self.atoms = atoms.copy()
        if self.atoms is None:
            raise ArgumentError("no atoms were given to the calculator")
        state = _State(self.atoms, self._state)
        wants_stresses = "stresses" in properties
        self._state = None  # in case this call fails
        result = self._session(state.head).evaluate(*state.system, stress=False, virial=True, atom_energies=True, atom_virials=wants_stresses)
        self._state = state
        self.results = _ase_properties(result, state.volume)
        for name in properties:
            if name in ("stress", "stresses") and name not in self.results:
                raise PropertyNotImplementedError(f"{name} needs a cell with three lattice vectors, which these atoms do not have")
            self._check_has(name)
            if name in _TRUST and name not in self.results:
                raise PropertyNotImplementedError(f"{name} needs a trust meter that was fitted to head '{state.head}'")

    def get_property(self, name: str, atoms: Atoms | None = None, allow_calculation: bool = True) -> Any:
        self._check_has(name)
        return super().get_property(name, atoms, allow_calculation)

    def _check_has(self, name: str) -> None:
        if name in _SPREAD and not self.model.member_count:
            raise PropertyNotImplementedError(f"{name} needs a committee of models, which {self.model!r} is not")
        if name in _TRUST and not self.model.has_trust_meter:
            raise PropertyNotImplementedError(f"{name} needs a trust meter, which {self.model!r} does not have")

    def export_properties(self) -> Properties:
        """What ASE knows: without the spread of a committee and what a trust meter says, which stay in `results`."""
        return Properties({name: value for name, value in self.results.items() if name in all_outputs})

    def check_state(self, atoms: Atoms, tol: float = 1e-15) -> list[str]:
        """Like ASE's method, but faster. Includes the entries of `atoms.info` that are inputs; ignores initial charges and moments, which are not."""
        return list(all_changes) if self._state is None else self._state.changes(atoms)

    def set(self, **kwargs: Any) -> dict[str, Any]:
        unknown = sorted(set(kwargs) - set(self.default_parameters))
        if unknown:
            raise TypeError(f"MLFFCalculator has no parameter {unknown[0]!r}; the parameters are {', '.join(self.default_parameters)}")
        if isinstance(kwargs.get("model"), Model):
            self._model = kwargs["model"]
            kwargs["model"] = self._model.name
        elif "model" in kwargs:
            kwargs["model"] = os.fspath(kwargs["model"])
            if self._model is not None and self._model.name != kwargs["model"]:
                self._model = None
        changed = super().set(**kwargs)
        if changed:
            self._sessions.clear()
            self.reset()
        return changed

    def reset(self) -> None:
        super().reset()
        self._state = None

    # ---- Beyond ASE ----

    @property
    def model(self) -> Model:
        if self._model is None:
            self._model = Model(self.parameters["model"])
        return self._model

    @property
    def session(self) -> Session:
        """The session for atoms that do not select a head."""
        return self._session(self.parameters["head"])

    def evaluate_many(self, images: Iterable[Atoms], properties: Sequence[str] = ("energy", "forces", "stress")) -> list[dict[str, Any]]:
        """Evaluates many structures in one call, which is faster for small ones. Returns a dictionary for each, like a calculator's `results`."""
        images = list(images)
        states = [_State(atoms, None) for atoms in images]
        found: list[dict[str, Any]] = [{} for _ in images]
        heads = list(dict.fromkeys(state.head for state in states))
        for head in heads:
            members = [index for index, state in enumerate(states) if state.head == head]
            systems = [states[index].system for index in members]
            try:
                results = self._session(head).evaluate_batch(systems, stress=False, virial=True, atom_energies=True, atom_virials="stresses" in properties)
            except Error as error:  # its system index counts only systems of this head
                raise type(error)(f"images of head {head!r}: {error}") if len(heads) > 1 else error
            for index, result in zip(members, results):
                found[index] = _ase_properties(result, states[index].volume)
        return found

    def get_hessian(self, atoms: Atoms | None = None) -> Any:
        """Second derivatives of the energy, [3 atoms, 3 atoms], eV/angstrom^2; the calculator needs precision="fp64"."""
        atoms = self.atoms if atoms is None else atoms
        if atoms is None:
            raise ArgumentError("no atoms were given to the calculator")
        state = _State(atoms, None)
        return self._session(state.head).hessian(*state.system).values

    def _session(self, head: str | None) -> Session:
        if self._process != os.getpid():  # after a fork: the threads of the old sessions do not exist here
            self._sessions, self._process = {}, os.getpid()
        if len(self.model.heads) == 1:  # atoms.info may name the head of another model
            head = None
        head = head or self.parameters["head"]
        session = self._sessions.get(head)
        if session is None:
            options = {name: self.parameters[name] for name in ("device", "precision", "threads", "skin", "exact_radial")}
            session = self._sessions[head] = Session(self.model, head=head, is_trajectory=True, **options)
        return session

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_sessions": {}}


def system_of(atoms: Atoms) -> System:
    """What the calculator evaluates for these atoms."""
    return _State(atoms, None).system


class _State:
    """The inputs of a calculation, converted from ASE's atoms. Copies, so that changes of the atoms are detected."""

    __slots__ = ("system", "head", "volume", "cell", "pbc", "numbers")
    system: System
    numbers: Any
    head: str | None

    def __init__(self, atoms: Atoms, last: _State | None) -> None:
        """`last`: its atomic numbers are reused if they are the same"""
        info = atoms.info
        numbers: Any
        if last is not None and _is_same(last.numbers, atoms.arrays["numbers"]):
            self.numbers, numbers = last.numbers, last.system.numbers
        else:
            self.numbers = atoms.arrays["numbers"].copy()
            numbers = self.numbers.astype(INT32)
        self.cell, self.pbc = atoms.cell.array.copy(), atoms.pbc.copy()
        a, b, c = self.cell.tolist()
        self.volume = abs(a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0]))
        is_periodic = bool(self.pbc.any())
        self.system = System(numbers, atoms.arrays["positions"].copy(), self.cell if is_periodic else None, self.pbc if is_periodic else None,
                             _number_of_either(info, "total_charge", "charge", 0.0), _number_of_either(info, "total_spin", "spin", 1.0))
        self.head = info.get("head")

    def changes(self, atoms: Atoms) -> list[str]:
        found = []
        if not _is_same(self.system.positions, atoms.arrays["positions"]):
            found.append("positions")
        if not _is_same(self.numbers, atoms.arrays["numbers"]):
            found.append("numbers")
        if not _is_same(self.cell, atoms.cell.array):
            found.append("cell")
        if not _is_same(self.pbc, atoms.pbc):
            found.append("pbc")
        info = atoms.info
        if (_number_of_either(info, "total_charge", "charge", 0.0), _number_of_either(info, "total_spin", "spin", 1.0), info.get("head")) != (
                self.system.charge, self.system.spin, self.head):
            found.append("info")
        return found


def _is_same(a: Any, b: Any) -> bool:
    """np.array_equal in a third of the time; NaN never equals anything."""
    return a.shape == b.shape and bool((a == b).all())


def _number_of_either(info: dict[str, Any], key: str, other_key: str, otherwise: float) -> float:
    """The value of whichever key is present. Raises StructureError if both are present and differ."""
    if key not in info and other_key not in info:
        return otherwise
    values = [one_number(f"atoms.info[{name!r}]", info[name]) for name in (key, other_key) if name in info]
    if values[0] != values[-1]:
        raise StructureError(f"atoms.info has both {key} and {other_key}, with different values")
    return values[0]


def _ase_properties(result: Result, volume: float) -> dict[str, Any]:
    """Converts a result to ASE's names."""
    found: dict[str, Any] = {"energy": result.energy, "free_energy": result.energy, "forces": result.forces, "energies": result.atom_energies}
    if result.sigma_forces is not None:
        for name in _SPREAD:
            found[name] = getattr(result, name)
    if result.expected_errors is not None:
        for name in _TRUST:
            found[name] = getattr(result, name)
    if volume > 0 and result.virial is not None:
        found["stress"] = result.virial[_VOIGT] / -volume
        if result.atom_virials is not None:
            symmetric = result.atom_virials + result.atom_virials.transpose(0, 2, 1)
            found["stresses"] = symmetric[:, _VOIGT[0], _VOIGT[1]] / (-2 * volume)
    return found
