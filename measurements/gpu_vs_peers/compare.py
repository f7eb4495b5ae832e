# SPDX-License-Identifier: MIT
"""mlff beside mace-torch with cuEquivariance on one GPU, in three parts; --only takes one or more of them:

  peaks    bytes and operations a second the GPU reaches in loops that do nothing else (peaks.cu, and matrix products of torch)
  speed    mlff (energy, forces, stress, neighbour list, copies from and to the host) and the peer (energy and forces, stress only where
           it says so, its neighbour list made beforehand), called in turns with the same model file and the same box of water; forces
           are compared, and the run fails if they differ by more than --tolerance or are NaN
  profile  one step of mlff kernel by kernel, with the hardware counters of ncu

The models are made by mace-torch with seeded weights (measurements/mace_cpu/make_models.py) unless they lie in --models already. Results go to
--output after every case; entries that are not measured again stay. A case is MODEL:ATOMS:PRECISION[:PEER,...] with the peers cueq,
cueq-stress and e3nn (mace-torch alone); without peers mlff is timed alone."""
import argparse
import datetime
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
import numpy as np

import native
import ncu
from store import Store, is_within
from turns import time_in_turns

SPEED_CASES = ["mp0-medium:12288:mixed:cueq,cueq-stress", "mp0-small:12288:mixed:cueq", "mp0-medium:3:mixed:cueq", "mp0-medium:192:mixed:cueq",
               "mp0-medium:1536:mixed:cueq", "mp0-medium:5184:fp64:cueq", "mp0-large:12288:mixed:cueq", "mp0-large:3:mixed:cueq",
               "mp0-medium:98304:mixed", "mp0-medium:499125:mixed"]
PROFILE_CASES = ["mp0-medium:12288:mixed", "mp0-medium:3:mixed"]


class Run:
    """Options, the store, when this run must end, and what went wrong so far."""

    def __init__(self, options):
        self.options, self.store, self.failures = options, Store(options.output), []
        self.begin = time.monotonic()
        self.stamp = {"commit": options.commit, "date": datetime.date.today().isoformat()}

    def say(self, *words):
        print(f"[{time.monotonic() - self.begin:5.0f} s]", *words, flush=True)

    def fail(self, *words):
        self.failures.append(" ".join(str(word) for word in words))
        self.say("FAILED:", *words)

    def is_late(self, what):
        late = time.monotonic() - self.begin > 60 * self.options.minutes
        if late:
            self.fail(what, f"was not begun: {self.options.minutes:g} minutes are over")
        return late

    def model_file(self, name):
        return os.path.join(self.options.models, name + ".model")


def parse_case(text):
    model, atoms, precision, *peers = text.split(":")
    return model, int(atoms), precision, [peer for peer in (peers[0].split(",") if peers else []) if peer]


def commit_here():
    found = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else "unknown"


def make_models(run, names):
    missing = [name for name in names if not os.path.exists(run.model_file(name))]
    if missing:
        run.say("making", *missing)
        subprocess.run([sys.executable, "-W", "ignore", os.path.join(ROOT, "measurements", "mace_cpu", "make_models.py"), run.options.models, *missing], check=True)
    for name in names:
        with open(run.model_file(name), "rb") as file:
            run.store.put("models", name, hashlib.sha256(file.read()).hexdigest())


# ---- peaks

def output_of(command):
    found = subprocess.run(command, capture_output=True, text=True)
    if found.returncode != 0:
        raise RuntimeError(f"{os.path.basename(command[0])} failed: {found.stderr[-300:].strip()}")
    return found.stdout


def build_peaks(options, folder):
    program = os.path.join(folder, "peaks")
    output_of([options.nvcc, "-O3", "-arch=" + options.arch, "-o", program, os.path.join(HERE, "peaks.cu")])
    return program


def matrix_product_rate(dtype, size=8192):
    """Operations a second of torch's product of two square matrices, the best of 20."""
    import torch
    a, b = (torch.randn(size, size, device="cuda", dtype=dtype) for _ in range(2))
    best = float("inf")
    for _ in range(20):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        a @ b
        end.record()
        torch.cuda.synchronize()
        best = min(best, begin.elapsed_time(end) * 1e-3)
    return 2 * size**3 / best


