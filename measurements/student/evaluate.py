# SPDX-License-Identifier: MIT
"""Errors of a student by molecule, on frames of molecules that it has not seen (`make_frames.py --held-out`), against their GFN2-xTB labels. Prints tables,
and writes JSON with --json.

  python evaluate.py LIBRARY FOLDER [--model builtin] [--split test] [--json errors.json]

FOLDER has the shards and held_out.jsonl, or is a tar file of these. The force error of a molecule is the mean absolute error over the components of its
frames at 300 K, its energy error the mean absolute error per atom of the same frames. No offset is taken away: energies are total energies."""
import argparse
import json
import os
import pathlib
import sys
import tarfile
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "models" / "student" / "data")]
import native
from shards import KINDS, frames_of, read_shard, shard_paths
from split import SPLITS

AT_300K, SHAKEN = KINDS.index("held_out_300K"), KINDS.index("held_out_shaken")


def read(folder, split):
    """Frames by molecule, the class of each molecule of the split, and why frames were rejected (in all splits)."""
    if os.path.isfile(folder):
        with tempfile.TemporaryDirectory() as unpacked:
            with tarfile.open(folder) as file:
                file.extractall(unpacked, filter="data")
            return read(unpacked, split)
    listed = [json.loads(line) for line in (pathlib.Path(folder) / "held_out.jsonl").read_text().splitlines()]
    classes = {entry["smiles"]: entry["class"] for entry in listed if split in ("all", entry["split"])}
    rejected = {}
    molecules = {}
    for path in shard_paths(folder):
        shard = read_shard(path)
        for reason, count in shard["meta"]["rejected"].items():
            rejected[reason] = rejected.get(reason, 0) + count
        for frame in frames_of(shard):
            if split in ("all", SPLITS[frame["split"]]):
                molecules.setdefault(frame["system"], []).append(frame)
    return molecules, classes, rejected


def errors_of(arguments, frames):
    """Of one molecule. Atoms come in the same order in all of its frames."""
    numbers = frames[0]["numbers"]
    session = native.Session(arguments.library, arguments.model, (numbers, frames[0]["positions"].astype(float), None), arguments.device, arguments.precision, 0.0, 1)
    force, energy, force_sum, shaken_error, shaken_square = [], [], [], [], []
    try:
        for frame in frames:
            if not np.array_equal(frame["numbers"], numbers):
                raise ValueError(f"frames of {frame['system']} have different atoms")
            session.positions[:] = frame["positions"]
            session.evaluate()
            error = np.abs(session.forces - frame["forces"]).mean()
            if frame["kind"] == AT_300K:
                force.append(error)
                energy.append(abs(session.energy[0] - frame["energy"]) / len(numbers))
                force_sum.append((frame["forces"].astype(float)**2).mean())
            elif frame["kind"] == SHAKEN:
                shaken_error.append(error)
                shaken_square.append((frame["forces"].astype(float)**2).mean())
    finally:
        session.free()
    found = {"atoms": len(numbers), "frames": len(force), "shaken_frames": len(shaken_error)}
    if force:
        found.update(force_mae=1e3 * np.mean(force), energy_mae=1e3 * np.mean(energy), rms_force=1e3 * np.sqrt(np.mean(force_sum)))
    if shaken_error:
        found.update(shaken_mae=1e3 * np.mean(shaken_error), shaken_rms_force=1e3 * np.sqrt(np.mean(shaken_square)))
    return {key: float(value) if isinstance(value, float) else value for key, value in found.items()}


def summary(molecules):
    """Over those of `molecules` that have frames at 300 K."""
    with_forces = [molecule for molecule in molecules if "force_mae" in molecule]
    if not with_forces:
        return {"molecules": 0}
    force = np.array([molecule["force_mae"] for molecule in with_forces])
    energy = np.array([molecule["energy_mae"] for molecule in with_forces])
    worst = with_forces[int(force.argmax())]
    return {"molecules": len(force), "force_mae_median": float(np.median(force)), "force_mae_p95": float(np.percentile(force, 95)), "force_mae_worst": float(force.max()),
            "worst": worst["smiles"], "force_mae_mean": float(force.mean()), "energy_mae_mean": float(energy.mean()), "energy_mae_median": float(np.median(energy)),
            "energy_mae_p95": float(np.percentile(energy, 95)), "energy_mae_worst": float(energy.max())}


