# SPDX-License-Identifier: MIT
"""Draws docs/images/speed.svg: atoms evaluated in a second against the size of the system, mlff beside mace-torch, from the measurements in
measurements/results. With --check, fails if the picture is not what the measurements say.

  python3 measurements/picture.py [--check]"""
import json
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "measurements" / "results"
PICTURE = ROOT / "docs" / "images" / "speed.svg"
MODEL = "mp0-medium"

WIDTH, HEIGHT = 880, 520
TOP, BOTTOM = 134, 404  # of both panels
SPEEDS = (10, 2_000_000)  # atoms/s, the vertical axis of both panels
STYLE = """
  .card { fill: #ffffff; stroke: #d1d9e0; }
  .grid { stroke: #e3e8ed; }
  .frame { fill: none; stroke: #afb8c1; }
  .text { fill: #1f2328; }
  .quiet { fill: #59636e; }
  .ours { stroke: #0969da; } .ours-fill { fill: #0969da; }
  .peer { stroke: #bc4c00; } .peer-fill { fill: #bc4c00; }
  .gap { stroke: #818b98; stroke-dasharray: 2 4; }
  .line { fill: none; stroke-width: 2.5; stroke-linejoin: round; }
  text { font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; font-size: 13px; }
  .title { font-size: 18px; font-weight: 600; }
  .head { font-size: 14px; font-weight: 600; }
  .small { font-size: 12px; }
  @media (prefers-color-scheme: dark) {
    .card { fill: #0d1117; stroke: #3d444d; }
    .grid { stroke: #262c34; }
    .frame { stroke: #656c76; }
    .text { fill: #f0f6fc; }
    .quiet { fill: #9198a1; }
    .ours { stroke: #58a6ff; } .ours-fill { fill: #58a6ff; }
    .peer { stroke: #f0883e; } .peer-fill { fill: #f0883e; }
    .gap { stroke: #818b98; }
  }
"""


def load(name):
    return json.loads((RESULTS / f"{name}.json").read_text())


def cpu_speeds(results, engine):
    """(atoms, atoms/s) of boxes of water, and of one molecule."""
    return sorted((row["atoms"], row["atoms"] / row["median"]) for row in results["rows"]
                  if row["model"] == MODEL and row["engine"] == engine and row["system"].startswith("water"))


def gpu_speeds(results, engine):
    return sorted((row["atoms"], 1e3 * row["atoms"] / row[engine]["median_ms"]) for row in results["speed"].values()
                  if row["model"] == MODEL and row["precision"] == "mixed" and "median_ms" in row.get(engine, {}))


def text(x, y, words, style, anchor="start", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}"{more}>{words}</text>'


def marker(x, y, who):
    if who == "ours":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" class="ours-fill"/>'
    return f'<rect x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9" class="peer-fill"/>'


def decades(low, high):
    return [10**n for n in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]


