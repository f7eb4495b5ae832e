# SPDX-License-Identifier: MIT
# Compares the numbers of two files in the format of the examples: awk -v name=NAME -v tolerance=X -f check.awk EXPECTED FOUND
# Words are passed over. So are nan and inf, which are then too few numbers.
/^#/ { next }
FILENAME != ARGV[1] && $1 == "molecule:" { energy = $2 }
{
    for (i = 1; i <= NF; ++i)
        if ($i ~ /^[-+]?[0-9]*\.[0-9]+$/) {
            if (FILENAME == ARGV[1]) expected[++expected_count] = $i + 0
            else found[++found_count] = $i + 0
        }
}
END {
    if (!expected_count || found_count != expected_count) {
        printf "FAILED %s: %d numbers, expected %d\n", name, found_count, expected_count
        exit 1
    }
    for (i = 1; i <= expected_count; ++i) {
        difference = found[i] - expected[i]
        if (!(difference <= tolerance && -difference <= tolerance)) {
            printf "FAILED %s: number %d is %.8f, expected %.8f to %g\n", name, i, found[i], expected[i], tolerance
            exit 1
        }
    }
    printf "pass %s: the water molecule has %s eV; %d numbers agree to %g\n", name, energy, expected_count, tolerance
}
