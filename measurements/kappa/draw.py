# SPDX-License-Identifier: MIT
"""Draws docs/images/thermal_conductivity.svg, what measurements/kappa/run.py found against published values, from measurements/results/kappa.json.

  python3 measurements/kappa/draw.py OUT.json...   condense what run.py wrote into measurements/results/kappa.json, and draw
  python3 measurements/kappa/draw.py [--check]     draw; with --check, fail if the picture is not what the measurements say"""
import json
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "measurements")]
from picture import STYLE, text

RESULTS = ROOT / "measurements" / "results" / "kappa.json"
PUBLISHED = ROOT / "measurements" / "kappa" / "published.json"
PICTURE = ROOT / "docs" / "images" / "thermal_conductivity.svg"
WIDTH, HEIGHT = 880, 430
LEFT, RIGHT, TOP, BOTTOM = 70, 420, 80, 360  # of the first panel
SHIFT = 430  # of the second
KAPPA, TEMPERATURE = (1.5, 100), (280, 1020)
KEPT = ("temperatures", "kappa", "kappa_relaxation_time", "kappa_coherences")


def condensed(paths):
    """What run.py wrote, without the modes; of several meshes of one crystal, the first is the row and the others show convergence."""
    contents = [json.loads(pathlib.Path(path).read_text()) for path in paths]
    rows, meshes = {}, []
    for content in contents:
        for item in content["structures"]:
            kappa = item["conductivity"]
            meshes.append({"formula": item["formula"], "mesh": content["settings"]["mesh"][0], "kappa": kappa["kappa"][0]})
            row = {name: item[name] for name in ("formula", "space_group", "displaced", "supercell_atoms", "phonon_displaced", "phonon_supercell_atoms", "highest_frequency", "seconds")}
            rows.setdefault(item["formula"], row | {name: kappa[name] for name in KEPT} | {"cell": item["cell"][0][0]})
    first = contents[0]
    return {"model": first["model"], "phono3py": first["phono3py"], "settings": first["settings"], "structures": list(rows.values()),
            "meshes": sorted((item for item in meshes if sum(other["formula"] == item["formula"] for other in meshes) > 1), key=lambda item: item["mesh"])}


def place(value, ends, low, high, is_log):
    if is_log:
        value, low, high = math.log(value), math.log(low), math.log(high)
    return ends[0] + (ends[1] - ends[0]) * (value - low) / (high - low)


def frame(left, right, x_ticks, x_place, y_place, heading, x_label):
    parts = [text(left, TOP - 12, heading, "text head")]
    for value in (2, 5, 10, 20, 50, 100):
        parts += [f'<line x1="{left}" y1="{y_place(value):.1f}" x2="{right}" y2="{y_place(value):.1f}" class="grid"/>', text(left - 7, y_place(value) + 4, f"{value}", "quiet small", "end")]
    for value in x_ticks:
        parts += [f'<line x1="{x_place(value):.1f}" y1="{TOP}" x2="{x_place(value):.1f}" y2="{BOTTOM}" class="grid"/>', text(x_place(value), BOTTOM + 17, f"{value}", "quiet small", "middle")]
    return parts + [f'<rect x="{left}" y="{TOP}" width="{right - left}" height="{BOTTOM - TOP}" class="frame"/>', text((left + right) / 2, BOTTOM + 36, x_label, "quiet", "middle")]


def picture(measured, published):
    def up(value):
        return place(value, (BOTTOM, TOP), *KAPPA, True)

    def along(value):
        return place(value, (LEFT, RIGHT), *KAPPA, True)

    def warm(value):
        return place(value, (LEFT + SHIFT, RIGHT + SHIFT), *TEMPERATURE, False)

    parts = [text(24, 34, "Lattice thermal conductivity in W/(m K), SevenNet-0", "text title")]
    parts += frame(LEFT, RIGHT, (2, 5, 10, 20, 50, 100), along, up, "mlff at 300 K against published values", "published")
    parts.append(f'<line x1="{LEFT}" y1="{BOTTOM}" x2="{RIGHT}" y2="{TOP}" class="gap"/>')
    rows = {row["formula"]: row for row in published["rows"]}
    ordered = sorted(measured["structures"], key=lambda item: item["kappa"][0])  # neighbours have their names on different sides
    for index, item in enumerate(ordered):
        if item["formula"] in rows:
            row, kappa = rows[item["formula"]], item["kappa"][0]
            parts += [f'<circle cx="{along(row["dft"]):.1f}" cy="{up(kappa):.1f}" r="4" class="peer-fill"/>', f'<circle cx="{along(row["sevennet"]):.1f}" cy="{up(kappa):.1f}" r="4" class="ours-fill"/>',
                      text(min(along(row["sevennet"]), along(row["dft"])) - 8, up(kappa) + 4, item["formula"], "text small", "end") if index % 2 == 0 else
                      text(max(along(row["sevennet"]), along(row["dft"])) + 8, up(kappa) + 4, item["formula"], "text small")]
    for index, (kind, label) in enumerate((("ours", "SevenNet-0 through its package"), ("peer", "density functional theory"))):
        parts += [f'<circle cx="{RIGHT - 212}" cy="{BOTTOM - 34 + 18 * index}" r="4" class="{kind}-fill"/>', text(RIGHT - 202, BOTTOM - 30 + 18 * index, label, "quiet small")]
    parts += frame(LEFT + SHIFT, RIGHT + SHIFT, (400, 600, 800, 1000), warm, up, "mlff against temperature", "temperature in K")
    for index, item in enumerate(ordered):
        points = [(warm(t), up(kappa)) for t, kappa in zip(item["temperatures"], item["kappa"]) if kappa >= KAPPA[0]]
        parts.append('<polyline points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + '" class="line ours"/>')
        name = points[2 * (index % 3)]
        parts.append(text(name[0] + 6, name[1] - 4, item["formula"], "text small"))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">\n<style>{STYLE}</style>\n'
            f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8" class="card"/>\n' + "\n".join(parts) + "\n</svg>\n")


def main():
    paths = [word for word in sys.argv[1:] if word != "--check"]
    if paths:
        RESULTS.write_text(json.dumps(condensed(paths), indent=1) + "\n")
    drawn = picture(json.loads(RESULTS.read_text()), json.loads(PUBLISHED.read_text()))
    if "--check" in sys.argv:
        if PICTURE.read_text() != drawn:
            sys.exit(f"{PICTURE.name} is not what the measurements say; run measurements/kappa/draw.py")
    else:
        PICTURE.write_text(drawn)


if __name__ == "__main__":
    main()
