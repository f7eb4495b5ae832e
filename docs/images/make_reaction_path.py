#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes docs/images/reaction_path.svg again: the plot in the report of the first command of docs/reaction-paths.md. Usage: make_reaction_path.py MLFF"""
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    line = re.search(r"^\$ (mlff neb .* --report path)$", (HERE.parent / "reaction-paths.md").read_text(), re.MULTILINE).group(1)
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "examples").symlink_to(ROOT / "examples")
        subprocess.run([str(pathlib.Path(sys.argv[1]).resolve()), *shlex.split(line)[1:]], cwd=folder, stdout=subprocess.DEVNULL, check=True)
        page = (pathlib.Path(folder) / "path" / "report.html").read_text()
    plot = re.search(r"<svg.*?</svg>", page, re.DOTALL).group()
    rules = re.findall(r"(?:\.(?:grid|curve|points|overlay|guide)|svg text) \{[^}]*\}", re.search(r"<style>(.*?)</style>", page, re.DOTALL).group(1))
    begin = '<svg xmlns="http://www.w3.org/2000/svg" width="690" height="420"'
    style = "<style>text { font-family: system-ui, sans-serif; } " + " ".join(rule.replace("svg text", "text") for rule in rules) + "</style>"
    plot = plot.replace("<svg", begin, 1).replace(">\n", ">\n" + style + '\n<rect width="460" height="280" fill="#ffffff"/>\n', 1)
    (HERE / "reaction_path.svg").write_text(plot + "\n")


if __name__ == "__main__":
    main()
