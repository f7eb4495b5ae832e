# SPDX-License-Identifier: MIT
"""Log lines of the library go to the logger "mlff" of Python's `logging`. A handler must not call mlff."""
import atexit
import logging

from . import _core

logger = logging.getLogger("mlff")
logger.addHandler(logging.NullHandler())

_LEVELS = {1: logging.WARNING, 2: logging.INFO, 3: logging.DEBUG}  # keys: mlff_log_level


def _forward(level: int, message: str) -> None:
    logger.log(_LEVELS.get(level, logging.DEBUG), "%s", message)


_core.set_log_handler(_forward)
atexit.register(_core.set_log_handler, None)
