# SPDX-License-Identifier: MIT
"""Every kernel waits for the one before it: launch() lets kernels begin early (src/gpu/runtime/cuda_check.h), and one that forgot to wait would read what is not there yet.

  python test_kernels.py SOURCE_FOLDER"""
import pathlib
import re
import sys


def bodies(text):
    """(name, body) of each kernel that is defined in a source text."""
    for kernel in re.finditer(r"__global__", text):
        depth, at = 0, kernel.end()
        while not (depth == 0 and text[at] in "{;"):
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        if text[at] == ";":
            continue
        name = re.findall(r"(\w+)\s*\(", re.sub(r"__launch_bounds__\((?:[^()]|\([^()]*\))*\)", "", text[kernel.end():at]))[0]
        begin, depth = at, 0
        while True:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
            if depth == 0:
                break
        yield name, text[begin:at]


def waits(body):
    """Whether no thread returns before it has waited."""
    before = re.sub(r"start_work(<\w+>)?\(", "await_predecessor()", body).partition("await_predecessor()")  # start_work, of fused messages, waits
    return before[1] != "" and not re.search(r"\breturn\s*;", before[0])


def main():
    kernels = [(path, name, body) for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.cu*")) if "train" not in path.parts for name, body in bodies(path.read_text())]
    launched = [kernel for kernel in kernels if kernel[1] != "write_answer"]  # launched plainly, alone, to see whether the GPU works; so are those of the trainer
    assert len(launched) >= 40, f"only {len(launched)} kernels were found"
    assert waits("{ f(); await_predecessor(); }") and not waits("{ f(); }") and not waits("{ if (x) return; await_predecessor(); }")
    bad = [f"{path}: {name} does not begin with await_predecessor()" for path, name, body in launched if not waits(body)]
    print("\n".join(bad) or f"{len(launched)} kernels wait")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