def measure_peaks(run):
    with tempfile.TemporaryDirectory() as folder:
        peaks = json.loads(output_of([build_peaks(run.options, folder)]))
    import torch
    peaks["fp16_matmul_flop"] = matrix_product_rate(torch.float16)
    torch.backends.cuda.matmul.allow_tf32 = True
    peaks["tf32_matmul_flop"] = matrix_product_rate(torch.float32)
    torch.backends.cuda.matmul.allow_tf32 = False  # the peer's default
    peaks["fp32_matmul_flop"] = matrix_product_rate(torch.float32)
    torch.cuda.empty_cache()
    run.store.update(peaks={**peaks, "gpu": native.gpu_state(), **run.stamp})
    run.say("peaks:", ", ".join(f"{name} {value / 1e12:.2f}e12" for name, value in peaks.items() if name.endswith(("_bytes", "_flop")) and name != "l2_cache_bytes"))


# ---- speed

def free_memory():
    """Of the GPU, in bytes; None without one."""
    import torch
    return torch.cuda.mem_get_info()[0] if torch.cuda.is_available() else None


def compare_results(run, label, row, ours, theirs, kind):
    """Forces must agree; differences of energy and stress are stored."""
    energy, forces, stress = theirs
    difference = float(np.abs(ours.forces - forces).max())
    tolerance = run.options.tolerance if row["precision"] == "mixed" else run.options.tolerance_fp64
    row["force_size"] = float(np.sqrt(np.mean(ours.forces**2)))
    row.setdefault("force_difference", {})[kind] = difference
    row.setdefault("energy_difference_per_atom", {})[kind] = float(abs(ours.energy[0] - energy)) / row["atoms"]
    if stress is not None:
        row.setdefault("stress_difference", {})[kind] = float(np.abs(ours.stress - stress).max())
    if not is_within(difference, tolerance):
        run.fail(label, f"forces differ from {kind} by {difference:.3g} eV/A, more than {tolerance:g}")


def measure_case(run, case, peer_models):
    model, atoms, precision, peers = parse_case(case)
    options, label = run.options, f"{model}, {atoms} atoms, {precision}"
    system = native.water(atoms)
    before = free_memory()
    ours = native.Session(options.library, run.model_file(model), system, options.device, precision, options.skin)
    shaken = ours.shaken()
    for positions in (*shaken[:2], ours.positions):  # the last call is what is compared: a step like those that are timed
        ours.place(positions)
        ours.evaluate()
    row = {"model": model, "atoms": atoms, "precision": precision, **run.stamp}
    after = free_memory()
    if not np.isfinite(ours.forces).all():
        run.fail(label, "our forces are not finite")
    engines = {"mlff": (lambda index: ours.place(shaken[index % len(shaken)]), ours.evaluate)}
    batch, memory = None, {"mlff": None if before is None else (before - after) / 2**20}
    for name in peers:
        kind = name.removesuffix("-stress")
        try:
            import peer
            begin = time.monotonic()
            if (model, kind, precision) not in peer_models:
                peer_models[model, kind, precision] = peer.load(run.model_file(model), kind, precision, options.device)
            batch = batch or peer.prepare(peer_models[model, kind, precision], system, options.device)
            row["edges"] = int(batch["edge_index"].shape[1])
            theirs = peer.Peer(peer_models[model, kind, precision], batch, options.device, name.endswith("-stress"))
            memory[name] = peer_memory(theirs.evaluate)
            run.say(label + ":", name, f"first call after {time.monotonic() - begin:.1f} s")
            compare_results(run, label, row, ours, theirs.results(), name)
            engines[name] = (lambda index: None, theirs.evaluate)
        except Exception as error:  # a peer that fails must not cost our figures
            row[name] = {"error": repr(error)[:300]}
            run.fail(label, name, repr(error)[:300])
    for name, seconds in time_in_turns(engines).items():
        row[name] = {**native.spread(seconds), "memory_mb": memory[name]}
        run.say(label + ":", name, f"{row[name]['median_ms']:.3f} ms ({row[name]['min_ms']:.3f} to {row[name]['max_ms']:.3f}),",
                f"{1e3 * row[name]['median_ms'] / atoms:.2f} us/atom")
    for name, difference in row.get("force_difference", {}).items():
        run.say(label + ":", f"largest difference of forces from {name} {difference:.2e} eV/A at {row['force_size']:.2f} rms")
    ours.free()
    run.store.put("speed", f"{model}:{atoms}:{precision}", {**row, "gpu": native.gpu_state()})


