# SPDX-License-Identifier: MIT
"""Times opening a model file: the whole command `mlff model info` and its peak memory, and torch.load for comparison.

  python measure.py MLFF MODEL OUT.json"""
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time

TORCH_LOAD = """
import sys, time, warnings
warnings.filterwarnings("ignore")
begin = time.perf_counter()
import torch, mace.modules
imported = time.perf_counter()
torch.load(sys.argv[1], weights_only=False)
print(imported - begin, time.perf_counter() - imported)
"""


def run_and_wait(command):
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, command
    return time.perf_counter() - begin, usage.ru_maxrss * 1024


def main():
    mlff, model, output = sys.argv[1:4]
    run_and_wait([mlff, "model", "info", model])  # warm
    runs = [run_and_wait([mlff, "model", "info", model]) for _ in range(15)]
    seconds = sorted(run[0] for run in runs)
    size = os.path.getsize(model)
    torch_runs = [subprocess.run([sys.executable, "-c", TORCH_LOAD, model], capture_output=True, text=True, check=True).stdout.splitlines()[-1].split()
                  for _ in range(3)]
    report = {
        "machine": platform.machine(), "cores": os.cpu_count(), "file_bytes": size,
        "mlff_model_info_seconds": {"median": statistics.median(seconds), "min": seconds[0], "max": seconds[-1]},
        "mlff_peak_bytes": max(run[1] for run in runs), "mlff_peak_over_file": max(run[1] for run in runs) / size,
        "torch_import_seconds": statistics.median(float(run[0]) for run in torch_runs),
        "torch_load_seconds": statistics.median(float(run[1]) for run in torch_runs)}
    with open(output, "w") as file:
        json.dump(report, file, indent=2)
        file.write("\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
