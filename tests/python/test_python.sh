#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The Python package as a user installs it, and mlff serve with i-PI, in an environment below the build folder, of the library and the command that are built there already.
#   test_python.sh MLFF PYTHON
# Skipped (exit code 77) where no such environment can be made: without pip, Python's headers, or a package index.
source "$(dirname "${BASH_SOURCE[0]}")/../install/helpers.sh"
program=$1 python=$2
tests=$source_dir/tests/python
folder=$MLFF_BUILD_DIR/python-package
environment=$folder/venv

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || skip "the package needs Python 3.10 or later, and $python is older"
"$python" -c 'import os, sysconfig; os.stat(os.path.join(sysconfig.get_path("include"), "Python.h"))' 2>/dev/null || skip "$python has no headers (python3-dev)"
has ninja || has make || skip "neither ninja nor make"

# The environment stays for the next run, until what is wanted in it changes.
wanted=$(cat "$tests/requirements.txt" && "$python" -VV)
if [[ ! -f $folder/wanted || $(cat "$folder/wanted") != "$wanted" ]]; then
    rm -rf "$folder"
    mkdir -p "$folder"
    # Another Python's pip can serve the environment, which spares it one of its own.
    if "$python" -m pip --python "$python" --version >/dev/null 2>&1 && "$python" -m venv --without-pip "$environment" 2>"$folder/log"; then
        echo "$python" >"$folder/pip"
    elif "$python" -m venv "$environment" >"$folder/log" 2>&1; then
        echo "$environment/bin/python" >"$folder/pip"
    else
        skip "$python cannot make environments (python3-venv): $(tail -n 1 "$folder/log")"
    fi
fi
install_packages() { "$(cat "$folder/pip")" -m pip --python "$environment/bin/python" --disable-pip-version-check install --no-compile "$@"; }
if [[ ! -f $folder/wanted ]]; then
    { install_packages --only-binary :all: -r "$tests/requirements.txt" && install_packages --no-deps 'ase>=3.24,<4'; } >"$folder/log" 2>&1 ||
        skip "pip could not install what is needed: $(grep -v '^WARNING' "$folder/log" | tail -n 1)"
    echo "$wanted" >"$folder/wanted"
fi

echo "a wheel of the library and the command as they are built"
begin=$(milliseconds)
rm -rf "$folder/wheels"
PATH=$environment/bin:$PATH "$(cat "$folder/pip")" -m pip --python "$environment/bin/python" --disable-pip-version-check wheel -v --no-build-isolation --no-deps \
    -w "$folder/wheels" "$source_dir" --config-settings=build-dir="$folder/build" >"$folder/log" 2>&1 || fail "pip could not make the wheel: $(cat "$folder/log")"
! grep -F 'core.cpp' "$folder/log" | grep 'warning:' || fail "the package does not compile without warnings"
"$python" "$tests/check_wheel.py" "$folder"/wheels/*.whl
echo "made and checked in $(($(milliseconds) - begin)) ms"
install_packages --no-deps --force-reinstall "$folder"/wheels/*.whl >"$folder/log" 2>&1 || fail "pip could not install the wheel: $(cat "$folder/log")"

echo "its command and its headers"
energy=$(command_energy "$environment/bin/mlff")
expect_same "$energy" "$(command_energy "$program")"
[[ -s $environment/share/man/man1/mlff.1 ]] || fail "the wheel has no man pages"
asked() { "$environment/bin/python" -c "import mlff; print(mlff.$1())"; }
library=$(asked get_library)
"$CC" -std=c99 -Wall -Wextra -Werror -I"$(asked get_include)" "$here/consumer/main.c" "$library" -Wl,-rpath,"$(dirname "$library")" -lm -o "$temporary/consumer"
expect_same "$("$temporary/consumer")" "$energy"

export OPENBLAS_NUM_THREADS=1 # 3 x 3 matrices of ASE: waiting threads would take the time of other tests
cd "$temporary" # where no folder is named as a package is
for name in package ase bench ipi; do
    "$environment/bin/python" -W error::DeprecationWarning:mlff "$tests/test_$name.py" "$program" "$source_dir/tests/golden/mace" "$source_dir/src/tools/validate/systems" \
        "$source_dir/bindings/python/README.md"
done
