# SPDX-License-Identifier: MIT
"""What measurements/kappa/run.py computes without phono3py: errors of conductivities, and the text of options and files. Needs nothing but Python."""
import math

FAILED = 2.0  # the largest error there is: what has no conductivity (imaginary modes, symmetry lost) counts as this


def sre(found, reference):
    """Symmetric relative error of two conductivities, 0 to 2: 2 |a - b| / (a + b)."""
    if reference is None or not math.isfinite(reference) or reference <= 0:
        raise ValueError(f"the reference conductivity is {reference}, expected a positive number")
    if found is None or not math.isfinite(found) or found < 0:
        return FAILED
    return 2 * abs(found - reference) / (found + reference)


def average(tensor):
    """Mean of the three diagonal components, of a tensor in the order xx, yy, zz, yz, xz, xy."""
    return sum(tensor[:3]) / 3


def total_of_modes(weights, modes):
    """Conductivity: the sum of all modes, [wave vector][band], over the number of wave vectors of the full mesh. Modes have their wave vectors' weights in them."""
    return sum(map(sum, modes)) / sum(weights)


def srme(found, reference):
    """Symmetric relative mean error, 0 to 2: 2 sum |a - b| / (N (A + B)) over modes a, b, with A and B their totals.

    Both have "weights" and "modes"; modes are compared in the order of frequency at each wave vector, which must be the same ones."""
    if found is None or not all(math.isfinite(value) for bands in found["modes"] for value in bands):
        return FAILED
    if found["weights"] != reference["weights"]:
        raise ValueError("the reference has other wave vectors: the same mesh and symmetry are needed")
    if [len(bands) for bands in found["modes"]] != [len(bands) for bands in reference["modes"]]:
        raise ValueError("the reference has another number of modes")
    difference = sum(abs(a - b) for ours, theirs in zip(found["modes"], reference["modes"]) for a, b in zip(ours, theirs))
    totals = total_of_modes(found["weights"], found["modes"]) + total_of_modes(reference["weights"], reference["modes"])
    return 2 * difference / sum(found["weights"]) / totals


def share_of_modes(pairs, heat_capacities):
    """What each mode of one wave vector conducts, from the matrix of pairs of bands: a pair's part is shared in proportion to the heat capacities of its two modes."""
    count = len(heat_capacities)
    modes = []
    for band in range(count):
        total = pairs[band][band]
        for other in range(count):
            both = heat_capacities[band] + heat_capacities[other]
            if other != band and both > 0:
                total += (pairs[band][other] + pairs[other][band]) * heat_capacities[band] / both
        modes.append(total)
    return modes


def three_counts(text):
    """'4' or '3,3,2' as three counts."""
    try:
        counts = [int(word) for word in text.split(",")]
    except ValueError:
        counts = []
    counts = counts * 3 if len(counts) == 1 else counts
    if len(counts) != 3 or min(counts) < 1:
        raise ValueError(f"'{text}' is neither a number nor three numbers with commas, such as 2 or 3,3,2")
    return counts


def temperatures(text):
    """'300' or '100,200,300' as positive numbers."""
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(math.isfinite(value) and value > 0 for value in found):
        raise ValueError(f"'{text}' is not a list of temperatures in K, such as 300 or 100,200,300")
    return found


def frame(lattice, symbols, positions):
    """A periodic frame of extended XYZ with all digits."""
    cell = " ".join(repr(float(value)) for row in lattice for value in row)
    lines = [str(len(symbols)), f'Lattice="{cell}" Properties=species:S:1:pos:R:3 pbc="T T T"']
    lines += [f"{symbol} {float(x)!r} {float(y)!r} {float(z)!r}" for symbol, (x, y, z) in zip(symbols, positions)]
    return "\n".join(lines) + "\n"


def forces_of_frames(results, atoms, frames):
    """The forces in what `mlff eval --json` wrote, [frame][atom][3], with their number checked."""
    forces = [item["forces"] for item in results["frames"]]
    if len(forces) != frames or any(len(rows) != atoms for rows in forces):
        raise ValueError(f"expected the forces of {frames} frames of {atoms} atoms")
    if not all(math.isfinite(value) for rows in forces for row in rows for value in row):
        raise ValueError("a force is not a finite number")
    return forces


def has_imaginary_modes(frequencies, is_gamma, tolerance=0.01):
    """Whether a frequency in THz is imaginary, which is a negative number here; the three lowest at Gamma may be so within the tolerance."""
    for bands, gamma in zip(frequencies, is_gamma):
        for index, value in enumerate(sorted(bands)):
            if value < (-tolerance if gamma and index < 3 else 0):
                return True
    return False
