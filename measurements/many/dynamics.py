# SPDX-License-Identifier: MIT
"""Molecule-steps a second of copies of ethanol that mlff md --all moves together, beside the same number of steps of one copy. Each copy has velocities of its own. Prints
JSON; rates are those that mlff prints, so without the start of the program.

  python dynamics.py MLFF [--device cuda] [--count 1000] [--steps 1000] [--ensemble nvt] [--model builtin] [--threads 0]"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mlff")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--ensemble", default="nvt")
    parser.add_argument("--model", default="builtin")
    parser.add_argument("--threads", default="0")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def call(*command):
            result = subprocess.run([arguments.mlff, *map(str, command), "--model", arguments.model, "--device", arguments.device, "--threads", arguments.threads],
                                    capture_output=True, text=True)
            if result.returncode:
                sys.exit(result.stderr)
            return result.stdout

        one, many = folder / "one.xyz", folder / "many.xyz"
        call("relax", HERE / "../../examples/ethanol.xyz", "--output", one)
        many.write_text(one.read_text() * arguments.count)
        options = ("--all", "--ensemble", arguments.ensemble, "--temperature", "300", "--dt", "0.5", "--output-every", 10 ** 9, "--log-every", 10 ** 9, "--checkpoint-every", "0")
        rates = {}
        for copies, path in ((1, one), (arguments.count, many)):
            text = call("md", path, *options, "--steps", arguments.steps, "--output", folder / f"out{copies}")
            rates[copies] = float(re.search(r"(\S+) structure-steps/s", text).group(1))
        print(json.dumps({"device": arguments.device, "model": arguments.model, "ensemble": arguments.ensemble, "steps": arguments.steps,
                          "molecule_steps_per_second": rates}, indent=1))


if __name__ == "__main__":
    main()
