# SPDX-License-Identifier: MIT
"""Molecules relaxed by mlff relax, one after the other and as a running batch. Generates them from the frames of tests/data/student_frames.xyz, shaken. Prints JSON: for
each --batch the seconds of the whole process, the seconds without its start (a run that relaxes one molecule), and how many converged.

  python relax.py MLFF [--device cuda] [--count 1000] [--fmax 0.01] [--batch auto 1] [--model builtin] [--threads 0]"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent


def molecules(count):
    lines = (HERE / "../../tests/data/student_frames.xyz").read_text().splitlines()
    found, at = [], 0
    while at < len(lines) and lines[at].strip():
        atoms = int(lines[at])
        found.append([line.split()[:4] for line in lines[at + 2:at + 2 + atoms]])
        at += atoms + 2
    numbers = random.Random(5)
    for k in range(count):
        atoms = found[k % len(found)]
        yield f'{len(atoms)}\nProperties=species:S:1:pos:R:3 pbc="F F F"\n' + "".join(
            f"{symbol} " + " ".join(f"{float(x) + numbers.gauss(0, 0.05):.6f}" for x in position) + "\n" for symbol, *position in atoms)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mlff")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--fmax", default="0.01")
    parser.add_argument("--batch", nargs="+", default=["auto", "1"])
    parser.add_argument("--model", default="builtin")
    parser.add_argument("--threads", default="0")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        frames = list(molecules(arguments.count))
        one, many, relaxed = (pathlib.Path(folder) / name for name in ("one.xyz", "many.xyz", "relaxed.xyz"))
        one.write_text(frames[0])
        many.write_text("".join(frames))

        def relax(path, batch):
            begin = time.perf_counter()
            result = subprocess.run([arguments.mlff, "relax", path, "--model", arguments.model, "--device", arguments.device, "--threads", arguments.threads,
                                     "--fmax", arguments.fmax, "--batch", batch, "--output", relaxed], capture_output=True, text=True)
            if result.returncode not in (0, 1):
                sys.exit(result.stderr)
            rows = [line.split() for line in result.stdout.splitlines()[1:]]
            return time.perf_counter() - begin, rows

        relax(one, "1")  # reads the files
        start = min(relax(one, "1")[0] for _ in range(3))
        report = {"device": arguments.device, "model": arguments.model, "molecules": arguments.count, "atoms": sum(int(frame.split()[0]) for frame in frames),
                  "fmax": float(arguments.fmax), "seconds_of_one": start, "batches": {}}
        for batch in arguments.batch:
            seconds, rows = relax(many, batch)
            report["batches"][batch] = {"seconds": seconds, "seconds_without_start": seconds - start, "moves": sum(int(row[2]) for row in rows),
                                        "converged": sum("not" not in row for row in rows)}
        print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
