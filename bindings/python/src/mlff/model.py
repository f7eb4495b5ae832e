# SPDX-License-Identifier: MIT
"""Models: read-only, shared by any number of sessions and threads."""
from __future__ import annotations

import json
import os
from typing import Any

from . import _core
from .errors import ArgumentError


class Model:
    """A force field.

    `path` is a MACE file (`.model`, a TorchScript archive), a `.safetensors` file of mlff, `"builtin"` (the student embedded in the library) or
    `"analytic"` (a pair potential for demonstrations). `"A+B"` is the sum of models; `"A,B,C"`, or a file that lists members, is a committee. Nothing in a file is
    executed.
    """

    def __init__(self, path: str | os.PathLike[str] = "builtin") -> None:
        encoded = os.fsencode(path)
        if b"\0" in encoded:
            raise ArgumentError(f"the model's path {path!r} contains a null character")
        self.name: str = os.fsdecode(encoded)
        self._handle = _core.Model(encoded)
        self._info = self._handle.info()

    @property
    def info(self) -> dict[str, Any]:
        """All of the properties below, by name."""
        return dict(self._info, heads=list(self._info["heads"]), elements=list(self._info["elements"]))

    @property
    def cutoff(self) -> float:
        """The cutoff radius of one layer, in angstrom."""
        return self._info["cutoff"]

    @property
    def elements(self) -> list[int]:
        """Atomic numbers that the model knows, ascending."""
        return list(self._info["elements"])

    @property
    def heads(self) -> list[str]:
        """Names of the heads; at least one. With several heads, a session needs `head`."""
        return list(self._info["heads"])

    @property
    def class_name(self) -> str:
        """The class name in the file, for example "ScaleShiftMACE"."""
        return self._info["class_name"]

    @property
    def layer_count(self) -> int:
        """Number of message-passing layers; 0 for a pair potential."""
        return self._info["layer_count"]

    @property
    def parameter_count(self) -> int:
        return self._info["parameter_count"]

    @property
    def dtype(self) -> str:
        """The type of the parameters in the file: "float32" or "float64"."""
        return self._info["dtype"]

    @property
    def descriptor_count(self) -> int:
        """Numbers per atom in `Result.descriptors`; 0 if the model has none."""
        return self._info["descriptor_count"]

    @property
    def member_count(self) -> int:
        """Number of members of a committee, whose results have a spread; 0 if the model is none."""
        return self._info["member_count"]

    @property
    def has_trust_meter(self) -> bool:
        """True if results have `expected_errors` and `novelties`: a trust meter was fitted to the model."""
        return self._info["has_trust_meter"]

    @property
    def alarm_error(self) -> float:
        """eV/angstrom: an atom with an expected error above it counts as outside; 0 without a trust meter."""
        return self._info["alarm_error"]

    @property
    def is_runnable(self) -> bool:
        """True if a session can be created; otherwise see `why_not_runnable`."""
        return self._info["is_runnable"]

    @property
    def why_not_runnable(self) -> str:
        return self._info["why_not_runnable"]

    @property
    def description(self) -> dict[str, Any]:
        """Everything known about the model, with the keys of `mlff model info --json -`."""
        return json.loads(self._handle.description_json())

    def __repr__(self) -> str:
        return f"mlff.Model({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Model, (self.name,)
