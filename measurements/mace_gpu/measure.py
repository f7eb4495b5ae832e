# SPDX-License-Identifier: MIT
"""Times energy + forces + stress of boxes of water on the GPU through the C interface: positions go to the device and results come back in
every call, and every call has other positions. Prints JSON.

  python measure.py LIBRARY MODEL_FILE... [--precisions mixed fp64] [--atoms 3 192 1536 12288] [--skin 1.0]"""
import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native


def measure(library, path, precision, atoms, skin):
    session = native.Session(library, path, native.water(atoms), "cuda", precision, skin)
    shaken, seconds = session.shaken(), []
    for call in range(25):
        session.place(shaken[call % len(shaken)])
        begin = time.perf_counter()
        session.evaluate()
        seconds.append(time.perf_counter() - begin)
    state = native.gpu_state()
    session.free()
    figures = native.spread(seconds[5:])
    return {"model": os.path.basename(path), "precision": precision, "atoms": atoms, **figures, "us_per_atom": 1e3 * figures["median_ms"] / atoms,
            "memory_used": state.get("memory.used")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--precisions", nargs="*", default=["mixed", "fp64"])
    parser.add_argument("--atoms", nargs="*", type=int, default=[3, 192, 1536, 12288], choices=[3, *native.SIDES])
    parser.add_argument("--skin", type=float, default=1.0)
    arguments = parser.parse_args()
    rows = [measure(arguments.library, path, precision, atoms, arguments.skin) for path in arguments.models for precision in arguments.precisions for atoms in arguments.atoms]
    json.dump({"gpu": native.gpu_state(), "skin_angstrom": arguments.skin, "rows": rows}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
