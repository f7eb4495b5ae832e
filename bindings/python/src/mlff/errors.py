# SPDX-License-Identifier: MIT
"""The exceptions of mlff. Each is an `Error` with the `Status` of the C interface, and also the matching built-in exception."""
from __future__ import annotations

import enum


class Status(enum.IntEnum):
    """Values of mlff_status."""

    ARGUMENT = 1
    FILE = 2
    FORMAT = 3
    UNSUPPORTED = 4
    SYSTEM = 5
    DEVICE = 6
    MEMORY = 7
    INTERNAL = 8


class Error(Exception):
    """The base class. The message says what failed and what was expected."""

    status: Status = Status.INTERNAL


class ArgumentError(Error, ValueError):
    """An invalid argument or option: a wrong shape or type, an unknown head."""

    status = Status.ARGUMENT


class FileError(Error, OSError):
    """A file cannot be opened or read."""

    status = Status.FILE


class FormatError(Error, ValueError):
    """A file is damaged, malicious or not of the expected format."""

    status = Status.FORMAT


class UnsupportedError(Error, NotImplementedError):
    """The request is valid, but this build or this model does not support it."""

    status = Status.UNSUPPORTED


class StructureError(Error, ValueError):
    """Invalid atoms: an element the model does not know, a flat cell, a position that is not finite."""

    status = Status.SYSTEM


class DeviceError(Error, RuntimeError):
    """There is no such GPU, or the GPU failed."""

    status = Status.DEVICE


class OutOfMemoryError(Error, MemoryError):
    """Out of memory. The session remains usable."""

    status = Status.MEMORY


class InternalError(Error, RuntimeError):
    """A bug in mlff: please report it."""

    status = Status.INTERNAL


_BY_STATUS: dict[int, type[Error]] = {kind.status: kind for kind in (ArgumentError, FileError, FormatError, UnsupportedError, StructureError, DeviceError, OutOfMemoryError, InternalError)}


def from_status(status: int, message: str) -> Error:
    """The exception for a status of the C interface."""
    return _BY_STATUS.get(status, InternalError)(message)
