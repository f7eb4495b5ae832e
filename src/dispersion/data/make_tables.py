#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes d3_reference.safetensors and ../tables/functionals.inc: the numbers of DFT-D3.

usage: make_tables.py FOLDER

FOLDER has the unpacked wheels tad_dftd3 0.7.0, tad_mctc 0.11.3 and dftd3 1.7.0 (pip download
--no-deps, unzip), each in a folder of its package's name. Nothing of them is executed. All numbers have at most four
decimals, so that whole numbers hold them exactly.
"""

import json
import re
import struct
import sys
import tomllib
import zipfile
from array import array
from pathlib import Path

ELEMENTS = 94
SIZE = 104  # of the packages' tables
REFERENCES = 7
BOHR = 0.529177210903  # angstrom
HERE = Path(__file__).resolve().parent


def numbers_after(text, begin):
    """The numbers of the first list after `begin`, without comments."""
    text = text[text.index(begin):]
    text = text[text.index("["):]
    text = text[:text.index("]")]
    return [float(number) for number in re.findall(r"\d+\.\d+", re.sub(r"#.*", "", text))]


def stored_doubles(path, member):
    values = array("d")
    values.frombytes(zipfile.ZipFile(path).read(member))
    return values


def scaled(value, factor=10000):
    result = round(value * factor)
    if abs(result - value * factor) > 1e-3:
        raise SystemExit(f"{value} has more than four decimals")
    return result


def reference_tables(folder):
    package = folder / "tad_dftd3/tad_dftd3"
    rows = re.findall(r"\[((?:\s*[+-]?\d+\.\d+,?){7})\]", (package / "reference.py").read_text())
    coordination = [[float(x) for x in row.split(",") if x.strip()] for row in rows]
    counts = [sum(x >= 0 for x in row) for row in coordination]
    c6 = stored_doubles(package / "reference-c6.pt", "archive/data/0")
    vdw = stored_doubles(folder / "tad_mctc/tad_mctc/data/vdw-pairwise.pt", "vdw-pairwise/data/0")
    moments = numbers_after((package / "data/r4r2.py").read_text(), "_r4_over_r2 = ")
    covalent = numbers_after((folder / "tad_mctc/tad_mctc/data/radii.py").read_text(), "def COV_D3")
    all_references = [(z, p) for z in range(1, ELEMENTS + 1) for p in range(counts[z])]
    pairs = [c6[((a * SIZE + b) * REFERENCES + p) * REFERENCES + q] for i, (a, p) in enumerate(all_references)
             for b, q in all_references[:i + 1]]
    return {
        "c6": array("i", map(scaled, pairs)),
        "coordination": array("i", [scaled(coordination[z][p]) for z, p in all_references]),
        "moments": array("i", [scaled(x) for x in moments[1:ELEMENTS + 1]]),
        "covalent": array("i", [scaled(x) for x in covalent[1:ELEMENTS + 1]]),
        "radii": array("i", [scaled(vdw[a * SIZE + b] * BOHR) for a in range(1, ELEMENTS + 1) for b in range(1, a + 1)]),
        "count": array("i", counts[1:ELEMENTS + 1]),
    }


def write_safetensors(path, tables):
    header = {"__metadata__": {
        "origin": "DFT-D3 reference data (Grimme and co-workers): C6, coordination numbers and <r4>/<r2> from tad-dftd3"
                  " 0.7.0, covalent and van der Waals radii from tad-mctc; written by make_tables.py",
        "units": "1e-4 of: hartree bohr^6 (c6), 1 (coordination), bohr^2 (moments), angstrom (covalent, radii)"}}
    offset = 0
    for name, values in tables.items():
        header[name] = {"dtype": "I32", "shape": [len(values)], "data_offsets": [offset, offset + 4 * len(values)]}
        offset += 4 * len(values)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in tables.values():
            file.write(struct.pack(f"<{len(values)}i", *values))


def functional_lines(folder):
    table = tomllib.loads((folder / "dftd3/dftd3/parameters.toml").read_text())["parameter"]
    table["opbe"]["d3"]["zero"]["s8"] = 2.055  # what the package computes with; its table repeats bpbe
    lines = []
    for name in sorted(table):
        kinds = table[name].get("d3", {})
        bj, zero = kinds.get("bj"), kinds.get("zero")
        if bj:
            numbers = ", ".join(repr(float(x)) for x in (bj.get("s6", 1), bj["s8"], bj["a1"], bj["a2"]))
            lines.append(f'{{"{name.replace("_", "-")}", bj({numbers})}},')
        if zero:
            numbers = ", ".join(repr(float(x))
                                for x in (zero.get("s6", 1), zero.get("s8", 0), zero["rs6"], zero.get("rs8", 1)))
            lines.append(f'{{"{name.replace("_", "-")}", zero({numbers})}},')
        for kind in filter(None, (bj, zero)):
            if kind.get("alp", 14) != 14:
                raise SystemExit(f"{name} has another exponent")
    return lines


def main():
    folder = Path(sys.argv[1])
    write_safetensors(HERE / "d3_reference.safetensors", reference_tables(folder))
    (HERE.parent / "tables/functionals.inc").write_text(
        "// SPDX-License-Identifier: MIT\n"
        "// Parameters of DFT-D3 by functional, as published by their authors and collected in s-dftd3 1.7.0. Written by\n"
        "// data/make_tables.py: bj(s6, s8, a1, a2 in bohr), zero(s6, s8, rs6, rs8).\n"
        "// clang-format off\n" + "\n".join(functional_lines(folder)) + "\n    // clang-format on\n")


if __name__ == "__main__":
    main()
