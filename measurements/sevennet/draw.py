# SPDX-License-Identifier: MIT
"""Draws docs/images/nequip_volumes.svg (energies against the volume) and docs/images/nequip_dynamics.svg (constant energy, constant pressure, lithium that moves) from
measurements/results/sevennet_materials.json. With --check, fails if the pictures are not what the measurements say.

  python3 measurements/sevennet/draw.py [--check]"""
import json
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "measurements")]
from picture import STYLE, text

IMAGES = ROOT / "docs" / "images"
NAMES = {"Si": "silicon", "NaCl": "NaCl", "Li6PS5Cl": "Li6PS5Cl"}
MORE_STYLE = """  .thin { fill: none; stroke-width: 1.5; stroke-linejoin: round; }
  .mark { stroke: #818b98; stroke-dasharray: 5 4; }
"""


def ticks(low, high, count=4):
    """Round numbers within the range"""
    rough = (high - low) / count
    power = 10 ** math.floor(math.log10(rough))
    step = power * next(factor for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough)
    first = math.ceil(low / step - 1e-9)
    return [step * n for n in range(first, math.floor(high / step + 1e-9) + 1)]


def number(value):
    return f"{value:g}".replace("-", "−")  # a minus sign


class Panel:
    """One plot: linear axes in a rectangle"""

    def __init__(self, box, x_range, y_range):
        (self.left, self.top, self.right, self.bottom), self.x_range, self.y_range = box, x_range, y_range

    def x(self, value):
        return self.left + (self.right - self.left) * (value - self.x_range[0]) / (self.x_range[1] - self.x_range[0])

    def y(self, value):
        return self.bottom - (self.bottom - self.top) * (value - self.y_range[0]) / (self.y_range[1] - self.y_range[0])

    def axes(self, heading, label, x_ticks=4, y_ticks=4):
        parts = [text(self.left, self.top - 12, heading, "text head")]
        for value in ticks(*self.y_range, y_ticks):
            parts += [f'<line x1="{self.left}" y1="{self.y(value):.1f}" x2="{self.right}" y2="{self.y(value):.1f}" class="grid"/>',
                      text(self.left - 7, self.y(value) + 4, number(value), "quiet small", "end")]
        for value in ticks(*self.x_range, x_ticks):
            parts += [f'<line x1="{self.x(value):.1f}" y1="{self.top}" x2="{self.x(value):.1f}" y2="{self.bottom}" class="grid"/>',
                      text(self.x(value), self.bottom + 17, number(value), "quiet small", "middle")]
        return parts + [f'<rect x="{self.left}" y="{self.top}" width="{self.right - self.left}" height="{self.bottom - self.top}" class="frame"/>',
                        text((self.left + self.right) / 2, self.bottom + 36, label, "quiet", "middle")]

    def curve(self, xs, ys, kind, thickness="thin"):
        points = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in zip(xs, ys))
        return [f'<polyline points="{points}" class="{thickness} {kind}"/>']

    def dots(self, xs, ys, kind):
        return [f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="4" class="{kind}-fill"/>' for x, y in zip(xs, ys)]

    def vertical(self, value, words, is_low):
        x = self.x(value)
        return [f'<line x1="{x:.1f}" y1="{self.top}" x2="{x:.1f}" y2="{self.bottom}" class="mark"/>', text(x + 5, self.bottom - 16 if is_low else self.top + 16, words, "quiet small")]


def card(width, height, title, heading):
    return [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-labelledby="title">', f'<title id="title">{title}</title>',
            f"<style>{STYLE}{MORE_STYLE}</style>", f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="10" class="card"/>', text(24, 34, heading, "text title")]


def finished(parts, notes, height):
    return "\n".join(parts + [text(24, height - 14 - 18 * (len(notes) - 1 - i), note, "quiet small") for i, note in enumerate(notes)] + ["</svg>"]) + "\n"


def padded(values, share=0.06):
    low, high = min(values), max(values)
    return low - share * (high - low), high + share * (high - low)


def volumes(results):
    width, height = 880, 380
    parts = card(width, height, "Energy against volume of silicon, NaCl and Li6PS5Cl with SevenNet-0", "Energy against volume, SevenNet-0 run by mlff")
    for place, row in enumerate(results["eos"]):
        atoms, fit = row["atoms"], row["fit"]
        xs = [volume / atoms for volume in row["volumes_a3"]]
        energies = [1e3 * (energy - fit["energy_ev"]) / atoms for energy in row["energies_ev"]]
        published = row["published"]["lattice_a"] ** 3 / atoms
        left = 62 + 280 * place
        panel = Panel((left, 84, left + 214, 280), padded([*xs, published]), padded([0, *energies]))
        steps = [min(xs) + (max(xs) - min(xs)) * n / 80 for n in range(81)]
        curve = [1e3 * (sum(factor * ((volume * atoms) ** (-2 / 3)) ** n for n, factor in enumerate(fit["polynomial"])) + fit["shift_ev"] - fit["energy_ev"]) / atoms for volume in steps]
        parts += panel.axes(f"{NAMES[row['material']]}, meV/atom", "A³/atom") + panel.vertical(published, row["published"]["what"], published < min(xs))
        parts += panel.curve(steps, curve, "ours", "line") + panel.dots(xs, energies, "ours")
    return finished(parts, ("Dots are energies, lines the fit of Birch and Murnaghan. Broken lines are published volumes:", "computed with PBE for silicon and NaCl, measured at room temperature for Li6PS5Cl."), height)


def dynamics(results):
    width, height = 880, 632
    parts = card(width, height, "Dynamics with SevenNet-0: silicon at constant energy, NaCl at constant pressure, lithium in Li6PS5Cl", "Dynamics with SevenNet-0, run by mlff")
    nve, npt, moving = results["nve"], results["npt"], results["diffusion"]
    left, right, upper, lower = (64, 420), (506, 856), (84, 262), (360, 538)

    def panel(columns, rows, xs, ys):
        return Panel((columns[0], rows[0], columns[1], rows[1]), (0, xs[-1]), padded(ys))
    plot = panel(left, upper, nve["time_ps"], nve["potential_mev_per_atom"] + nve["total_mev_per_atom"])
    parts += plot.axes("Silicon, NVE: change of energy, meV/atom", "ps", 5)
    parts += plot.curve(nve["time_ps"], nve["potential_mev_per_atom"], "peer") + plot.curve(nve["time_ps"], nve["total_mev_per_atom"], "ours", "line")
    parts += [text(plot.right - 10, plot.y(0) - 8, "total", "ours-fill small", "end"), text(plot.right - 10, plot.y(max(nve["potential_mev_per_atom"])) + 2, "potential", "peer-fill small", "end")]
    plot = panel(right, upper, npt["time_ps"], npt["volume_a3_per_atom"])
    parts += plot.axes("NaCl, 300 K, 1 bar: volume, A³/atom", "ps", 5) + plot.curve(npt["time_ps"], npt["volume_a3_per_atom"], "ours")
    plot = panel(left, lower, npt["time_ps"], npt["temperature_k"])
    parts += plot.axes("The same run of NaCl: temperature, K", "ps", 5) + plot.curve(npt["time_ps"], npt["temperature_k"], "ours")
    plot = Panel((right[0], lower[0], right[1], lower[1]), (0, moving["time_ps"][-1]), (0, 1.06 * max(moving["msd_of_li_a2"])))
    parts += plot.axes("Mean square displacement, 900 K, A²", "ps", 5)
    parts += plot.curve(moving["time_ps"], moving["msd_of_host_a2"], "peer", "line") + plot.curve(moving["time_ps"], moving["msd_of_li_a2"], "ours", "line")
    parts += [text(plot.x(moving["time_ps"][-1]) - 10, plot.y(moving["msd_of_li_a2"][-1]) + 62, "Li of Li6PS5Cl", "ours-fill small", "end"),
              text(plot.x(moving["time_ps"][-1]) - 10, plot.y(moving["msd_of_host_a2"][-1]) - 8, "P, S, Cl", "peer-fill small", "end")]
    return finished(parts, (f"{nve['atoms']} atoms of silicon, {npt['atoms']} of NaCl, {moving['atoms']} of Li6PS5Cl, where {moving['exchanged_chlorine']} Cl have changed places with S. Steps of {nve['step_fs']} fs, mixed precision.",), height)


def main():
    results = json.loads((ROOT / "measurements" / "results" / "sevennet_materials.json").read_text())
    for name, drawn in (("nequip_volumes.svg", volumes(results)), ("nequip_dynamics.svg", dynamics(results))):
        path = IMAGES / name
        if "--check" not in sys.argv[1:]:
            path.write_text(drawn)
        elif not path.exists() or path.read_text() != drawn:
            sys.exit(f"{path.relative_to(ROOT)} is not what measurements/results says; run python3 measurements/sevennet/draw.py")


if __name__ == "__main__":
    main()