def peer_memory(call):
    """MB that torch needs at most in a call; None without a GPU."""
    import torch
    if not torch.cuda.is_available():
        call()
        return None
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    call()
    return torch.cuda.max_memory_allocated() / 2**20


def measure_speed(run):
    cases = run.options.cases or SPEED_CASES
    if run.options.plain:
        cases = [case + ",e3nn" if case.count(":") == 3 else case for case in cases]
    make_models(run, sorted({parse_case(case)[0] for case in cases}))
    try:
        import peer
        run.store.update(versions=peer.versions())
        run.say("peers:", run.store.content["versions"])
    except ImportError as error:
        run.fail("no peer:", error)
    peer_models = {}
    for case in cases:
        if run.is_late(case):
            continue
        try:
            measure_case(run, case, peer_models)
        except Exception as error:
            run.fail(case, repr(error)[:300])
        if "torch" in sys.modules and sys.modules["torch"].cuda.is_available():
            sys.modules["torch"].cuda.empty_cache()


# ---- profile

def available_metrics(options):
    """Of those we want; what ncu does not know it refuses, with all the rest."""
    found = subprocess.run([options.ncu, "--query-metrics"], capture_output=True, text=True)
    known = {line.split()[0] for line in found.stdout.splitlines() if line.strip()}
    return ncu.REQUIRED + [metric for metric in ncu.OPTIONAL if metric.split(".")[0] in known]


def profile(options, metrics, command, from_start):
    """The launches that ncu saw, and its output."""
    found = subprocess.run([options.ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none", "--cache-control", "none",
                            "--graph-profiling", "node", "--profile-from-start", "on" if from_start else "off", "--metrics", ",".join(metrics), *command],
                           capture_output=True, text=True, timeout=60 * options.minutes, env={**os.environ, "LC_ALL": "C"})
    launches = ncu.parse(found.stdout)
    if not launches:
        raise RuntimeError("ncu found no kernels: " + (found.stderr + found.stdout)[-1500:])
    return launches, found.stdout


