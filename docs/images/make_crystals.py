#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the pictures of docs/crystals.md again: runs the commands of the page and takes the first plot of each report.

Usage: docs/images/make_crystals.py MLFF CHECKPOINT   (CHECKPOINT: checkpoint_sevennet_0.pth)
"""
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent / "crystals.md"
NAMES = r"svg text|\.grid|\.curve|\.guide|\.points|\.overlay"  # rules of the report that a plot needs
LEGEND_HEIGHT = 24


def picture(page):
    """The first plot of a report, with its legend and the style it needs, as a file of its own."""
    figure = re.search(r"<figure>.*?</figure>", page, re.DOTALL).group()
    rules = re.findall(rf"(?:{NAMES}) {{[^}}]*}}", re.search(r"<style>(.*?)</style>", page, re.DOTALL).group(1))
    width, height = (float(number) for number in re.search(r'viewBox="0 0 (\S+) (\S+)"', figure).groups())
    title = re.search(r'aria-label="([^"]*)"', figure).group(1)
    drawing = re.search(r"<svg[^>]*>\n(.*?)</svg>", figure, re.DOTALL).group(1)
    legend, at = "", 62
    for color, name in re.findall(r"<span>(?:<i style=\"background:(#\w+)\"></i>)?([^<]*)</span>", figure):
        if color:
            legend += f'<rect x="{at}" y="{height + 6:g}" width="14" height="4" fill="{color}"/>'
            at += 19
        legend += f'<text x="{at}" y="{height + 12:g}">{name}</text>\n'
        at += 8 * len(name) + 16
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height + LEGEND_HEIGHT:g}" width="{1.5 * width:g}" height="{1.5 * (height + LEGEND_HEIGHT):g}" '
            f'font-family="system-ui, sans-serif" role="img" aria-label="{title}">\n<style>{" ".join(rules)}</style>\n<rect width="100%" height="100%" fill="#fff"/>\n{drawing}{legend}</svg>\n')


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, model = (str(pathlib.Path(argument).resolve()) for argument in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        for block in re.findall(r"^```\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL):
            if block.startswith("4\nLattice="):
                (pathlib.Path(folder) / "aln.xyz").write_text(block)
        for name in ("silicon.xyz",):
            (pathlib.Path(folder) / name).write_bytes((HERE.parents[1] / "examples" / name).read_bytes())
        for command in re.findall(r"^\$ mlff (.*)$", PAGE.read_text(), re.MULTILINE):
            words = [model if word == "checkpoint_sevennet_0.pth" else word for word in shlex.split(command, comments=True)]
            print("mlff", command, flush=True)
            print(subprocess.run([program, *words], cwd=folder, check=True, capture_output=True, text=True).stdout, flush=True)
            if "--report" in words:
                page = (pathlib.Path(folder) / words[words.index("--report") + 1] / "report.html").read_text()
                (HERE / f"crystals_{words[0]}.svg").write_text(picture(page))


if __name__ == "__main__":
    main()
