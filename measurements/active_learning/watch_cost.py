# SPDX-License-Identifier: MIT
"""What watching costs: instructions of a step of mlff md with a committee of three, with --watch and with --no-watch, counted by valgrind, which has AVX2 but no AVX-512. 192 atoms of water, one thread.
Instructions, because the difference is far below the noise of times.

  python3 watch_cost.py MLFF [--model self-test]"""
import argparse
import pathlib
import re
import subprocess
import tempfile


def water():
    """4 x 4 x 4 molecules at the density of water."""
    side, lines = 12.42, []
    for index in range(64):
        x, y, z = (side / 4 * (index // 4**k % 4) for k in range(3))
        turn = 1 if index % 2 else -1
        lines += [f"O {x} {y} {z}", f"H {x + 0.96} {y} {z}", f"H {x - 0.24} {y + 0.93 * turn} {z}"]
    return f'192\nLattice="{side} 0 0 0 {side} 0 0 0 {side}" pbc="T T T"\n' + "\n".join(lines) + "\n"


def instructions(mlff, folder, model, steps, flag):
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", mlff, "md", "box.xyz", "--model", ",".join([model] * 3), "--ensemble", "nvt",
                           "--temperature", "300", "--dt", "0.02", "--steps", str(steps), "--threads", "1", "--device", "cpu", "--overwrite", flag],
                          cwd=folder, check=True, capture_output=True, text=True)
    return int(re.search(r"Collected : (\d+)", done.stderr).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mlff", type=pathlib.Path)
    parser.add_argument("--model", default="self-test")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "box.xyz").write_text(water())
        step = {}
        for flag in ("--watch", "--no-watch"):
            few, more = (instructions(options.mlff.resolve(), folder, options.model, steps, flag) for steps in (2, 6))
            step[flag] = (more - few) / 4
    print(f"{options.model}: {step['--no-watch']:.0f} instructions a step, {step['--watch'] - step['--no-watch']:.0f} more with --watch: {100 * (step['--watch'] / step['--no-watch'] - 1):.3f} %")


if __name__ == "__main__":
    main()
