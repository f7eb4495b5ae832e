# SPDX-License-Identifier: MIT
"""Writes the tables of README.md, docs/performance.md, docs/profiling.md, docs/benchmarks.md and docs/nequip.md from the measurements in measurements/results. With --check, fails
if they are not what the measurements say.

  python3 measurements/tables.py [--check]"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "measurements" / "results"
sys.path.insert(0, str(ROOT / "measurements" / "gpu_vs_peers"))
import ncu

NOT_MEASURED = "not measured"
MACHINES = {"x86_64": "Xeon, AVX-512", "aarch64": "Neoverse N1"}  # two cores of each
# By model, atoms and precision: (unit of the goal, goal)
GPU_GOALS = {("mp0-small", 12288, "mixed"): ("us/atom", 0.45), ("mp0-medium", 3, "mixed"): ("ms", 0.1), ("mp0-medium", 192, "mixed"): ("ms", 0.4),
             ("mp0-medium", 1536, "mixed"): ("ms", 1.7), ("mp0-medium", 12288, "mixed"): ("us/atom", 0.95), ("mp0-medium", 98304, "mixed"): ("us/atom", 0.9),
             ("mp0-medium", 499125, "mixed"): None, ("mp0-medium", 5184, "fp64"): ("us/atom", 3.0), ("mp0-large", 3, "mixed"): None,
             ("mp0-large", 12288, "mixed"): ("us/atom", 1.9)}
MEMORY_GOAL_MB = 0.15  # for an atom


def load(name):
    return json.loads((RESULTS / f"{name}.json").read_text())


def spread(figures, form):
    """A median and, in brackets, the smallest and the largest value."""
    median, smallest, largest = (format(figure, form) for figure in figures)
    return f"{median} ({smallest}-{largest})"


def neighbors():
    rows = {}
    for result in load("neighbors")["results"]:
        rows.setdefault(result["atoms"], {})[result["library"]] = result
    lines = ["| atoms | mlff, us/atom | vesin, us/atom | matscipy, us/atom | speed-up over vesin | over matscipy |", "|--:|--:|--:|--:|--:|--:|"]
    for atoms, by in rows.items():
        def cell(library):
            if library not in by or "median_s" not in by[library]:
                return "-"
            return spread((by[library][key] / atoms * 1e6 for key in ("median_s", "min_s", "max_s")), ".2f")

        def ratio(library):
            return f"{by[library]['median_s'] / by['mlff']['median_s']:.1f}x" if library in by and "median_s" in by[library] else "-"
        lines.append(f"| {atoms:,} | {cell('mlff')} | {cell('vesin')} | {cell('matscipy')} | {ratio('vesin')} | {ratio('matscipy')} |")
    return lines


def milliseconds(figures):
    if not figures:
        return "-"
    return spread((figures[key] * 1e3 for key in ("median", "min", "max")), ".1f" if figures["median"] < 0.01 else ".0f")


def gpu_neighbors():
    rows = {}
    for result in load("gpu_neighbors")["results"]:
        rows.setdefault(result["atoms"], {})[result["arrays"]] = result
    names = list(next(iter(rows.values())))
    lines = ["| atoms | " + " | ".join(f"({letter}) search, us | reuse, us" for letter, _ in zip("abc", names)) + " |", "|--:" + "|--:|--:" * len(names) + "|"]
    for atoms, by in rows.items():
        cells = [spread((by[name][kind][key] for key in ("median_us", "min_us", "max_us")), ".0f") for name in names for kind in ("search", "reuse_graph")]
        lines.append(f"| {atoms:,} | {' | '.join(cells)} |")
    return lines + [""] + [f"({letter}) {name}{'.' if name == names[-1] else ';'}" for letter, name in zip("abc", names)]


def mace_cpu_rows(machine):
    """Figures by engine, by model and system."""
    rows = {}
    for row in load(f"mace_cpu_{machine}")["rows"]:
        rows.setdefault((row["model"], row["system"]), {})[row["engine"]] = row
    return rows


def faster(by, ours, theirs, form=".0f", divisor=1.0):
    """How many times as fast one engine is as another."""
    return f"{by[theirs]['median'] / by[ours]['median'] / divisor:{form}}x" if ours in by and theirs in by and divisor else "-"


def cpu_machines():
    wide, narrow = mace_cpu_rows("x86_64"), mace_cpu_rows("aarch64")
    lines = ["| model, system, precision | Xeon, AVX-512, ms | against mace-torch there | Xeon, AVX2, ms | against mace-torch there | Neoverse N1, NEON, ms | against mace-torch there |",
             "|---|--:|--:|--:|--:|--:|--:|"]
    for (model, system), by in wide.items():
        there = narrow.get((model, system), {})
        for precision, peer in (("mixed", "mace-torch fp32"), ("fp64", "mace-torch fp64")):
            ours = f"mlff {precision}"
            cells = [f"{model}, {system}, {precision}"]
            for figures, engine in ((by, ours), (by, f"{ours} avx2"), (there, ours)):
                cells += [milliseconds(figures.get(engine)), faster(figures, engine, peer)]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def mace_cpu(machine):
    symmetrix = json.loads((ROOT / "measurements" / "mace_cpu" / "symmetrix.json").read_text())["faster_than_mace_torch_fp32"]
    lines = ["| model, system | mlff mixed, ms | mlff fp64, ms | mace-torch fp32, ms | mace-torch fp64, ms | speed-up of mixed over mace-torch fp32 | "
             "over symmetrix (derived) | speed-up of fp64 over mace-torch fp64 | largest force error of mixed, eV/A | peak memory, mlff mixed / mace-torch fp32, MB |",
             "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for (model, system), by in mace_cpu_rows(machine).items():
        def value(engine, key, form):
            return format(by[engine][key], form) if key in by.get(engine, {}) else "-"
        cells = [f"{model}, {system}"]
        cells += [milliseconds(by.get(engine)) for engine in ("mlff mixed", "mlff fp64", "mace-torch fp32", "mace-torch fp64")]
        cells += [faster(by, "mlff mixed", "mace-torch fp32"), faster(by, "mlff mixed", "mace-torch fp32", ".1f", symmetrix.get(model, {}).get(system)),
                  faster(by, "mlff fp64", "mace-torch fp64"), value("mlff mixed", "force_error", ".0e"),
                  f"{value('mlff mixed', 'peak_mb', '.0f')} / {value('mace-torch fp32', 'peak_mb', '.0f')}"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def nve():
    lines = ["| device, precision | mean temperature, K | drift, meV/atom/ps | fluctuation, meV/atom | ms/step |", "|---|--:|--:|--:|--:|"]
    for row in load("nve")["runs"]:
        lines.append(f"| {row['device']}, {row['precision']} | {row['mean_temperature_K']:.0f} | {row['drift_meV_per_atom_per_ps']:.4f} | {row['fluctuation_meV_per_atom']:.4f} | "
                     f"{row['ms_per_step']:.2f} |")
    return lines


def md_steps():
    lines = ["| atoms | one evaluation, ms | NVE step, ms | Langevin step, ms | NVE step / evaluation |", "|--:|--:|--:|--:|--:|"]
    for row in load("md_steps")["results"]:
        def cell(name):
            figures = row[name]
            return spread((figures[key] for key in ("median_ms", "min_ms", "max_ms")), ".3f")
        lines.append(f"| {row['atoms']:,} | {cell('evaluation')} | {cell('nve')} | {cell('nvt')} | {row['nve']['median_ms'] / row['evaluation']['median_ms']:.2f} |")
    return lines


def gpu_vs_peers_results():
    return load("gpu_vs_peers") if (RESULTS / "gpu_vs_peers.json").exists() else {}


def gpu_time(figures):
    """Milliseconds of one engine in one case, or why there are none."""
    if not figures:
        return "-"
    if "median_ms" not in figures:
        return NOT_MEASURED
    return spread((figures[key] for key in ("median_ms", "min_ms", "max_ms")), ".2f")


def gpu_memory(rows):
    """MB for an atom, from what was taken at the smallest and the largest system."""
    taken = sorted((row["atoms"], row["mlff"]["memory_mb"]) for row in rows if row.get("mlff", {}).get("memory_mb"))
    if len(taken) < 2 or taken[0][0] == taken[-1][0]:
        return None
    return (taken[-1][1] - taken[0][1]) / (taken[-1][0] - taken[0][0])


def gpu_vs_peers():
    rows = gpu_vs_peers_results().get("speed", {})
    lines = ["| model, atoms, precision | mlff, ms | mlff, us/atom | goal | cuEquivariance, ms | speed-up | largest force difference, eV/A |",
             "|---|--:|--:|--:|--:|--:|--:|"]
    for (model, atoms, precision), goal in GPU_GOALS.items():
        row = rows.get(f"{model}:{atoms}:{precision}", {})
        ours, theirs = row.get("mlff", {}), row.get("cueq", {})
        goal_cell, each, ratio = "-", NOT_MEASURED, "-"
        if "median_ms" in ours:
            each = f"{1e3 * ours['median_ms'] / atoms:.2f}"
        if goal:
            found = {"ms": ours.get("median_ms"), "us/atom": 1e3 * ours["median_ms"] / atoms if "median_ms" in ours else None}[goal[0]]
            goal_cell = f"{goal[1]} {goal[0]}" + ("" if found is None else ", met" if found <= goal[1] else f", missed {found / goal[1]:.2f}x")
        if "median_ms" in ours and "median_ms" in theirs:
            ratio = f"**{theirs['median_ms'] / ours['median_ms']:.1f}x**"
        difference = row.get("force_difference", {}).get("cueq")
        cells = [f"{model}, {atoms:,}, {precision}", gpu_time(ours) if ours else NOT_MEASURED, each, goal_cell, gpu_time(theirs), ratio, "-" if difference is None else f"{difference:.0e}"]
        lines.append(f"| {' | '.join(cells)} |")
    each = gpu_memory([row for row in rows.values() if (row["model"], row["precision"]) == ("mp0-medium", "mixed")])
    lines += ["", f"GPU memory of mp0-medium, mixed: {NOT_MEASURED if each is None else f'{each:.3f} MB/atom'} (goal {MEMORY_GOAL_MB} MB)."]
    case = rows.get("mp0-medium:12288:mixed", {})
    peer = case.get("cueq", {}).get("memory_mb")
    if peer:
        lines.append(f"cuEquivariance: {peer / 12288:.2f} MB/atom at 12,288 atoms.")
    for kind, name in (("cueq-stress", "cuEquivariance with stress"), ("e3nn", "mace-torch without cuEquivariance")):
        if kind in case:
            lines.append(f"{name}, mp0-medium, 12,288 atoms: {gpu_time(case[kind])} ms.".replace(f"{NOT_MEASURED} ms", NOT_MEASURED))
    return lines


def gpu_peaks():
    peaks = gpu_vs_peers_results().get("peaks", {})
    names = {"copy_bytes": ("device memory, copy (read + write)", "TB/s"), "l2_read_bytes": ("L2 cache, read", "TB/s"),
             "fp32_flop": ("fp32 multiply-adds", "TFLOP/s"), "fp64_flop": ("fp64 multiply-adds", "TFLOP/s"), "fp16_mma_flop": ("fp16 `mma.sync`, fp32 sums", "TFLOP/s"),
             "tf32_mma_flop": ("TF32 `mma.sync`", "TFLOP/s"), "fp16_matmul_flop": ("fp16 matrix product in torch", "TFLOP/s"),
             "tf32_matmul_flop": ("TF32 matrix product in torch", "TFLOP/s")}
    return ["| operation | measured peak |", "|---|--:|"] + [
        f"| {text} | {format(peaks[key] / 1e12, '.1f') + ' ' + unit if peaks.get(key) else NOT_MEASURED} |" for key, (text, unit) in names.items()]


def gpu_profile(case, smallest_share=0.005):
    results = gpu_vs_peers_results()
    profile, peaks = results.get("profile", {}).get(case), results.get("peaks", {})
    if not profile:
        return [f"Kernels of {case.replace(':', ', ')}: {NOT_MEASURED}."]
    lines = ["| kernel | launches | us | share | fp32, TFLOP/s | fp64, TFLOP/s | TF32 tensor cores, TFLOP/s | DRAM, TB/s | L2, TB/s | busiest unit |", "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|"]
    scale, rest = profile.get("tensor_scale"), 0.0
    for kernel in profile["kernels"]:
        share = kernel["seconds"] / profile["seconds"]
        if share < smallest_share:
            rest += share
            continue
        rates, shares = ncu.rates(kernel, scale), ncu.shares(kernel, peaks, scale)

        def cell(*units):
            rate = sum(rates.get(unit, 0.0) for unit in units) / 1e12
            part = sum(shares.get(unit, 0.0) for unit in units)
            return ("-" if not any(unit in rates for unit in units) else f"{rate:.2f}" if rate < 10 else f"{rate:.0f}") + (f" ({part:.0%})" if part >= 0.005 else "")
        limit = ncu.closest_limit(kernel, peaks, scale)
        lines.append(f"| `{kernel['name']}` | {kernel['launches']} | {1e6 * kernel['seconds']:.1f} | {share:.1%} | {cell('fp32')} | {cell('fp64')} | {cell('tf32_mma')} | "
                     f"{cell('DRAM')} | {cell('L2')} | {f'{limit[0]}, {limit[1]:.0%}' if limit else '-'} |")
    if rest:
        lines.append(f"| others | | {1e6 * rest * profile['seconds']:.1f} | {rest:.1%} | | | | | | |")
    lines.append(f"| all | {profile['launches']} | {1e6 * profile['seconds']:.1f} | | | | | | | |")
    return lines


def mace_start():
    lines = ["| machine | mlff, ms | mace-torch fp32, ms | speed-up |", "|---|--:|--:|--:|"]
    for machine, name in MACHINES.items():
        start = load(f"mace_cpu_{machine}")["start"]
        lines.append(f"| {name} | {milliseconds(start['mlff'])} | {milliseconds(start['mace-torch'])} | {faster(start, 'mlff', 'mace-torch')} |")
    return lines


def model_open():
    result = load("model_open")
    seconds = result["mlff_model_info_seconds"]
    return ["| | |", "|---|--:|", f"| model file | {result['file_bytes'] / 1e6:.1f} MB |",
            f"| `mlff model info`, whole command with SHA-256 | {spread((seconds[key] * 1e3 for key in ('median', 'min', 'max')), '.0f')} ms |",
            f"| its peak memory | {result['mlff_peak_over_file']:.2f}x the file size |",
            f"| `torch.load`, after {result['torch_import_seconds']:.1f} s of imports | {result['torch_load_seconds'] * 1e3:.0f} ms |"]


def ase():
    lines = ["| model, device, precision | `mlff md`, us/step | ASE, us/step | ASE / `mlff md` | CPU time: `mlff md` | ASE | ASE / `mlff md` | one session call | one calculator call | ASE step without forces |",
             "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]

    def cell(time):
        return spread((time[key] for key in ("median_us", "min_us", "max_us")), ".0f" if time["median_us"] >= 100 else ".1f")
    for row in load("ase")["rows"]:
        cells = [f"{row['model']}, {row['device']}, {row['precision']}", cell(row["mlff_md"]), cell(row["ase_verlet"]), f"{row['ratio']:.2f}x", cell(row["mlff_md"]["core_time"]),
                 cell(row["ase_verlet"]["core_time"]), f"{row['core_time_ratio']:.2f}x"]
        cells += [cell(row[name]["core_time"]) for name in ("session_call", "calculator_call", "ase_step_without_forces")]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def sevennet_errors():
    columns = [("forces_relative", "relative force error"), ("forces_ev_per_a", "force error, eV/A"), ("energy_ev_per_atom", "energy error, eV/atom"), ("stress_ev_per_a3", "stress error, eV/A^3")]
    rows = load("sevennet_errors")["rows"]
    lines = [f"| | {' | '.join(words for _, words in columns)} |", "|---|" + "--:|" * len(columns)]
    for way in rows[0]["ways"]:
        lines.append(f"| {way} | {' | '.join(format(max(row['ways'][way][key] for row in rows), '.0e') for key, _ in columns)} |")
    return lines + ["", "Checkpoints: " + ", ".join(f"{row['model']} with head {row['head']}" if row["head"] else row["model"] for row in rows) + "."]


def sevennet_cpu():
    result = load("sevennet_cpu")
    peer, systems = "sevenn fp32", {"si64": "64 atoms of silicon", "water192": "192 atoms of water"}
    engines = [engine for engine in result["rows"][0]["engines"] if engine != peer]
    lines = [f"On {result['machine']}, commit {result['commit'][:7]}:", "",
             f"| model, system | {' | '.join(f'{engine}, ms' for engine in [*engines, peer])} | {' | '.join(f'{peer} / {engine}' for engine in engines)} | force error of mixed / of {peer}, of the largest force | peak memory, mixed / {peer}, MB |",
             "|---|" + "--:|" * (2 * len(engines) + 3)]
    for row in result["rows"]:
        by = row["engines"]
        cells = [f"{row['model']}, {systems[row['system']]}", *(milliseconds(by[engine]) for engine in [*engines, peer]), *(faster(by, engine, peer) for engine in engines)]
        cells.append(" / ".join(f"{by[engine]['differences']['forces_relative']:.0e}" for engine in ("mlff mixed", peer)))
        cells.append(" / ".join(f"{by[engine]['peak_mb']:.0f}" for engine in ("mlff mixed", peer)))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def sevennet_gpu():
    lines = ["| model, atoms, precision | mlff, ms | mlff, us/atom | goal | sevenn fp32, ms | speed-up | largest force difference, of the largest force | commit |",
             "|---|--:|--:|--:|--:|--:|--:|---|"]
    for row in load("sevennet_gpu")["speed"].values():
        ours, theirs, goal = row["mlff"]["median_ms"], row.get("e3nn", {}), SEVENNET_GPU_GOALS.get((row["model"], row["atoms"], row["precision"]))
        reached = "-" if goal is None else f"{goal} ms, " + ("met" if ours <= goal else f"missed {ours / goal:.1f}x")
        cells = [f"{row['model']}, {row['atoms']:,}, {row['precision']}", gpu_time(row["mlff"]), f"{1e3 * ours / row['atoms']:.2f}", reached]
        if "median_ms" in theirs:
            cells += [gpu_time(theirs), f"**{theirs['median_ms'] / ours:.0f}x**", f"{row['differences']['e3nn']['forces_relative']:.0e}"]
        else:
            cells += ["out of memory" if "OutOfMemory" in theirs.get("error", "") else "-", "-", "-"]
        lines.append(f"| {' | '.join(cells)} | {row['commit'][:7]} |")
    return lines


def sevennet_gpu_summary(model, atoms):
    row = load("sevennet_gpu")["speed"][f"{model}:{atoms}:mixed"]
    ours, theirs = row["mlff"]["median_ms"], row["e3nn"]["median_ms"]
    system = "8 atoms of silicon" if atoms == 8 else f"{atoms:,} atoms of water"
    return (f"| one H200: {model}, {system}, energy + forces + stress; our time includes the neighbour list, theirs does not | {ours:.{2 if ours < 1 else 1}f} ms | "
            f"sevenn fp32, {theirs:.0f} ms | **{theirs / ours:.0f}x** |")


def sevennet_memory():
    memory = load("sevennet_cpu")["memory"]
    lines = ["| model, mixed precision | atoms of water | peak memory, MB |", "|---|--:|--:|"]
    return lines + [f"| {row['model']} | {row['atoms']:,} | {row['peak_mb']:.0f} |" for row in memory]


def sevennet_materials():
    lines = ["| material | lattice constant, A | published | bulk modulus, GPa | published | its derivative by pressure |", "|---|--:|--:|--:|--:|--:|"]
    for row in load("sevennet_materials")["eos"]:
        published, fit = row["published"], row["fit"]
        modulus = "" if published["bulk_modulus_gpa"] is None else f"{published['bulk_modulus_gpa']:.1f} ({published['what']})"
        lines.append(f"| {row['material']} | {row['lattice_a']:.3f} | {published['lattice_a']:.3f} ({published['what']}) | {fit['bulk_modulus_gpa']:.1f} | {modulus} | {fit['derivative']:.1f} |")
    return lines


def sevennet_dynamics():
    results = load("sevennet_materials")
    nve, npt, moving, threads = results["nve"], results["npt"], results["diffusion"], results["made"]["nve"]["threads"]
    lines = [f"| run | atoms | minutes, {threads} thread{'s' if threads > 1 else ''} | result |", "|---|--:|--:|---|"]
    found = {"silicon, NVE": (nve, f"mean temperature {nve['mean_temperature_k']:.0f} K. The total energy drifts by {1e3 * nve['drift_mev_per_atom_per_ps']:.1g} ueV/atom in 1 ps and fluctuates by {1e3 * nve['rms_change_of_total_mev_per_atom']:.0f} ueV/atom (rms), the potential energy by {nve['rms_change_of_potential_mev_per_atom']:.1f} meV/atom"),
             "NaCl, 300 K, 1 bar": (npt, f"after {npt['from_ps']} ps: mean temperature {npt['mean_temperature_k']:.0f} K, lattice constant {npt['mean_lattice_a']:.2f} A (rms fluctuation {npt['rms_lattice_a']:.2f} A), {npt['lattice_at_0_k_a']:.2f} A without motion"),
             "Li6PS5Cl, 900 K": (moving, f"lithium: {moving['msd_of_li_after_5_ps_a2']:.0f} A^2 in 5 ps, the other atoms {moving['msd_of_host_after_5_ps_a2']:.1f} A^2; diffusion coefficient of lithium {moving['diffusion_cm2_per_s']:.0e} cm^2/s. Cell of {moving['volume_a3']:.0f} A^3")}
    return lines + [f"| {name} | {run['atoms']} | {run['seconds'] / 60:.1f} | {words} |" for name, (run, words) in found.items()]


def switches():
    """How much longer a call takes without each optimisation."""
    names = {"builtin": "student", "MACE_SPICE.model": "MACE_SPICE"}
    ways = [["graph=off"], ["neighbors=brute"], ["fused=off"], ["graph=off", "neighbors=brute", "fused=off"]]
    lines = ["| model, atoms | time of a call, ms | " + " | ".join(" ".join(f"`{setting}`" for setting in way) if len(way) == 1 else "all three" for way in ways) + " |",
             "|---|--:" + "|--:" * len(ways) + "|"]
    rows = {}
    for row in load("optimisations_gpu")["switches"]:
        rows.setdefault((row["model"], row["atoms"]), {})[tuple(row["switched_off"])] = row
    for (model, atoms), by in rows.items():
        lines.append(f"| {names[model]}, {atoms:,} | {by[()]['median_s'] * 1e3:.3g} | " + " | ".join(f"{by[tuple(way)]['longer']:.2f}" for way in ways) + " |")
    return lines


def torch_student():
    ways = ["PyTorch, eager", "PyTorch, TorchScript", "PyTorch, torch.compile"]
    lines = ["| atoms | mlff, ms | " + " | ".join(f"{way}, ms | times longer" for way in ways) + " | RMSE of forces, mlff / PyTorch, eV/A |", "|--:|--:" + "|--:" * (2 * len(ways)) + "|--:|"]
    rows = {}
    for row in load("optimisations_gpu")["torch_rows"]:
        rows.setdefault(row["atoms"], {})[row["model"]] = row
    for atoms, by in rows.items():
        cells = [f"{by[way]['median_s'] * 1e3:.3g} | {by[way]['longer']:{'.0f' if by[way]['longer'] >= 10 else '.1f'}}" for way in ways]
        lines.append(f"| {atoms:,} | {by['mlff']['median_s'] * 1e3:.3g} | {' | '.join(cells)} | {by['mlff']['force_rmse']:.0e} / {by[ways[0]]['force_rmse']:.0e} |")
    return lines


def mace_cpu_summary(machine, model):
    by = mace_cpu_rows(machine)[model, "water192"]
    return (f"| 2 cores, {MACHINES[machine]}: MACE {model} shape, 192 atoms of water, energy + forces + stress | {by['mlff mixed']['median'] * 1e3:.0f} ms | "
            f"mace-torch fp32, {by['mace-torch fp32']['median'] * 1e3:.0f} ms | **{faster(by, 'mlff mixed', 'mace-torch fp32')}** |")


def sevennet_summary(model):
    by = next(row["engines"] for row in load("sevennet_cpu")["rows"] if (row["model"], row["system"]) == (model, "water192"))
    return (f"| 2 cores, {MACHINES['x86_64']}: {model}, 192 atoms of water, energy + forces + stress | {by['mlff mixed']['median'] * 1e3:.0f} ms | "
            f"sevenn fp32, {by['sevenn fp32']['median'] * 1e3:.0f} ms | **{faster(by, 'mlff mixed', 'sevenn fp32')}** |")


def start_summary():
    start = load("mace_cpu_x86_64")["start"]
    return (f"| 2 cores, {MACHINES['x86_64']}: the whole command from start to end, MACE {start['mlff']['model']} shape, one water molecule | {start['mlff']['median'] * 1e3:.0f} ms | "
            f"mace-torch in Python, {start['mace-torch']['median']:.1f} s | **{faster(start, 'mlff', 'mace-torch')}** |")


def gpu_summary(model, atoms):
    row = gpu_vs_peers_results()["speed"][f"{model}:{atoms}:mixed"]
    ours, theirs = row["mlff"]["median_ms"], row["cueq"]["median_ms"]
    system, extra = ("one water molecule", "the neighbour list") if atoms == 3 else (f"{atoms:,} atoms of water", "the neighbour list and stress")
    return (f"| one H200: MACE {model} shape, {system}, energy + forces; our time includes {extra}, theirs does not | {ours:.1f} ms | "
            f"mace-torch + cuEquivariance fp32, {theirs:.0f} ms | **{theirs / ours:{'.0f' if theirs > 10 * ours else '.1f'}}x** |")


def neighbors_summary():
    by = {row["library"]: row for row in load("neighbors")["results"] if row["atoms"] == 98304}
    return (f"| 2 cores, {MACHINES['aarch64']}: neighbour list, 98,304 atoms, 6 A | {by['mlff']['median_s'] * 1e3:.0f} ms | vesin, {by['vesin']['median_s'] * 1e3:.0f} ms | "
            f"**{by['vesin']['median_s'] / by['mlff']['median_s']:.1f}x** |")


def opening_summary():
    opening = load("model_open")
    return (f"| 2 cores, {MACHINES['aarch64']}: open and describe a {opening['file_bytes'] / 1e6:.0f} MB `.model` | {opening['mlff_model_info_seconds']['median'] * 1e3:.0f} ms | "
            f"import torch and load, {opening['torch_import_seconds'] + opening['torch_load_seconds']:.1f} s | |")


SEVENNET_MODELS = ("SevenNet-0", "SevenNet-l3i5")
SEVENNET_GPU_GOALS = {("SevenNet-0", 8, "mixed"): 0.25, ("SevenNet-0", 12288, "mixed"): 12.3, ("SevenNet-l3i5", 8, "mixed"): 0.4, ("SevenNet-l3i5", 12288, "mixed"): 24.6}
SUMMARY_HEAD = ["| | mlff | peer | |", "|---|--:|--:|--:|"]


def short_summary():
    """For the README."""
    return SUMMARY_HEAD + [mace_cpu_summary("x86_64", "mp0-medium"), mace_cpu_summary("aarch64", "mp0-medium"), *map(sevennet_summary, SEVENNET_MODELS), gpu_summary("mp0-medium", 12288), sevennet_gpu_summary("SevenNet-0", 12288), start_summary()]


def summary():
    return SUMMARY_HEAD + [mace_cpu_summary(machine, model) for machine in MACHINES for model in ("mp0-small", "mp0-medium", "off23-small")] + [
        *map(sevennet_summary, SEVENNET_MODELS), start_summary(), gpu_summary("mp0-small", 12288), gpu_summary("mp0-medium", 12288), gpu_summary("mp0-medium", 3), *(sevennet_gpu_summary(*case) for case in (("SevenNet-0", 8), ("SevenNet-0", 12288), ("SevenNet-l3i5", 8), ("SevenNet-l3i5", 1536))), neighbors_summary(), opening_summary()]


TABLES = {"neighbors": neighbors, "gpu_neighbors": gpu_neighbors, "cpu_machines": cpu_machines, "mace_cpu_x86_64": lambda: mace_cpu("x86_64"), "mace_cpu_aarch64": lambda: mace_cpu("aarch64"), "mace_start": mace_start, "nve": nve, "md_steps": md_steps, "model_open": model_open, "ase": ase, "short_summary": short_summary, "summary": summary, "switches": switches, "torch_student": torch_student,
          "sevennet_errors": sevennet_errors, "sevennet_cpu": sevennet_cpu, "sevennet_gpu": sevennet_gpu, "sevennet_memory": sevennet_memory, "sevennet_materials": sevennet_materials, "sevennet_dynamics": sevennet_dynamics,
          "gpu_vs_peers": gpu_vs_peers, "gpu_peaks": gpu_peaks, "gpu_profile_12288": lambda: gpu_profile("mp0-medium:12288:mixed"),
          "gpu_profile_3": lambda: gpu_profile("mp0-medium:3:mixed", 0.025)}


def main():
    is_check = "--check" in sys.argv[1:]
    stale = []
    for path in (ROOT / "README.md", ROOT / "docs" / "performance.md", ROOT / "docs" / "profiling.md", ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "nequip.md"):
        text = path.read_text()
        new = re.sub(r"(<!-- table (\w+) -->\n).*?(<!-- end -->)", lambda m: m[1] + "\n".join(TABLES[m[2]]()) + "\n" + m[3], text, flags=re.S)
        if new != text:
            stale.append(path.name)
            if not is_check:
                path.write_text(new)
    if is_check and stale:
        sys.exit("tables are not what measurements/results says: " + ", ".join(stale) + "; run python3 measurements/tables.py")


if __name__ == "__main__":
    main()
