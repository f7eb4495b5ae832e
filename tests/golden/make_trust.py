#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A trust meter of random numbers for a golden of PaiNN, from its bytes, written without looking at the C++.

    python make_trust.py [MODEL.safetensors]        (writes MODEL.safetensors.trust; one_block_no_repulsion by default)

It knows hydrogen and oxygen. Its centers are the means of the golden's descriptors, so that some atoms are novel and some not.
"""
import hashlib
import json
import math
import pathlib
import random
import struct
import sys


def fingerprint(model):
    end = 256 << 10
    return hashlib.sha256(struct.pack("<Q", len(model)) + model[:end] + model[-end:]).hexdigest()


def safetensors(metadata, tensors):
    """tensors: {name: (dtype, shape, numbers)}"""
    letters = {"F64": "d", "F32": "f", "I64": "q"}
    header, data = {"__metadata__": metadata}, b""
    for name, (dtype, shape, numbers) in sorted(tensors.items(), key=lambda item: item[1][0] == "F32"):
        packed = struct.pack(f"<{len(numbers)}{letters[dtype]}", *numbers)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def random_meter(model, elements, means, spread, components=4, seed=1):
    """The bytes of a meter for the bytes of a model. means: [element][descriptor]; spread: the size of a descriptor's deviations"""
    generator, width = random.Random(seed), len(means[0])
    normals = lambda count, size, mean=0.0: [generator.gauss(mean, size) for _ in range(count)]
    config = {"descriptors": width, "components": components, "radius": 4.0, "rest_variance": spread**2, "rest_weight": 0.3, "lowest_score": -6.0,
              "highest_score": 1.0, "own_weight": 0.7, "neighbor_weight": 0.4, "count_weight": -0.02, "outside_error": 0.5, "alarm_error": 0.3}
    count = len(elements)
    tensors = {
        "atomic_numbers": ("I64", [count], elements),
        "centers": ("F32", [count, width], sum(means, [])),
        "directions": ("F32", [width, components], normals(width * components, 1 / (spread * math.sqrt(width)))),
        "variances": ("F64", [components], [spread**2 / (k + 1) for k in range(components)]),
        "limits": ("F64", [count], [(width + components) * 1.2] * count),
        "offsets": ("F64", [count], normals(count, 0.2, -4)),
        "linear": ("F64", [components], normals(components, 0.2)),
        "quadratic": ("F64", [components * (components + 1) // 2], normals(components * (components + 1) // 2, 0.05)),
        "final_offsets": ("F64", [count], normals(count, 0.1)),
    }
    metadata = {"format": "mlff-trust", "trust_layout": "1", "config": json.dumps(config), "model": fingerprint(model), "card": json.dumps({"name": "random"})}
    return safetensors(metadata, tensors)


def main():
    folder = pathlib.Path(__file__).resolve().parent / "painn"
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else folder / "one_block_no_repulsion.safetensors"
    systems = json.loads(path.with_suffix(".json").read_text())["systems"]
    elements = [1, 8]
    rows = [[row for system in systems for z, row in zip(system["numbers"], system["outputs"].get("descriptors", [])) if z == element] for element in elements]
    means = [[sum(column) / len(column) for column in zip(*of_one)] for of_one in rows]
    squares = [(x - mean)**2 for of_one, mean_row in zip(rows, means) for row in of_one for x, mean in zip(row, mean_row)]
    path.with_name(path.name + ".trust").write_bytes(random_meter(path.read_bytes(), elements, means, math.sqrt(sum(squares) / len(squares))))


if __name__ == "__main__":
    main()
