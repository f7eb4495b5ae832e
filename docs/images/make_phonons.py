#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes phonons_silicon.svg, the picture of docs/phonons.md: the plots of a report of `mlff phonons`, side by side.

Usage: docs/images/make_phonons.py REPORT/report.html
"""
import pathlib
import re
import sys

STYLE = """text { font: 11px sans-serif; fill: #3b424a; } .title { font-weight: 600; font-size: 13px; } .grid { stroke: #e3e6ea; } .curve { fill: none; stroke-width: 1.3; }
.guide { fill: none; stroke: #555; stroke-dasharray: 5 4; }"""
SHOWN = 3  # dispersion, density of states, heat capacity


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    page = pathlib.Path(sys.argv[1]).read_text()
    figures = re.findall(r"<figcaption>(.*?)</figcaption>\s*<svg viewBox=\"0 0 ([\d.]+) ([\d.]+)\"[^>]*>(.*?)</svg>", page, re.DOTALL)[:SHOWN]
    if len(figures) < SHOWN:
        sys.exit("make_phonons.py: the report has too few plots")
    width, height = float(figures[0][1]), float(figures[0][2])
    parts = []
    for index, (title, _, _, drawing) in enumerate(figures):
        left = index * width
        parts.append(f'<text class="title" x="{left + width / 2:g}" y="16" text-anchor="middle">{title}</text>\n'
                     f'<svg x="{left:g}" y="24" width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}">{drawing}</svg>')
    text = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SHOWN * width:g} {height + 24:g}">\n<style>{STYLE}</style>\n'
            '<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n")
    (pathlib.Path(__file__).resolve().parent / "phonons_silicon.svg").write_text(text)


if __name__ == "__main__":
    main()
