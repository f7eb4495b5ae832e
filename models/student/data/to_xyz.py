# SPDX-License-Identifier: MIT
"""Writes frames of shards as extended XYZ with energy, forces, split, kind and molecule. Needs numpy only.

    to_xyz.py frames out.xyz [--split test] [--kind water] [--below 4000] [--most 200] [--seed 1]

--below takes frames of the tasks below that number. With --most, frames are drawn at random: evenly over the kinds, and one per system before a second of any.
"""
import argparse
import collections
import pathlib

import numpy as np

from shards import KINDS, frames_of, read_shard, shard_paths
from split import SPLITS

SYMBOLS = {1: "H", 5: "B", 6: "C", 7: "N", 8: "O", 9: "F", 14: "Si", 15: "P", 16: "S", 17: "Cl", 35: "Br", 53: "I"}


def frame_text(frame):
    """One frame; nine digits hold a float32 exactly."""
    lines = [str(len(frame["numbers"])),
             f'Properties=species:S:1:pos:R:3:forces:R:3 energy={frame["energy"]:.10f} split={SPLITS[frame["split"]]} kind={KINDS[frame["kind"]]} '
             f'temperature={frame["temperature"]:.0f} molecule="{frame["system"]}" pbc="F F F"']
    for number, position, force in zip(frame["numbers"], frame["positions"], frame["forces"]):
        lines.append(SYMBOLS[int(number)] + "".join(f" {float(value):.9g}" for value in (*position, *force)))
    return "\n".join(lines) + "\n"


def selected(folder, split, kind, below):
    """Frames in the order of their tasks within each shard."""
    for path in shard_paths(folder):
        for frame in frames_of(read_shard(path)):
            if frame["task"] < below and split in (None, SPLITS[frame["split"]]) and kind in (None, KINDS[frame["kind"]]):
                yield frame


def drawn(frames, most, seed):
    """At most `most` frames, in rounds: from each kind in turn, a frame of the system least drawn so far."""
    rng = np.random.default_rng(seed)
    by_kind = collections.defaultdict(list)
    for frame in frames:
        by_kind[frame["kind"]].append(frame)
    queues = []
    for kind in sorted(by_kind):
        order = rng.permutation(len(by_kind[kind]))
        seen, ranked = collections.Counter(), []
        for place, index in enumerate(order):
            frame = by_kind[kind][index]
            ranked.append((seen[frame["system"]], place, frame))
            seen[frame["system"]] += 1
        ranked.sort(key=lambda entry: entry[:2])
        queues.append(collections.deque(entry[2] for entry in ranked))
    chosen = []
    while len(chosen) < most and any(queues):
        for queue in queues:
            if queue and len(chosen) < most:
                chosen.append(queue.popleft())
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--split", choices=SPLITS)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--below", type=int, default=2**31)
    parser.add_argument("--most", type=int)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    frames = selected(options.folder, options.split, options.kind, options.below)
    if options.most is not None:
        frames = sorted(frames, key=lambda frame: frame["task"])  # so that the draw does not depend on how shards were cut
        frames = drawn(frames, options.most, options.seed)
    count = 0
    with open(options.out, "w") as file:
        for frame in frames:
            file.write(frame_text(frame))
            count += 1
    print(f"{count} frames")


if __name__ == "__main__":
    main()