class Panel:
    def __init__(self, left, right, atoms):
        self.left, self.right, self.atoms = left, right, atoms

    def x(self, atoms):
        low, high = map(math.log, self.atoms)
        return self.left + (self.right - self.left) * (math.log(atoms) - low) / (high - low)

    @staticmethod
    def y(speed):
        low, high = map(math.log, SPEEDS)
        return BOTTOM - (BOTTOM - TOP) * (math.log(speed) - low) / (high - low)

    def axes(self, heading, has_labels):
        parts = [text(self.left, TOP - 12, heading, "text head")]
        for speed in decades(*SPEEDS):
            y = self.y(speed)
            parts.append(f'<line x1="{self.left:.1f}" y1="{y:.1f}" x2="{self.right:.1f}" y2="{y:.1f}" class="grid"/>')
            if has_labels:
                parts.append(text(self.left - 8, y + 4, f"{speed:,}", "quiet small", "end"))
        for atoms in decades(*self.atoms):
            x = self.x(atoms)
            parts.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{BOTTOM}" class="grid"/>')
            parts.append(text(x, BOTTOM + 18, f"{atoms:,}", "quiet small", "middle"))
        parts.append(f'<rect x="{self.left}" y="{TOP}" width="{self.right - self.left}" height="{BOTTOM - TOP}" class="frame"/>')
        parts.append(text((self.left + self.right) / 2, BOTTOM + 40, "atoms", "quiet", "middle"))
        return parts

    def curve(self, points, who):
        path = " ".join(f"{self.x(atoms):.1f},{self.y(speed):.1f}" for atoms, speed in points)
        return [f'<polyline points="{path}" class="line {who}"/>'] + [marker(self.x(atoms), self.y(speed), who) for atoms, speed in points]

    def ratios(self, ours, peer):
        """How many times as fast ours is, where both were measured."""
        parts = []
        for atoms, speed in peer:
            ratio = dict(ours)[atoms] / speed
            x, top, bottom = self.x(atoms), self.y(dict(ours)[atoms]), self.y(speed)
            parts.append(f'<line x1="{x:.1f}" y1="{top + 8:.1f}" x2="{x:.1f}" y2="{bottom - 8:.1f}" class="gap"/>')
            parts.append(text(x + 7, (top + bottom) / 2 + 4, f"{ratio:.0f}x" if ratio >= 10 else f"{ratio:.1f}x", "text small"))
        return parts

    def draw(self, heading, ours, peer, has_labels):
        return self.axes(heading, has_labels) + self.ratios(ours, peer) + self.curve(peer, "peer") + self.curve(ours, "ours")


def legend(x, y, entries):
    parts = []
    for who, words, width in entries:
        parts += [f'<line x1="{x}" y1="{y}" x2="{x + 30}" y2="{y}" class="line {who}"/>', marker(x + 15, y, who), text(x + 38, y + 4.5, words, "text")]
        x += width
    return parts


def picture():
    cpu, gpu = load("mace_cpu_x86_64"), load("gpu_vs_peers")
    versions = gpu["versions"]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" aria-labelledby="title">',
             '<title id="title">Atoms evaluated in a second against the number of atoms: mlff beside mace-torch</title>', f"<style>{STYLE}</style>",
             f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="10" class="card"/>',
             text(24, 36, "Speed of MACE on water, by number of atoms", "text title")]
    parts += legend(24, 68, (("ours", "mlff, mixed precision", 210), ("peer", "mace-torch, fp32; on the GPU with cuEquivariance", 0)))
    parts.append(text(24, (TOP + BOTTOM) / 2, "atoms per second", "quiet", "middle", f' transform="rotate(-90 24 {(TOP + BOTTOM) / 2:.1f})"'))
    parts += Panel(96, 346, (2, 700)).draw(f"{cpu['threads']} cores of a Xeon, AVX-512", cpu_speeds(cpu, "mlff mixed"), cpu_speeds(cpu, "mace-torch fp32"), True)
    parts += Panel(372, 852, (2, 999_999)).draw(f"one {gpu['gpu']['name']}", gpu_speeds(gpu, "mlff"), gpu_speeds(gpu, "cueq"), False)
    notes = (f"Energy and forces, model in the shape of MACE-MP-0 medium; mace-torch {versions['mace-torch']}, cuEquivariance {versions['cuequivariance']}. Higher is faster.",
             "mlff's times include the neighbour list and, in boxes, stress; so do mace-torch's on the CPU. On the GPU mace-torch's include neither.",
             f"3 atoms are one molecule. On the GPU mace-torch was not measured above {gpu_speeds(gpu, 'cueq')[-1][0]:,} atoms.")
    parts += [text(24, HEIGHT - 52 + 18 * i, note, "quiet small") for i, note in enumerate(notes)] + ["</svg>"]
    return "\n".join(parts) + "\n"


def main():
    drawn = picture()
    if "--check" not in sys.argv[1:]:
        PICTURE.write_text(drawn)
    elif not PICTURE.exists() or PICTURE.read_text() != drawn:
        sys.exit(f"{PICTURE.relative_to(ROOT)} is not what measurements/results says; run python3 measurements/picture.py")


if __name__ == "__main__":
    main()
