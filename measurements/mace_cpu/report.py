# SPDX-License-Identifier: MIT
"""The stored form of a measurement: where and with what it was made, and rows that a later run replaces one by one."""
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def output_of(*command):
    """What a command prints, or nothing where it is missing or fails."""
    try:
        return subprocess.run(command, cwd=ROOT, env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def processor():
    """Name and highest clock in MHz (None where the system does not tell)."""
    with open("/proc/cpuinfo") as file:
        lines = output_of("lscpu").splitlines() + file.read().splitlines()
    known = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    clock = known.get("CPU max MHz", known.get("cpu MHz"))
    return known.get("Model name", platform.processor()), float(clock) if clock else None


def stamp():
    """When and at which commit; "-dirty" says that sources of the library differ from it."""
    commit = output_of("git", "rev-parse", "HEAD") or "unknown"
    is_changed = output_of("git", "status", "--porcelain", "CMakeLists.txt", "apps", "cmake", "include", "src")
    return {"commit": commit + ("-dirty" if is_changed else ""), "date": time.strftime("%Y-%m-%d")}


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Report:
    """A JSON file. Opening one that exists keeps its rows, unless it was made under other conditions: that is an error."""

    def __init__(self, path, threads, order):
        """`order` gives the place of a row among the others."""
        name, clock = processor()
        here = {"machine": platform.machine(), "processor": name, "clock_mhz": clock, "threads": threads,
                "peers": {package: importlib.metadata.version(package) for package in ("mace-torch", "torch")}}
        self.path, self.order, self.content = path, order, {"rows": []}
        if os.path.exists(path):
            with open(path) as file:
                self.content = json.load(file)
        for key in ("machine", "processor", "threads", "peers"):
            if self.content.get(key, here[key]) != here[key]:
                sys.exit(f"{path} has figures with {key} {self.content[key]}, and this is {here[key]}: choose another --output")
        self.content = {**here, **{key: value for key, value in self.content.items() if key not in here}}

    def put_row(self, row):
        key = [row[name] for name in ("model", "system", "engine")]
        kept = [old for old in self.content["rows"] if [old[name] for name in ("model", "system", "engine")] != key]
        self.content["rows"] = kept + [row]

    def put_start(self, engine, figures):
        self.content.setdefault("start", {})[engine] = figures

    def save(self):
        self.content["rows"].sort(key=self.order)
        with open(self.path, "w") as file:
            json.dump(self.content, file, indent=1)
            file.write("\n")
