# SPDX-License-Identifier: MIT
"""A few of our evaluations; a profiler that starts when told to sees the last one only.

  python step.py LIBRARY MODEL_FILE ATOMS PRECISION DEVICE SKIN"""
import ctypes
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native


def main():
    library, model_file, atoms, precision, device, skin = sys.argv[1:]
    session = native.Session(library, model_file, native.water(int(atoms)), device, precision, float(skin))
    for positions in session.shaken(4):
        session.place(positions)
        session.evaluate()
    profiled = session.shaken(5)[4]
    session.place(profiled)
    driver = ctypes.CDLL("libcuda.so.1") if device.startswith("cuda") else None
    if driver and driver.cuProfilerStart():
        sys.exit("cuProfilerStart failed: no CUDA context on this thread")
    session.evaluate()
    if driver:
        driver.cuProfilerStop()
    session.free()


if __name__ == "__main__":
    main()
