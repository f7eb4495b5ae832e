# SPDX-License-Identifier: MIT
"""What can go wrong. Every exception is an `Error` with the `Status` of the C interface, and also the built-in exception that fits."""
from __future__ import annotations

import enum


class Status(enum.IntEnum):
    """The values of mlff_status."""

    ARGUMENT = 1
    FILE = 2
    FORMAT = 3
    UNSUPPORTED = 4
    SYSTEM = 5
    DEVICE = 6
    MEMORY = 7
    INTERNAL = 8


class Error(Exception):
    """Something failed; the message is one sentence that says what, and what was expected."""

    status: Status = Status.INTERNAL


class ArgumentError(Error, ValueError):
    """An argument or option that makes no sense: a wrong shape or type, an unknown head."""

    status = Status.ARGUMENT


class FileError(Error, OSError):
    """A file cannot be opened or read."""

    status = Status.FILE


class FormatError(Error, ValueError):
    """A file is damaged, hostile or not what it says it is."""

    status = Status.FORMAT


class UnsupportedError(Error, NotImplementedError):
    """Understood, but this build or this model cannot do it."""

    status = Status.UNSUPPORTED


class StructureError(Error, ValueError):
    """The atoms: an element the model does not know, a flat cell, a position that is not finite."""

    status = Status.SYSTEM


class DeviceError(Error, RuntimeError):
    """No such GPU, or the GPU failed."""

    status = Status.DEVICE


class OutOfMemoryError(Error, MemoryError):
    """Out of memory; the session still works."""

    status = Status.MEMORY


class InternalError(Error, RuntimeError):
    """A fault of mlff: please report it."""

    status = Status.INTERNAL


_BY_STATUS: dict[int, type[Error]] = {kind.status: kind for kind in (ArgumentError, FileError, FormatError, UnsupportedError, StructureError, DeviceError, OutOfMemoryError, InternalError)}


def from_status(status: int, message: str) -> Error:
    """The exception for a status of the C interface."""
    return _BY_STATUS.get(status, InternalError)(message)
