# SPDX-License-Identifier: MIT
"""What each optimisation brings on this GPU, and the student beside the same weights in PyTorch: `mlff bench --compare`, whose figures are stored in
measurements/results/optimisations_gpu.json.

  python optimisations.py MLFF STUDENT MACE_MODEL ENVIRONMENT [--output FILE]

STUDENT is a file (mlff model convert builtin STUDENT), ENVIRONMENT a Python environment with torch and numpy."""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]
import native

SIZES = "3,24,192,1536,12288"
SWITCHES = ["", ",graph=off", ",neighbors=brute", ",fused=off", ",graph=off,neighbors=brute,fused=off"]
MODES = {"PyTorch, eager": "", "PyTorch, TorchScript": "&mode=script", "PyTorch, torch.compile": "&mode=compile"}


def compare(program, specs):
    words = [word for spec in specs for word in ("--compare", spec)]
    return json.loads(subprocess.run([program, "bench", "--device", "cuda", "--sizes", SIZES, *words, "--json", "-"], check=True, stdout=subprocess.PIPE).stdout)


def rows(found, names):
    """One for each size and implementation, without the samples."""
    return [{"atoms": entry["atoms"], "model": name, "precision": one["precision"], "switched_off": one["switched_off"], "median_s": entry["median"], "p95_s": entry["p95"],
             "samples": len(entry["samples"]), "longer": 1 / entry["speed_up"], "longer_low": 1 / entry["speed_up_high"], "longer_high": 1 / entry["speed_up_low"],
             "energy_error_meV_per_atom": entry["figures"]["meV/atom error of the energy"], "force_rmse": entry["figures"]["eV/A RMSE of the forces"],
             "largest_force_error": entry["checks"][0]["value"]} for size in found["sizes"] for entry, one, name in zip(size["entries"], found["implementations"], names)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("program", "student", "mace", "environment"):
        parser.add_argument(name)
    parser.add_argument("--output", default=HERE.parent / "results" / "optimisations_gpu.json")
    arguments = parser.parse_args()
    switches = []
    for model in ("builtin", arguments.mace):
        switches += rows(compare(arguments.program, [model + switch for switch in SWITCHES]), [os.path.basename(model)] * len(SWITCHES))
    torch = [f"python:student:{arguments.student}?env={arguments.environment}&host=inprocess{mode},precision=fp32" for mode in MODES.values()]
    found = compare(arguments.program, [arguments.student, *torch])
    version = subprocess.run([os.path.join(arguments.environment, "bin", "python3"), "-c", "import torch; print(torch.__version__)"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    result = {"gpu": native.gpu_state(), "date": datetime.date.today().isoformat(), "commit": found["commit"], "torch": version, "switches": switches,
              "torch_rows": rows(found, ["mlff", *MODES])}
    pathlib.Path(arguments.output).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
