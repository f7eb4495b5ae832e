# SPDX-License-Identifier: MIT
"""What Nsight Compute (ncu) is asked for, its CSV read, launches added up by kernel, and how near each kernel comes to what the GPU
reaches in the loops of peaks.cu."""
import csv
import io
import re

TIME, DRAM, L2 = "gpu__time_duration.sum", "dram__bytes.sum", "lts__t_bytes.sum"
OPERATIONS = {"fp32": {"ffma": 2, "fadd": 1, "fmul": 1}, "fp64": {"dfma": 2, "dadd": 1, "dmul": 1}}
THREAD_INSTRUCTIONS = "sm__sass_thread_inst_executed_op_{}_pred_on.sum"
TENSOR = {"fp16_mma": ["sm__ops_path_tensor_src_fp16_dst_fp32.sum", "sm__ops_path_tensor_src_fp16_dst_fp16.sum"],
          "tf32_mma": ["sm__ops_path_tensor_src_tf32_dst_fp32.sum"]}
PERCENT = {"SM": "sm__throughput.avg.pct_of_peak_sustained_elapsed", "issue": "sm__issue_active.avg.pct_of_peak_sustained_elapsed",
           "L1": "l1tex__throughput.avg.pct_of_peak_sustained_elapsed", "L2": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
           "DRAM": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "tensor": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"}
REQUIRED = [TIME, DRAM, L2, PERCENT["SM"], PERCENT["L1"], PERCENT["L2"]] + [
    THREAD_INSTRUCTIONS.format(name) for counts in OPERATIONS.values() for name in counts]
OPTIONAL = [metric for metrics in TENSOR.values() for metric in metrics] + [PERCENT["issue"], PERCENT["DRAM"], PERCENT["tensor"],
            "sm__inst_executed_pipe_tensor.sum", "sm__warps_active.avg.pct_of_peak_sustained_active"]
WANTED = set(REQUIRED + OPTIONAL) - {TIME}
SCALES = {"nsecond": 1e-9, "ns": 1e-9, "usecond": 1e-6, "us": 1e-6, "msecond": 1e-3, "ms": 1e-3, "second": 1.0, "s": 1.0,
          "byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12}


def short_name(name):
    """"void mlff::cuda::(anonymous namespace)::sum_messages<float, (int)4>(View)" becomes "sum_messages"."""
    name = name.replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    without = ""
    while without != name:  # innermost templates first
        without, name = name, re.sub(r"<[^<>]*>", "", name)
    return name.split("(")[0].split("::")[-1].split()[-1]


def number(text, unit):
    try:
        return float(text.replace(",", "")) * SCALES.get(unit, 1.0)
    except ValueError:  # "n/a", ""
        return None


def parse(text):
    """The launches in `ncu --csv` output, in their order: [{"name": ..., metric: value in seconds, bytes, counts or percent}]. Both
    the wide table of --page raw and the long one are read; lines before the table are those of ncu and of the program."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    rows = list(csv.reader(io.StringIO("\n".join(line for line in lines[start:] if line.startswith('"')))))
    header, rows, launches = rows[0], rows[1:], {}
    column = {name: i for i, name in enumerate(header)}
    if "Metric Name" in column:
        for row in rows:
            launch = launches.setdefault(row[column["ID"]], {"name": row[column["Kernel Name"]]})
            launch[row[column["Metric Name"]]] = number(row[column["Metric Value"]], row[column["Metric Unit"]])
    else:
        units = rows[0]
        for row in rows[1:]:
            launches[row[column["ID"]]] = {"name": row[column["Kernel Name"]],
                                           **{name: number(row[i], units[i]) for name, i in column.items() if "__" in name}}
    return list(launches.values())


def add_up(launches):
    """Kernels by short name, the longest time first: sums over launches, and percentages weighted by time."""
    kernels = {}
    for launch in launches:
        seconds = launch.get(TIME) or 0.0
        kernel = kernels.setdefault(short_name(launch["name"]), {"launches": 0, "seconds": 0.0, "sums": {}, "percent": {}})
        kernel["launches"] += 1
        kernel["seconds"] += seconds
        for metric, value in launch.items():
            if metric not in WANTED or value is None:  # ncu adds properties of the device and the launch
                continue
            if ".pct_of_peak" in metric:
                kernel["percent"][metric] = kernel["percent"].get(metric, 0.0) + value * seconds
            else:
                kernel["sums"][metric] = kernel["sums"].get(metric, 0.0) + value
    for kernel in kernels.values():
        kernel["percent"] = {metric: value / kernel["seconds"] for metric, value in kernel["percent"].items() if kernel["seconds"] > 0}
    return [{"name": name, **kernel} for name, kernel in sorted(kernels.items(), key=lambda item: -item[1]["seconds"])]


def rates(kernel, tensor_scale=None):
    """Operations and bytes a second of one kernel, by unit; a unit whose counters are missing is left out. `tensor_scale` is how many
    operations one count of the tensor counters stands for, where that was calibrated."""
    seconds, sums, found = kernel["seconds"], kernel["sums"], {}
    if seconds <= 0:
        return found
    for unit, counts in OPERATIONS.items():
        metrics = {THREAD_INSTRUCTIONS.format(name): weight for name, weight in counts.items()}
        if all(metric in sums for metric in metrics):
            found[unit] = sum(sums[metric] * weight for metric, weight in metrics.items()) / seconds
    for unit, metrics in TENSOR.items():
        if any(metric in sums for metric in metrics):
            found[unit] = sum(sums.get(metric, 0.0) for metric in metrics) * (tensor_scale or {}).get(unit, 1.0) / seconds
    for unit, metric in (("DRAM", DRAM), ("L2", L2)):
        if metric in sums:
            found[unit] = sums[metric] / seconds
    return found


PEAKS = {"fp32": "fp32_flop", "fp64": "fp64_flop", "fp16_mma": "fp16_mma_flop", "tf32_mma": "tf32_mma_flop", "DRAM": "copy_bytes", "L2": "l2_read_bytes"}


def shares(kernel, peaks, tensor_scale=None):
    """Of the measured peaks, by unit."""
    return {unit: rate / peaks[PEAKS[unit]] for unit, rate in rates(kernel, tensor_scale).items() if peaks.get(PEAKS[unit])}


def closest_limit(kernel, peaks, tensor_scale=None):
    """(unit, share) of what is nearest to its limit: shares of measured peaks, and what ncu says about units that have none here."""
    found = shares(kernel, peaks, tensor_scale)
    for unit, metric in PERCENT.items():
        if metric in kernel["percent"]:
            found[unit] = max(found.get(unit, 0.0), kernel["percent"][metric] / 100)
    return max(found.items(), key=lambda item: item[1], default=None)


def calibrate(launches, done):
    """How many operations one count of the tensor counters stands for, from kernels that did a known number: {unit: scale}."""
    scale = {}
    for unit, metrics in TENSOR.items():
        for launch in launches:
            name = short_name(launch["name"])
            counted = sum(launch.get(metric) or 0.0 for metric in metrics)
            if name == unit + "_kernel" and name in done and counted > 0:
                scale[unit] = done[name] / counted
    return scale
