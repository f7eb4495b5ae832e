# SPDX-License-Identifier: MIT
"""Packs labelled frames into one file for mlff-train (layout: src/train/packed_frames.h). Needs numpy.

    pack_frames.py OUT.safetensors FILE...    shards (.npz: numbers, positions, forces, energies, offsets, split, kind) and packed files
        [--kinds NAME,NAME,...] [--exact] [--most N --seed S]

Positions are rounded to 2e-5 A and forces to 2e-4 eV/A (largest error: half of that), three bytes each, 18 bytes per atom in all and
about 13 after xz. --exact keeps float32: 24 bytes per atom. Frames that cannot be stored (not finite, beyond the range) are counted,
named and left out.
"""
import argparse
import json
import struct
import sys

import numpy as np

POSITION_STEP, FORCE_STEP = 2e-5, 2e-4
BIAS = 1 << 23


def as_bytes(values, step):
    """uint8 [3][n][3]: whole numbers of steps plus 2^23, lowest byte first."""
    counts = np.rint(values.astype(np.float64) / step).astype(np.int64) + BIAS
    assert counts.min() >= 0 and counts.max() < 2 * BIAS
    return np.stack([(counts >> shift & 255).astype(np.uint8) for shift in (0, 8, 16)])


def write_safetensors(path, tensors, metadata):
    names = {"float64": "F64", "float32": "F32", "uint16": "U16", "uint8": "U8"}
    order = sorted(tensors, key=lambda name: -tensors[name].dtype.itemsize)
    header, offset = {"__metadata__": metadata}, 0
    for name in order:
        array = tensors[name]
        header[name] = {"dtype": names[array.dtype.name], "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in order:
            file.write(np.ascontiguousarray(tensors[name]).tobytes())


def read_packed(path, kinds):
    """A packed file (.safetensors) as a shard."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    metadata = header.pop("__metadata__")
    if json.loads(metadata["kinds"]) != kinds:
        sys.exit(f"{path}: its kinds are {metadata['kinds']}, not {json.dumps(kinds)}")
    types = {"F64": np.float64, "F32": np.float32, "U16": np.uint16, "U8": np.uint8}
    tensors = {name: np.frombuffer(data[slice(*entry["data_offsets"])], types[entry["dtype"]]).reshape(entry["shape"]) for name, entry in header.items()}

    def numbers_of(name, step):
        stored = tensors[name]
        if stored.dtype == np.float32:
            return stored
        counts = sum(stored[byte].astype(np.int64) << 8 * byte for byte in range(3)) - BIAS
        return counts * float(step)

    return {"numbers": tensors["numbers"], "positions": numbers_of("positions", metadata["position_step"]),
            "forces": numbers_of("forces", metadata["force_step"]), "energies": tensors["energies"],
            "offsets": np.concatenate([[0], np.cumsum(tensors["atom_counts"], dtype=np.int64)]), "split": tensors["split"], "kind": tensors["kind"]}


def read_shard(path, kinds):
    if path.endswith(".safetensors"):
        return read_packed(path, kinds)
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in ("numbers", "positions", "forces", "energies", "offsets", "split", "kind")}


def fault_of(shard, frame):
    atoms = slice(shard["offsets"][frame], shard["offsets"][frame + 1])
    positions, forces = shard["positions"][atoms], shard["forces"][atoms]
    if not (1 <= len(positions) <= 65535):
        return "no atoms, or too many"
    if not (np.isfinite(positions).all() and np.isfinite(forces).all() and np.isfinite(shard["energies"][frame])):
        return "not finite"
    if np.abs(positions).max() > POSITION_STEP * (BIAS - 1) or np.abs(forces).max() > FORCE_STEP * (BIAS - 1):
        return "beyond the range"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--kinds", default="mmff_md,xtb_relax,xtb_md,strained,water,solvated,dimer,scan,springs,shaken,held_out_300K,held_out_shaken", help="names of the values of `kind`")
    parser.add_argument("--exact", action="store_true", help="positions and forces as float32")
    parser.add_argument("--most", type=int, default=0, help="a random choice of at most so many training frames")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    kinds = options.kinds.split(",")
    kept, faults = [], {}
    for path in options.files:
        shard = read_shard(path, kinds)
        for frame in range(len(shard["energies"])):
            fault = fault_of(shard, frame)
            if fault:
                faults[fault] = faults.get(fault, 0) + 1
            else:
                kept.append((shard, frame))
    for fault, count in faults.items():
        print(f"left out {count} frames: {fault}", file=sys.stderr)
    training = [index for index, (shard, frame) in enumerate(kept) if shard["split"][frame] == 0]
    if 0 < options.most < len(training):
        chosen = set(np.random.default_rng(options.seed).permutation(training)[: options.most].tolist()) | (set(range(len(kept))) - set(training))
        kept = [kept[index] for index in sorted(chosen)]

    def joined(key):
        return np.concatenate([shard[key][shard["offsets"][frame]:shard["offsets"][frame + 1]] for shard, frame in kept])

    def each(key, dtype):
        return np.array([shard[key][frame] for shard, frame in kept], dtype)

    positions, forces = joined("positions"), joined("forces")
    tensors = {
        "atom_counts": np.array([shard["offsets"][frame + 1] - shard["offsets"][frame] for shard, frame in kept], np.uint16),
        "numbers": joined("numbers").astype(np.uint8),
        "positions": positions.astype(np.float32) if options.exact else as_bytes(positions, POSITION_STEP),
        "forces": forces.astype(np.float32) if options.exact else as_bytes(forces, FORCE_STEP),
        "energies": each("energies", np.float64),
        "split": each("split", np.uint8),
        "kind": each("kind", np.uint8),
    }
    write_safetensors(options.out, tensors, {"format": "mlff-frames", "layout": "1", "kinds": json.dumps(kinds),
                                             "position_step": repr(POSITION_STEP), "force_step": repr(FORCE_STEP)})
    splits = {name: int((tensors["split"] == index).sum()) for index, name in enumerate(("train", "valid", "test"))}
    print(f"{options.out}: {len(kept)} frames, {len(positions)} atoms, {splits}")


if __name__ == "__main__":
    main()
