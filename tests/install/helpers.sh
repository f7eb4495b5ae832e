# SPDX-License-Identifier: MIT
# Common parts of the tests of installation. Sourced, never run. They need MLFF_BUILD_DIR, CC and CXX.
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source_dir=$(cd "$here/../.." && pwd)
scripts=$source_dir/scripts
: "${MLFF_BUILD_DIR:=$source_dir/build/release}" "${CC:=cc}" "${CXX:=c++}"
export MLFF_BUILD_DIR CC CXX

temporary=$(mktemp -d)
cleanup() { rm -rf "$temporary"; }
trap cleanup EXIT

fail() {
    echo "FAILED: $*" >&2
    exit 1
}
skip() {
    echo "skipped: $*"
    exit 77
}
has() { command -v "$1" >/dev/null; }

# expect_exit CODE COMMAND...: its output goes to $temporary/output
expect_exit() {
    local status=0
    "${@:2}" >"$temporary/output" 2>&1 </dev/null || status=$?
    [[ $status -eq $1 ]] || fail "exit code $status, expected $1: ${*:2}"$'\n'"$(cat "$temporary/output")"
}
expect_text() { [[ $1 == *"$2"* ]] || fail "'$2' expected in: $1"; }
expect_same() { [[ $1 == "$2" ]] || fail "'$1' is not '$2'"; }

milliseconds() { echo $((${EPOCHREALTIME/./} / 1000)); }
# time_of COMMAND...: in milliseconds
time_of() {
    local begin
    begin=$(milliseconds)
    "$@" >/dev/null
    echo $(($(milliseconds) - begin))
}

# exported_names LIBRARY: without the versions of symbols
exported_names() { nm -D --defined-only "$1" | awk '{ sub(/@.*/, "", $3); print $3 }'; }

write_water() {
    printf '3\n\nO 0.0 0.0 0.0\nH 0.9572 0.0 0.0\nH -0.239987 0.926627 0.0\n' >"$1"
}
# command_energy PROGRAM: the energy of the water molecule of consumer/main.c, as `mlff eval` gives it
command_energy() {
    write_water "$temporary/water.xyz"
    "$1" eval "$temporary/water.xyz" --device cpu --precision fp64 --json - |
        python3 -c 'import json, sys; print("%.8f" % json.load(sys.stdin)["frames"][0]["energy"])'
}

# library_dir PREFIX: lib, lib64 or lib/MACHINE, by the choice of the distribution
library_dir() {
    local found
    found=$(find "$1" -name mlff.pc)
    [[ -n $found ]] || fail "no mlff.pc below $1"
    dirname "$(dirname "$found")"
}
# c_consumer_energy PREFIX: by a C program compiled as a user of pkg-config would
c_consumer_energy() {
    local libraries flags program=$temporary/c_consumer
    libraries=$(library_dir "$1")
    flags=$(PKG_CONFIG_PATH=$libraries/pkgconfig pkg-config --cflags --libs mlff)
    # shellcheck disable=SC2086
    "$CC" -std=c99 -pedantic-errors -Wall -Wextra -Werror "$here/consumer/main.c" -o "$program" $flags -lm
    LD_LIBRARY_PATH=$libraries "$program"
}
