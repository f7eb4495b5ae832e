# SPDX-License-Identifier: MIT
"""Frames on disk: one .npz per shard. Needs numpy only.

In a shard with F frames and A atoms in all:
  numbers    uint8   [A]     atomic numbers
  positions  float32 [A, 3]  angstrom, about the centroid; the labels belong to exactly these rounded values
  forces     float32 [A, 3]  eV/angstrom
  energies   float64 [F]     eV, total GFN2-xTB energy
  offsets    int64   [F+1]   frame f has the atoms offsets[f]:offsets[f+1]
  system     int32   [F]     index into meta["systems"]: SMILES of the members, joined by "."
  split      uint8   [F]     index into SPLITS
  kind       uint8   [F]     index into KINDS
  temperature float32 [F]    kelvin of the sampler; 0 where none
  task       int32   [F]     the task that made the frame
  meta       a JSON text: systems, tasks done, rejected frames by reason, seconds
"""
import json
import os
import pathlib

import numpy as np

KINDS = ("mmff_md", "xtb_relax", "xtb_md", "strained", "water", "solvated", "dimer", "scan", "springs", "shaken", "held_out_300K", "held_out_shaken")


def write_shard(path, frames, meta):
    """Writes all or nothing: to a second name first, then renamed."""
    path = pathlib.Path(path)
    systems = sorted({frame["system"] for frame in frames})
    index = {name: i for i, name in enumerate(systems)}
    sizes = [len(frame["numbers"]) for frame in frames]

    def joined(key, dtype, tail):
        return np.concatenate([frame[key] for frame in frames]).astype(dtype) if frames else np.zeros((0,) + tail, dtype)

    arrays = {
        "numbers": joined("numbers", np.uint8, ()),
        "positions": joined("positions", np.float32, (3,)),
        "forces": joined("forces", np.float32, (3,)),
        "energies": np.array([frame["energy"] for frame in frames], np.float64),
        "offsets": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        "system": np.array([index[frame["system"]] for frame in frames], np.int32),
        "split": np.array([frame["split"] for frame in frames], np.uint8),
        "kind": np.array([frame["kind"] for frame in frames], np.uint8),
        "temperature": np.array([frame["temperature"] for frame in frames], np.float32),
        "task": np.array([frame["task"] for frame in frames], np.int32),
        "meta": np.array(json.dumps(dict(meta, systems=systems))),
    }
    partial = path.with_name(path.name + ".part")
    with open(partial, "wb") as file:
        np.savez(file, **arrays)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def read_shard(path):
    """The arrays of a shard by name; "meta" as a dict."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    arrays["meta"] = json.loads(str(arrays["meta"]))
    return arrays


def shard_paths(folder):
    return sorted(pathlib.Path(folder).glob("shard-*.npz"))


def frames_of(shard):
    """One dict per frame of a shard that was read."""
    for f in range(len(shard["energies"])):
        atoms = slice(shard["offsets"][f], shard["offsets"][f + 1])
        yield {
            "numbers": shard["numbers"][atoms], "positions": shard["positions"][atoms], "forces": shard["forces"][atoms],
            "energy": float(shard["energies"][f]), "system": shard["meta"]["systems"][shard["system"][f]],
            "split": int(shard["split"][f]), "kind": int(shard["kind"][f]),
            "temperature": float(shard["temperature"][f]), "task": int(shard["task"][f]),
        }