def measure_profile(run):
    options, cases = run.options, run.options.cases or PROFILE_CASES
    make_models(run, sorted({parse_case(case)[0] for case in cases}))
    metrics = available_metrics(options)
    run.say("counters that ncu does not have here:", *(set(ncu.OPTIONAL) - set(metrics)))
    scale = {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            program = build_peaks(options, folder)
            done = json.loads(output_of([program, "calibrate"]))
            scale = ncu.calibrate(profile(options, metrics, [program, "calibrate"], True)[0], done)
    except Exception as error:
        run.fail("calibration of the tensor counters:", repr(error)[:1500])
    run.say("operations for each count of the tensor counters:", scale)
    for case in cases:
        if run.is_late("profile of " + case):
            continue
        model, atoms, precision, _ = parse_case(case)
        command = [sys.executable, os.path.join(HERE, "step.py"), options.library, run.model_file(model), str(atoms), precision, options.device, str(options.skin)]
        try:
            launches, text = profile(options, metrics, command, False)
        except Exception as error:
            metrics = ncu.REQUIRED  # for the next case, should one of the others be at fault
            run.fail("profile of", case, repr(error)[:2000])
            continue
        if options.keep_csv:
            os.makedirs(options.keep_csv, exist_ok=True)
            with open(os.path.join(options.keep_csv, f"ncu-{model}-{atoms}-{precision}.csv"), "w") as file:
                file.write(text)
        kernels = ncu.add_up(launches)
        run.store.put("profile", f"{model}:{atoms}:{precision}", {"model": model, "atoms": atoms, "precision": precision, "seconds": sum(kernel["seconds"] for kernel in kernels),
                                                                  "launches": len(launches), "tensor_scale": scale, "kernels": kernels, **run.stamp})
        run.say("profile of", case + ":", len(launches), "launches,", f"{1e3 * sum(kernel['seconds'] for kernel in kernels):.3f} ms")
        for kernel in kernels[:12]:
            run.say(f"  {1e6 * kernel['seconds']:9.1f} us {kernel['launches']:3d} x {kernel['name']}", ncu.closest_limit(kernel, run.store.content.get("peaks", {}), scale))


PARTS = {"peaks": measure_peaks, "speed": measure_speed, "profile": measure_profile}


def main():
    parser = argparse.ArgumentParser(prog="measurements/gpu_vs_peers/run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, metavar="FILE", help="JSON; entries already there stay unless they are measured again")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts to run (all)")
    parser.add_argument("--site", metavar="FOLDER", help="where mace-torch and cuEquivariance lie, if not with python3's own packages")
    parser.add_argument("--library", default=os.path.join(ROOT, "build", "release", "src", "libmlff.so"), help="(%(default)s)")
    parser.add_argument("--models", metavar="FOLDER", help="with .model files; those that are not there are made (a folder beside --output)")
    parser.add_argument("--cases", nargs="+", metavar="CASE", help="instead of the usual ones; for speed or profile alone")
    parser.add_argument("--plain", action="store_true", help="time mace-torch without cuEquivariance too")
    parser.add_argument("--tolerance", type=float, default=1e-3, help="of forces, mixed against fp32, in eV/A (%(default)s); forces are of size 1, and fp32 coordinates "
                        "of a box of 50 A are good to 3e-6 A")
    parser.add_argument("--tolerance-fp64", type=float, default=1e-5, help="of forces, fp64 against fp64 (%(default)s)")
    parser.add_argument("--skin", type=float, default=1.0, help="of our neighbour list, in A (%(default)s)")
    parser.add_argument("--minutes", type=float, default=9.0, help="no case is begun after this time (%(default)s)")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: to try the script, of both sides (%(default)s)")
    parser.add_argument("--commit", default=None, help="of the library, where this is no git checkout")
    parser.add_argument("--nvcc", default=shutil.which("nvcc") or "nvcc", help="(%(default)s)")
    parser.add_argument("--arch", default="native", help="of the GPU, as nvcc calls it (%(default)s)")
    parser.add_argument("--ncu", default=shutil.which("ncu") or "ncu", help="(%(default)s)")
    parser.add_argument("--keep-csv", metavar="FOLDER", help="keep what ncu wrote")
    options = parser.parse_args()
    options.output, options.commit = os.path.abspath(options.output), options.commit or commit_here()
    options.models = options.models or os.path.join(os.path.dirname(options.output), "models")
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # for e3nn's own constants
    if options.site:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.path.abspath(options.site), os.environ.get("PYTHONPATH")]))
        sys.path.insert(0, os.path.abspath(options.site))
    run = Run(options)
    run.store.update(gpu=native.gpu_state(), skin_angstrom=options.skin, tolerance={"mixed": options.tolerance, "fp64": options.tolerance_fp64},
                     what="mlff: energy, forces, stress, neighbour list and copies from and to the host; peers: energy and forces, neighbour list not counted")
    for part in PARTS:
        if part in options.only and not run.is_late(part):
            run.say("==", part)
            try:
                PARTS[part](run)
            except Exception as error:
                run.fail(part, repr(error)[:500])
    run.store.update(failures=run.failures)
    sys.exit(f"{len(run.failures)} failed:\n  " + "\n  ".join(run.failures) if run.failures else 0)


if __name__ == "__main__":
    main()
