# SPDX-License-Identifier: MIT
"""Draws docs/images/active_learning.svg from measurements/results/active_learning.json: the largest spread of a force along the dynamics of each round, and the errors of the forces
after each. With --check, fails if the picture is not what the measurements say.

  python3 measurements/active_learning/draw.py [--check]"""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "measurements")]
from picture import STYLE, text

PICTURE = ROOT / "docs" / "images" / "active_learning.svg"
WIDTH, HEIGHT, TOP, BOTTOM = 880, 400, 96, 330
COLOURS = {"first": ("#bc4c00", "#f0883e"), "later": ("#8250df", "#bc8cff"), "last": ("#0969da", "#58a6ff")}  # in the light, in the dark


def style():
    rules = lambda which: "".join(f" .{name} {{ stroke: {colours[which]}; }} .{name}-fill {{ fill: {colours[which]}; }}" for name, colours in COLOURS.items())
    return f"{STYLE} {rules(0)} .thin {{ fill: none; stroke-width: 1.2; stroke-linejoin: round; }} .limit {{ stroke: #d1242f; stroke-dasharray: 5 4; }}\n  @media (prefers-color-scheme: dark) {{{rules(1)} }}\n"


def who(number, rounds):
    return "first" if number == 0 else "last" if number == len(rounds) - 1 else "later"


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def dynamics_panel(result, left, right):
    rounds, longest, highest = result["rounds"], max(one["dynamics"]["ps"][-1] for one in result["rounds"]), 0.7
    x = lambda ps: left + (right - left) * ps / longest
    y = lambda sigma: BOTTOM - (BOTTOM - TOP) * min(sigma, highest) / highest
    parts = [text(left, TOP - 12, "Largest spread of a force during dynamics at 800 K, eV/A", "text head")]
    for sigma in (0, 0.2, 0.4, 0.6):
        parts += [line(left, y(sigma), right, y(sigma), "grid"), text(left - 8, y(sigma) + 4, f"{sigma:g}", "quiet small", "end")]
    for ps in range(int(longest) + 1):
        parts += [line(x(ps), TOP, x(ps), BOTTOM, "grid"), text(x(ps), BOTTOM + 18, str(ps), "quiet small", "middle")]
    for number, one in reversed(list(enumerate(rounds))):
        run = one["dynamics"]
        points = " ".join(f"{x(ps):.1f},{y(sigma):.1f}" for ps, sigma in zip(run["ps"], run["sigma_max_eV_per_A"]))
        parts.append(f'<polyline points="{points}" class="thin {who(number, rounds)}"/>')
        if run["exit_code"] == 1:
            parts.append(f'<circle cx="{x(run["ps"][-1]):.1f}" cy="{y(result["stop_sigma_eV_per_A"]):.1f}" r="5" class="{who(number, rounds)}-fill"/>')
    for name, what in (("stop_sigma_eV_per_A", "--stop-sigma"), ("harvest_sigma_eV_per_A", "--harvest-sigma")):
        parts += [line(left, y(result[name]), right, y(result[name]), "limit"), text(right - 6, y(result[name]) - 5, what, "text small", "end")]
    return parts + [f'<rect x="{left}" y="{TOP}" width="{right - left}" height="{BOTTOM - TOP}" class="frame"/>', text((left + right) / 2, BOTTOM + 38, "ps", "quiet", "middle")]


def error_panel(result, left, right):
    rounds = result["rounds"]
    value = lambda one, kelvin: one["errors"][kelvin]["force_mae_meV_per_A"]
    highest = 1.15 * max(value(one, kelvin) for one in rounds for kelvin in ("300", "800"))
    y = lambda error: BOTTOM - (BOTTOM - TOP) * error / highest
    parts = [text(left, TOP - 12, "Error of forces, meV/A", "text head")]
    group, step = (right - left) / 2, (right - left) / 2 / (len(rounds) + 1)
    for place, kelvin in enumerate(("300", "800")):
        for number, one in enumerate(rounds):
            error, begin = value(one, kelvin), left + place * group + (number + 0.5) * step
            parts += [f'<rect x="{begin + 2:.1f}" y="{y(error):.1f}" width="{step - 4:.1f}" height="{BOTTOM - y(error):.1f}" class="{who(number, rounds)}-fill"/>',
                      text(begin + step / 2, y(error) - 5, f"{error:.0f}", "text small", "middle")]
        parts.append(text(left + (place + 0.5) * group, BOTTOM + 18, f"frames at {kelvin} K", "quiet small", "middle"))
    return parts + [f'<rect x="{left}" y="{TOP}" width="{right - left}" height="{BOTTOM - TOP}" class="frame"/>']


def picture():
    result = json.loads((ROOT / "measurements" / "results" / "active_learning.json").read_text())
    rounds = result["rounds"]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" aria-labelledby="title">',
             '<title id="title">The spread of a committee along dynamics of ethanol, and its errors, before and after it went on with harvested frames</title>', f"<style>{style()}</style>",
             f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="10" class="card"/>', text(24, 34, "A committee that learned ethanol at 300 K, run at 800 K", "text title")]
    place = 24
    for number in range(len(rounds)):
        words = "trained at 300 K only" if number == 0 else f"after round {number}"
        parts += [f'<rect x="{place}" y="50" width="14" height="14" class="{who(number, rounds)}-fill"/>', text(place + 20, 62, words, "text")]
        place += 170 if number == 0 else 120
    parts += dynamics_panel(result, 64, 560) + error_panel(result, 610, 852)
    parts.append(text(24, HEIGHT - 14, "A dot is a run that --stop-sigma ended. Errors are means over force components, on frames of the teacher that were never trained on.", "quiet small"))
    return "\n".join(parts + ["</svg>"]) + "\n"


def main():
    drawn = picture()
    if "--check" not in sys.argv[1:]:
        PICTURE.write_text(drawn)
    elif not PICTURE.exists() or PICTURE.read_text() != drawn:
        sys.exit(f"{PICTURE.relative_to(ROOT)} is not what measurements/results says; run python3 measurements/active_learning/draw.py")


if __name__ == "__main__":
    main()
