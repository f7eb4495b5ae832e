# SPDX-License-Identifier: MIT
"""Makes labelled frames: samples geometries, labels them with GFN2-xTB, writes shards. Can be killed and started again.

    make_frames.py --molecules molecules.jsonl --out frames [--seed 1] [--workers 2] [--minutes 75] [--tasks 100000] [--held-out 25]

Task number i is drawn from (seed, i) alone: its kind, molecules, temperature and noise. Kinds and molecules come in shuffled
order, so what was made by any moment is a balanced sample. With --held-out, a task is one molecule for validation or test instead, at 300 K: up to
so many molecules of each class and split; the folder then has the list of them, held_out.jsonl. A file named STOP in the folder ends the run early.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np

from shards import KINDS, read_shard, shard_paths, write_shard
from split import SPLITS

FRAMES_PER_SHARD = 2000
HELD_OUT_FRAMES_PER_SHARD = 90
TASK_SECONDS = 120  # a worker busy with one task for longer is ended and the task skipped


def done_tasks(folder):
    done = set()
    for path in shard_paths(folder):
        done.update(read_shard(path)["meta"]["tasks"])
    return done


def work(options):
    """One worker: its share of the tasks, shard after shard."""
    from tasks import Molecules, Task, held_out, plan  # RDKit and tblite are for workers only
    folder, number = options.out, options.worker
    if options.held_out:
        chosen = held_out(options.molecules, options.held_out, options.seed)
        options.tasks = min(options.tasks, len(chosen))
        if number == 0:
            (folder / "held_out.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in chosen))
    else:
        molecules = Molecules(options.molecules, options.seed)
    full = HELD_OUT_FRAMES_PER_SHARD if options.held_out else FRAMES_PER_SHARD
    skipped = folder / "skipped.txt"
    done = done_tasks(folder)
    if skipped.exists():
        done.update(int(line) for line in skipped.read_text().split())
    current = folder / f"worker-{number}.current"
    frames, tasks, rejected, begun = [], [], collections.Counter(), time.time()

    def flush():
        nonlocal frames, tasks, rejected, begun
        if tasks:
            meta = {"tasks": tasks, "rejected": dict(rejected), "seconds": time.time() - begun}
            write_shard(folder / f"shard-{number}-{tasks[0]:07d}.npz", frames, meta)
        frames, tasks, rejected, begun = [], [], collections.Counter(), time.time()

    for index in range(number, options.tasks, options.workers):
        if index in done:
            continue
        if time.time() > options.deadline or (folder / "STOP").exists():
            break
        current.write_text(str(index))
        if options.held_out:
            kind, members, rng = "held_out_300K", [chosen[index]["smiles"]], np.random.default_rng([options.seed, 3, index])
        else:
            kind, members, rng = plan(index, molecules, options.seed)
        task = Task(index, kind, members, rng, options.seed)
        task.run()
        frames += task.frames
        rejected.update({f"{kind}: {reason}": count for reason, count in task.rejected.items()})
        tasks.append(index)
        if len(frames) >= full:
            flush()
    flush()
    current.unlink(missing_ok=True)


def summary(folder):
    """Counts over all shards."""
    kinds, splits, rejected = collections.Counter(), collections.Counter(), collections.Counter()
    frames = atoms = tasks = 0
    seconds, systems = 0.0, {name: set() for name in SPLITS}
    for path in shard_paths(folder):
        shard = read_shard(path)
        frames += len(shard["energies"])
        atoms += len(shard["numbers"])
        tasks += len(shard["meta"]["tasks"])
        seconds += shard["meta"]["seconds"]
        kinds.update(KINDS[k] for k in shard["kind"])
        splits.update(SPLITS[s] for s in shard["split"])
        rejected.update(shard["meta"]["rejected"])
        for system, split in set(zip(shard["system"].tolist(), shard["split"].tolist())):
            systems[SPLITS[split]].add(shard["meta"]["systems"][system])
    skipped = pathlib.Path(folder) / "skipped.txt"
    return {"frames": frames, "atoms": atoms, "tasks": tasks, "worker_seconds": round(seconds, 1), "frames_by_kind": dict(kinds.most_common()),
            "frames_by_split": dict(splits), "systems_by_split": {name: len(names) for name, names in systems.items()},
            "molecules_by_split": {name: len({s for s in names if "." not in s}) for name, names in systems.items()},
            "rejected": dict(rejected.most_common()), "tasks_skipped_after_a_crash": len(skipped.read_text().split()) if skipped.exists() else 0}


def write_manifest(options):
    import importlib.metadata
    versions = {name: importlib.metadata.version(name) for name in ("tblite", "rdkit", "numpy")}
    from labelling import ACCURACY, ELECTRONIC_TEMPERATURE, MAX_FORCE, MIN_DISTANCE
    manifest = {"method": "GFN2-xTB", "accuracy": ACCURACY, "electronic_temperature": ELECTRONIC_TEMPERATURE, "max_force": MAX_FORCE,
                "min_distance": MIN_DISTANCE, "seed": options.seed, "versions": versions, "kinds": KINDS, "splits": SPLITS, **summary(options.out)}
    partial = options.out / "manifest.json.part"
    partial.write_text(json.dumps(manifest, indent=1) + "\n")
    os.replace(partial, options.out / "manifest.json")
    return manifest


def supervise(options):
    """Starts the workers, starts one again that ended by a crash or hung, and writes progress."""
    folder, last_report = options.out, 0.0
    command = [sys.executable, __file__, *sys.argv[1:], "--deadline", str(options.deadline), "--worker"]
    for left in folder.glob("worker-*.current"):  # by a run that was ended: not a worker that hangs
        left.unlink()
    workers = {number: subprocess.Popen(command + [str(number)]) for number in range(options.workers)}
    restarts, begun = 0, time.time()
    while workers:
        time.sleep(5)
        for number, process in list(workers.items()):
            current = folder / f"worker-{number}.current"
            try:
                stuck = process.poll() is None and time.time() - current.stat().st_mtime > TASK_SECONDS
            except FileNotFoundError:
                stuck = False
            if stuck:
                process.kill()
                process.wait()
            if process.poll() is None:
                continue
            if process.returncode == 0:
                del workers[number]
                continue
            restarts += 1
            if current.exists():
                with open(folder / "skipped.txt", "a") as file:
                    file.write(current.read_text() + "\n")
            if restarts > 200 or restarts > 10 and not shard_paths(folder) and time.time() < begun + 60:
                raise RuntimeError("too many crashes of workers")
            workers[number] = subprocess.Popen(command + [str(number)])
        if options.progress and time.time() - last_report > 60:
            last_report = time.time()
            manifest = write_manifest(options)
            rate = manifest["frames"] / max(manifest["worker_seconds"], 1e-9) * options.workers
            text = (f"{time.strftime('%H:%M:%S')} frames {manifest['frames']} rate {rate:.1f}/s mean atoms {manifest['atoms'] / max(manifest['frames'], 1):.1f} "
                    f"rejected {sum(manifest['rejected'].values())} restarts {restarts} minutes left {(options.deadline - time.time()) / 60:.1f}\n")
            options.progress.write_text(text)
    manifest = write_manifest(options)
    print(json.dumps(manifest, indent=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--molecules", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--progress", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=75)
    parser.add_argument("--tasks", type=int, default=100000)
    parser.add_argument("--held-out", type=int, metavar="MOLECULES_PER_CLASS", help="frames of validation and test molecules at 300 K instead")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--deadline", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.deadline is None:
        options.deadline = time.time() + 60 * options.minutes
    if options.worker is None:
        supervise(options)
    else:
        work(options)


if __name__ == "__main__":
    main()
