#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The drop-in in one command: examples/mace_wrapper/Makefile compiles, runs and checks the examples and fails where a number is wrong, and
# scripts/app runs programs with what they need.
source "$(dirname "${BASH_SOURCE[0]}")/helpers.sh"
has make || skip "no make"
examples=$source_dir/examples/mace_wrapper
out=$temporary/out
model=$source_dir/tests/golden/mace/p03_mace_plain_l1.model
unset LD_LIBRARY_PATH PKG_CONFIG_PATH MLFF_PYTHON_ENV MACE_BACKEND MACE_PRECISION MAKEFLAGS MAKELEVEL
before=$(cd "$examples" && find . -printf '%p %s %T@\n' | sort)
output() { cat "$temporary/output"; }
# make_examples EXIT_CODE ARGS...: against the build
make_examples() { expect_exit "$1" make -C "$examples" OUT="$out" BUILD="$MLFF_BUILD_DIR" "${@:2}"; }

echo "make test: the examples against the build"
make_examples 0 test
for language in c cpp; do expect_text "$(output)" "pass water_$language: the water molecule has -137.974"; done
if has gfortran; then expect_text "$(output)" "pass water_fortran"; else expect_text "$(output)" "skipped: the Fortran example"; fi
make_examples 0 test FC=no-such-compiler
expect_text "$(output)" "skipped: the Fortran example, because there is no no-such-compiler"
[[ $(output) != *water_fortran* ]] || fail "Fortran without its compiler: $(output)"

echo "wrong numbers fail"
expected=$(cat "$examples/expected.txt")
# expect_failure TEXT EXPECTED
expect_failure() {
    echo "$2" >"$temporary/wrong"
    make_examples 2 test EXPECTED="$temporary/wrong"
    expect_text "$(output)" "FAILED water_c: $1"
}
expect_failure "number 1 is -137.97436" "${expected/-137.97436/-137.97439}"
expect_failure "number 2 is 0.16087" "${expected/ 0.16087/-0.16087}"
expect_failure "20 numbers, expected 19" "${expected/-137.97436???/nan}"
expect_failure "20 numbers, expected 0" ""
make_examples 2 test EXPECTED="$temporary/not_there"
sed 's/0\.16087[0-9]*/nan/' "$examples/expected.txt" >"$temporary/nan"
expect_exit 1 awk -v name=nan -v tolerance=1e9 -f "$examples/check.awk" "$examples/expected.txt" "$temporary/nan"
make_examples 2 test MODEL=/no/such.model
expect_text "$(output)" "/no/such.model: cannot open the file"

echo "another model"
for pbc in "F F F" "T T T"; do
    printf '3\nLattice="9 0 0 0 9 0 0 0 9" pbc="%s"\nO 0 0 0\nH 0.96 0 0\nH -0.24 0.93 0\n' "$pbc"
done >"$temporary/water.xyz"
"$MLFF_BUILD_DIR/apps/mlff/mlff" eval "$temporary/water.xyz" --model "$model" --device cpu --json - | python3 -c '
import json, sys
for frame in json.load(sys.stdin)["frames"]:
    print("%.8f" % frame["energy"], *("%.8f" % x for force in frame["forces"] for x in force))' >"$temporary/mace"
make_examples 0 test MODEL="$model" EXPECTED="$temporary/mace" TOLERANCE=2e-8
make_examples 0 run MODEL="$model"
expect_text "$(output)" "molecule: -5.344"

echo "an installed tree, and none at all"
prefix=$temporary/prefix
mkdir -p "$prefix/lib64/pkgconfig" "$prefix/bin"
cp -P "$MLFF_BUILD_DIR"/src/libm*.so* "$prefix/lib64"
cp -r "$source_dir/include" "$prefix"
cp "$MLFF_BUILD_DIR/apps/mlff/mlff" "$prefix/bin"
make_examples 0 clean
[[ ! -e $out ]] || fail "make clean left $(ls "$out")"
expect_exit 0 make -C "$examples" OUT="$out" PREFIX="$prefix" test
expect_text "$(output)" "-L\"$prefix/lib64\""
expect_exit 2 make -C "$examples" OUT="$out" PREFIX="$temporary/none" test
expect_text "$(output)" "$temporary/none has no libmace_wrapper.so"
expect_exit 2 make -C "$examples" OUT="$out" BUILD="$temporary/none" test
expect_text "$(output)" "$temporary/none/src has no libmace_wrapper.so"

