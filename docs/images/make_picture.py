# SPDX-License-Identifier: MIT
"""A plot of a report as a picture for a page.

  python make_picture.py REPORT/report.html PICTURE.svg [WHICH, from 0]

vibrations_ethanol.svg: mlff vibrations examples/ethanol.xyz --report REPORT, plot 0."""
import pathlib
import re
import sys

STYLE = ("<style> text { font: 12px system-ui, sans-serif; fill: #59636e; } .grid { stroke: #e3e8ed; } "
         ".guide { fill: none; stroke: #818b98; stroke-dasharray: 5 4; } .curve { fill: none; stroke-width: 1.5; } .points { fill-opacity: .8; } "
         ".overlay { stroke-dasharray: 4 2.5; } .band { fill-opacity: .15; } .bar { fill-opacity: .75; } .whisker { stroke: #818b98; } </style>")


def main():
    plots = re.findall(r"<svg (.*?)>(.*?)</svg>", pathlib.Path(sys.argv[1]).read_text(), re.DOTALL)
    attributes, body = plots[int(sys.argv[3]) if len(sys.argv) > 3 else 0]
    pathlib.Path(sys.argv[2]).write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="560" {attributes}>{STYLE}{body}</svg>\n')


main()
