# SPDX-License-Identifier: MIT
"""Where C and C++ programs find the headers and the library of this package."""
import pathlib

_PACKAGE = pathlib.Path(__file__).resolve().parent


def get_include() -> str:
    """The folder for a compiler's -I: it has mlff/mlff.h and mlff/mlff.hpp."""
    folder = _PACKAGE / "include"
    if not (folder / "mlff" / "mlff.h").is_file():
        raise FileNotFoundError(f"there are no headers in {_PACKAGE}: this package was built for an installed library, which has its own")
    return str(folder)


def get_library() -> str:
    """The shared library, libmlff.so.N: a program may be linked with it by this path."""
    libraries = sorted(_PACKAGE.glob("libmlff.so.*"))
    if not libraries:
        raise FileNotFoundError(f"there is no libmlff.so in {_PACKAGE}: this package contains a static library")
    return str(libraries[0])
