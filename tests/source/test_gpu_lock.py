# SPDX-License-Identifier: MIT
"""Every test labelled gpu holds the lock gpu, so that no two of them share the memory of the GPU. Usage: test_gpu_lock.py CTEST BUILD_DIRECTORY"""
import json
import subprocess
import sys

CTEST, BUILD = sys.argv[1:3]
listed = json.loads(subprocess.run([CTEST, "--test-dir", BUILD, "--show-only=json-v1"], capture_output=True, text=True, check=True).stdout)["tests"]
properties = {test["name"]: {one["name"]: one["value"] for one in test["properties"]} for test in listed}
on_gpu = [name for name, has in properties.items() if "gpu" in has.get("LABELS", [])]
assert on_gpu, "no test is labelled gpu"
for name in on_gpu:
    assert "gpu" in properties[name].get("RESOURCE_LOCK", []), f"{name} is labelled gpu and has no RESOURCE_LOCK gpu"
print(f"{len(on_gpu)} tests hold the lock")
