# SPDX-License-Identifier: MIT
"""Puts the tables of README.md and docs/performance.md in place, from the measurements in bench/results. With --check, fails if
they are not what the measurements say.

  python3 bench/tables.py [--check]"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"


def load(name):
    return json.loads((RESULTS / f"{name}.json").read_text())


def neighbors():
    rows = {}
    for result in load("neighbors")["results"]:
        rows.setdefault(result["atoms"], {})[result["library"]] = result
    lines = ["| atoms | mlff, us/atom | vesin | matscipy | faster than vesin | than matscipy |", "|--:|--:|--:|--:|--:|--:|"]
    for atoms, by in rows.items():
        def cell(library):
            if library not in by or "median_s" not in by[library]:
                return "-"
            return " ".join((f"{by[library]['median_s'] / atoms * 1e6:.2f}", f"({by[library]['min_s'] / atoms * 1e6:.2f} to {by[library]['max_s'] / atoms * 1e6:.2f})"))

        def ratio(library):
            return f"{by[library]['median_s'] / by['mlff']['median_s']:.1f}x" if library in by and "median_s" in by[library] else "-"
        lines.append(f"| {atoms:,} | {cell('mlff')} | {cell('vesin')} | {cell('matscipy')} | {ratio('vesin')} | {ratio('matscipy')} |")
    return lines


def milliseconds(figures):
    if not figures:
        return "-"
    middle, least, most = (format(figures[key] * 1e3, ".1f" if figures["median"] < 0.01 else ".0f") for key in ("median", "min", "max"))
    return f"{middle} ({least} to {most})"


def gpu_neighbors():
    lines = ["| atoms | arrays | search, us | reuse in a CUDA graph, us | search, ns/atom | reuse, ns/atom |", "|--:|---|--:|--:|--:|--:|"]
    for result in load("gpu_neighbors")["results"]:
        search, reuse, atoms = result["search"], result["reuse_graph"], result["atoms"]
        def cell(time):
            return f"{time['median_us']:.0f} ({time['min_us']:.0f} to {time['max_us']:.0f})"
        lines.append(f"| {atoms:,} | {result['arrays']} | {cell(search)} | {cell(reuse)} | {search['median_us'] / atoms * 1e3:.1f} | "
                     f"{reuse['median_us'] / atoms * 1e3:.1f} |")
    return lines


def mace_cpu():
    rows = {}
    for row in load("mace_cpu")["rows"]:
        rows.setdefault((row["model"], row["system"]), {})[row["engine"]] = row
    symmetrix = json.loads((ROOT / "bench" / "mace_cpu" / "symmetrix.json").read_text())["faster_than_mace_torch_fp32"]
    lines = ["| model, system | mlff mixed, ms | mlff fp64, ms | mace-torch fp32, ms | mace-torch fp64, ms | mixed against mace-torch fp32 | "
             "mixed against symmetrix, derived | fp64 against fp64 | force error of mixed, eV/A | peak memory, mixed / fp32, MB |",
             "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for (model, system), by in rows.items():
        def value(engine, key, form):
            return format(by[engine][key], form) if key in by.get(engine, {}) else "-"

        def ratio(ours, theirs, form="%.0fx", divisor=1.0):
            return form % (by[theirs]["median"] / by[ours]["median"] / divisor) if ours in by and theirs in by and divisor else "-"
        cells = [f"{model}, {system}"]
        cells += [milliseconds(by.get(engine)) for engine in ("mlff mixed", "mlff fp64", "mace-torch fp32", "mace-torch fp64")]
        cells += [ratio("mlff mixed", "mace-torch fp32"), ratio("mlff mixed", "mace-torch fp32", "%.1fx", symmetrix.get(model, {}).get(system)),
                  ratio("mlff fp64", "mace-torch fp64"), value("mlff mixed", "force_error", ".0e"),
                  f"{value('mlff mixed', 'peak_mb', '.0f')} / {value('mace-torch fp32', 'peak_mb', '.0f')}"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def mace_gpu():
    lines = ["| model, precision | atoms | ms | us/atom |", "|---|--:|--:|--:|"]
    for row in load("mace_gpu")["rows"]:
        lines.append(f"| {row['model'].removesuffix('.model')}, {row['precision']} | {row['atoms']:,} | {row['median_ms']:.2f} ({row['min_ms']:.2f} to {row['max_ms']:.2f}) | "
                     f"{row['us_per_atom']:.2f} |")
    return lines


def mace_start():
    start = load("mace_cpu").get("start", {})
    ours, theirs = start.get("mlff"), start.get("mace-torch")
    return ["| | mlff, ms | mace-torch fp32, ms | |", "|---|--:|--:|--:|",
            f"| process that evaluates one water molecule with mp0-small once | {milliseconds(ours)} | {milliseconds(theirs)} | "
            f"{format(theirs['median'] / ours['median'], '.0f') + 'x' if ours and theirs else '-'} |"]


def model_open():
    result = load("model_open")
    seconds = result["mlff_model_info_seconds"]
    return ["| | |", "|---|--:|", f"| file | {result['file_bytes'] / 1e6:.1f} MB |",
            f"| `mlff model info`, whole command, SHA-256 included | {seconds['median'] * 1e3:.0f} ms ({seconds['min'] * 1e3:.0f} to {seconds['max'] * 1e3:.0f}) |",
            f"| its peak memory | {result['mlff_peak_over_file']:.2f}x the file |",
            f"| torch.load, after {result['torch_import_seconds']:.1f} s of imports | {result['torch_load_seconds'] * 1e3:.0f} ms |"]


def summary():
    mace, lists, opening = load("mace_cpu")["rows"], load("neighbors")["results"], load("model_open")
    lines = ["| on 2 cores | mlff | peer | |", "|---|--:|--:|--:|"]
    for model, system in (("mp0-small", "water192"), ("mp0-medium", "water192"), ("off23-small", "water192")):
        by = {row["engine"]: row for row in mace if (row["model"], row["system"]) == (model, system)}
        ours, theirs = by["mlff mixed"]["median"], by["mace-torch fp32"]["median"]
        lines.append(f"| MACE {model} shape, 192 atoms of water, energy + forces + stress | {ours * 1e3:.0f} ms | mace-torch fp32, {theirs * 1e3:.0f} ms | **{theirs / ours:.0f}x** |")
    start = load("mace_cpu")["start"]
    lines.append(f"| the command, one water molecule, from start to end | {start['mlff']['median'] * 1e3:.0f} ms | mace-torch in Python, {start['mace-torch']['median']:.1f} s | "
                 f"**{start['mace-torch']['median'] / start['mlff']['median']:.0f}x** |")
    by = {row["library"]: row for row in lists if row["atoms"] == 98304}
    lines.append(f"| neighbour list, 98,304 atoms, 6 A | {by['mlff']['median_s'] * 1e3:.0f} ms | vesin, {by['vesin']['median_s'] * 1e3:.0f} ms | "
                 f"**{by['vesin']['median_s'] / by['mlff']['median_s']:.1f}x** |")
    lines.append(f"| open and describe a {opening['file_bytes'] / 1e6:.0f} MB `.model` | {opening['mlff_model_info_seconds']['median'] * 1e3:.0f} ms | "
                 f"import torch and load, {opening['torch_import_seconds'] + opening['torch_load_seconds']:.1f} s | |")
    return lines


TABLES = {"neighbors": neighbors, "gpu_neighbors": gpu_neighbors, "mace_cpu": mace_cpu, "mace_start": mace_start, "mace_gpu": mace_gpu, "model_open": model_open, "summary": summary}


def main():
    is_check = "--check" in sys.argv[1:]
    stale = []
    for path in (ROOT / "README.md", ROOT / "docs" / "performance.md"):
        text = path.read_text()
        new = re.sub(r"(<!-- table (\w+) -->\n).*?(<!-- end -->)", lambda m: m[1] + "\n".join(TABLES[m[2]]()) + "\n" + m[3], text, flags=re.S)
        if new != text:
            stale.append(path.name)
            if not is_check:
                path.write_text(new)
    if is_check and stale:
        sys.exit("tables are not what bench/results says: " + ", ".join(stale) + "; run python3 bench/tables.py")


if __name__ == "__main__":
    main()