echo "scripts/app: the program's output, arguments, folder and exit code"
app=$scripts/app
cd "$out"
expect_exit 0 "$app" ./water_c
expect_text "$(output)" "molecule: -137.974"
expect_same "$("$app" ./water_c 2>/dev/null | head -n 1)" "$(head -n 1 "$temporary/output")"
expect_exit 1 "$app" ./water_c /no/such.model
expect_exit 7 "$app" sh -c 'exit $1' sh 7
expect_same "$("$app" -- printf '%s|' 'a b' --print '')" 'a b|--print||'
expect_same "$("$app" mlff --version)" "mlff $(cat "$source_dir/VERSION")"
if has pkg-config; then
    expect_same "$("$app" pkg-config --variable=libdir mace_wrapper)" "$(realpath "$MLFF_BUILD_DIR")/src"
    expect_exit 0 "$app" make -C "$examples" OUT="$temporary/by_pkg_config" BUILD= test
    expect_text "$(output)" "pass water_cpp"
fi

echo "scripts/app: what is missing"
expect_exit 2 "$app"
expect_text "$(output)" "which program?"
expect_exit 2 "$app" --print ./water_c
expect_exit 2 "$app" --prefix
expect_exit 127 "$app" ./not_there
expect_text "$(output)" "there is no program ./not_there"
expect_exit 127 "$app" water_c
expect_text "$(output)" "the one in this folder is ./water_c"
expect_exit 126 "$app" "$examples/water.c"
expect_text "$(output)" "is not executable"
expect_exit 126 "$app" "$out"
expect_text "$(output)" "is a folder"
expect_exit 3 "$app" --prefix "$temporary/none" ./water_c
expect_text "$(output)" "scripts/install --prefix $temporary/none"

echo "scripts/app --print"
# settings ENVIRONMENT... -- OPTIONS...: what it prints; standard error goes to $temporary/errors
settings() {
    local -a variables=()
    while [[ $1 != -- ]]; do variables+=("$1") && shift; done
    shift
    env "${variables[@]}" "$app" "$@" --print 2>"$temporary/errors"
}
printed=$(settings LD_LIBRARY_PATH="/a folder" --)
expect_text "$printed" "export LD_LIBRARY_PATH=$(realpath "$MLFF_BUILD_DIR")/src:/a\\ folder"
(
    eval "$printed"
    [[ $LD_LIBRARY_PATH == *":/a folder"* && $(type -P mlff) -ef $MLFF_BUILD_DIR/apps/mlff/mlff ]] || fail "$LD_LIBRARY_PATH $PATH"
    ./water_c >/dev/null
)
printed=$(settings A= -- --prefix "$prefix")
expect_text "$printed" "export LD_LIBRARY_PATH=$prefix/lib64"
expect_text "$printed" "export PKG_CONFIG_PATH=$prefix/lib64/pkgconfig"
expect_text "$printed" "export PATH=$prefix/bin:"
expect_exit 0 "$app" --prefix "$prefix" ./water_cpp

echo "the folder of WSL's driver, unless the loader knows one"
mkdir "$temporary/wsl" "$temporary/tools"
touch "$temporary/wsl/libcuda.so.1"
# ldconfig_says TEXT
ldconfig_says() { printf '#!/bin/sh\necho "%s"\n' "$1" >"$temporary/tools/ldconfig" && chmod +x "$temporary/tools/ldconfig"; }
ldconfig_says ""
expect_text "$(settings PATH="$temporary/tools:$PATH" MLFF_WSL_FOLDER="$temporary/wsl" -- --prefix "$prefix")" "$prefix/lib64:$temporary/wsl"
ldconfig_says "libcuda.so.1 (libc6,x86-64) => /usr/lib/libcuda.so.1"
[[ $(settings PATH="$temporary/tools:$PATH" MLFF_WSL_FOLDER="$temporary/wsl" -- --prefix "$prefix") != *"$temporary/wsl"* ]] || fail "WSL's driver beside another"

echo "Python environments"
fake=$prefix/share/mlff/python/mine
mkdir -p "$fake/bin"
ln -s "$(type -P true)" "$fake/bin/python3"
for given in mine "$fake"; do
    settings MLFF_PYTHON_ENV="$given" -- --prefix "$prefix" >/dev/null
done
expect_exit 3 env MLFF_PYTHON_ENV=other "$app" --prefix "$prefix" --print
expect_text "$(output)" "MLFF_PYTHON_ENV is 'other'"
if grep -q '^MLFF_EMBEDDED_PYTHON:INTERNAL=.' "$MLFF_BUILD_DIR/CMakeCache.txt"; then
    expect_text "$(settings A= --)" "export MLFF_PYTHON_LIBRARY=$(realpath "$MLFF_BUILD_DIR")/apps/mlff/libmlff_python.so"
fi

expect_same "$(cd "$examples" && find . -printf '%p %s %T@\n' | sort)" "$before"