def shaken(molecules):
    """Mean absolute force error over rms force: of all frames, each with the same weight, and by molecule."""
    molecules = [molecule for molecule in molecules if "shaken_mae" in molecule]
    if not molecules:
        return {"molecules": 0}
    frames = np.array([molecule["shaken_frames"] for molecule in molecules])
    error, rms = (np.array([molecule[key] for molecule in molecules]) for key in ("shaken_mae", "shaken_rms_force"))
    of_each = error / rms
    mae, rms = float(np.average(error, weights=frames)), float(np.sqrt(np.average(rms**2, weights=frames)))
    return {"molecules": len(molecules), "frames": int(frames.sum()), "force_mae": mae, "rms_force": rms, "ratio": mae / rms, "ratio_median_of_molecules": float(np.median(of_each)),
            "ratio_p95_of_molecules": float(np.percentile(of_each, 95)), "ratio_worst": float(of_each.max()), "worst": molecules[int(of_each.argmax())]["smiles"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("folder")
    parser.add_argument("--model", default="builtin")
    parser.add_argument("--split", choices=("test", "validation", "all"), default="test")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", choices=sorted(native.PRECISIONS), default="mixed")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    begin = time.perf_counter()
    by_molecule, classes, rejected = read(arguments.folder, arguments.split)
    molecules, failed = [], {}
    for smiles, frames in sorted(by_molecule.items()):
        try:
            molecules.append({"smiles": smiles, "class": classes[smiles], **errors_of(arguments, frames)})
        except RuntimeError as error:  # an element that the model does not have
            failed[smiles] = str(error)
    if not molecules:
        sys.exit(f"no molecule was evaluated; {len(failed)} failed: {next(iter(failed.values()), 'no frames')}")
    named = {name: summary([molecule for molecule in molecules if molecule["class"] == name]) for name in sorted({molecule["class"] for molecule in molecules})}
    result = {"what": "measurements/student/evaluate.py", "model": os.path.basename(arguments.model), "split": arguments.split, "precision": arguments.precision,
              "units": "meV/A, meV/atom", "at_300K": summary(molecules), "shaken": shaken(molecules), "by_class": named, "failed": failed,
              "seconds": round(time.perf_counter() - begin, 1), "by_molecule": sorted(molecules, key=lambda molecule: -molecule.get("force_mae", 0))}
    total, of_shaken = result["at_300K"], result["shaken"]
    print(f"{arguments.split}: {len(classes)} molecules listed, {len(by_molecule)} with frames, {len(molecules)} evaluated, {len(failed)} that the model cannot do\n")
    line = "{:24}{:>6}{:>9}{:>9}{:>9}{:>9}  {}"
    print(line.format("force MAE, meV/A", "number", "median", "p95", "worst", "energy", "worst molecule"))
    for name, row in [*named.items(), ("all", total)]:
        if row["molecules"]:
            print(line.format(name, row["molecules"], *(f"{row[key]:.1f}" for key in ("force_mae_median", "force_mae_p95", "force_mae_worst")),
                              f"{row['energy_mae_mean']:.2f}", row["worst"]))
    print("energy: mean over molecules of the mean absolute error, meV/atom")
    if of_shaken["molecules"]:
        print(f"shaken: force MAE {of_shaken['force_mae']:.0f} meV/A, rms force {of_shaken['rms_force']:.0f} meV/A, ratio {100 * of_shaken['ratio']:.1f} %, "
              f"by molecule median {100 * of_shaken['ratio_median_of_molecules']:.1f} %, worst {100 * of_shaken['ratio_worst']:.1f} % ({of_shaken['worst']})")
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
