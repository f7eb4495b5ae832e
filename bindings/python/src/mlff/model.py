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

    `path` is a MACE file (`.model`, a TorchScript archive), one of our `.safetensors` files, `"builtin"` (the student inside the library) or
    `"analytic"` (a pair potential for demonstrations). Nothing in a file is executed.
    """

    def __init__(self, path: str | os.PathLike[str] = "builtin") -> None:
        encoded = os.fsencode(path)
        if b"\0" in encoded:
            raise ArgumentError(f"the model's path {path!r} holds a null character, which no file name has")
        self.name: str = os.fsdecode(encoded)
        self._handle = _core.Model(encoded)
        self._info = self._handle.info()

    @property
    def info(self) -> dict[str, Any]:
        """All of the properties below, by name."""
        return dict(self._info, heads=list(self._info["heads"]), elements=list(self._info["elements"]))

    @property
    def cutoff(self) -> float:
        """How far an atom sees in one layer, in angstrom."""
        return self._info["cutoff"]

    @property
    def elements(self) -> list[int]:
        """Atomic numbers the model knows, ascending."""
        return list(self._info["elements"])

    @property
    def heads(self) -> list[str]:
        """Names of the heads; at least one. Where there are several, a session needs to be told which."""
        return list(self._info["heads"])

    @property
    def class_name(self) -> str:
        """As in the file: "ScaleShiftMACE"."""
        return self._info["class_name"]

    @property
    def layer_count(self) -> int:
        """Layers of message passing; 0 for a pair potential."""
        return self._info["layer_count"]

    @property
    def parameter_count(self) -> int:
        return self._info["parameter_count"]

    @property
    def dtype(self) -> str:
        """Of the parameters in the file: "float32" or "float64"."""
        return self._info["dtype"]

    @property
    def descriptor_count(self) -> int:
        """Numbers for each atom in `Result.descriptors`; 0: the model has none."""
        return self._info["descriptor_count"]

    @property
    def is_runnable(self) -> bool:
        """Whether a session can be made; otherwise `why_not_runnable` says why."""
        return self._info["is_runnable"]

    @property
    def why_not_runnable(self) -> str:
        return self._info["why_not_runnable"]

    @property
    def description(self) -> dict[str, Any]:
        """All that is known about the model; the keys are those of `mlff model info --json -`."""
        return json.loads(self._handle.description_json())

    def __repr__(self) -> str:
        return f"mlff.Model({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Model, (self.name,)
