#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# libmace_wrapper as an old program meets it: its symbols, the examples in C, C++ and Fortran compiled as a user would, a program built
# with the original header that runs with our library, models by name, valgrind.
source "$(dirname "${BASH_SOURCE[0]}")/helpers.sh"
libraries=$MLFF_BUILD_DIR/src
program=$MLFF_BUILD_DIR/apps/mlff/mlff
examples=$source_dir/examples/mace_wrapper
model=$source_dir/tests/golden/mace/p03_mace_plain_l1.model
strict="-pedantic-errors -Wall -Wextra -Werror"
export LD_LIBRARY_PATH=$libraries

echo "exports the functions of its header, and nothing else"
declared=$(grep -ohE '\bmace_[a-z_]+\(' "$source_dir/include/mace_wrapper.h" | tr -d '(' | sort -u)
expect_same "$(exported_names "$libraries/libmace_wrapper.so" | sort)" "$declared"
[[ $(wc -l <<<"$declared") -eq 8 ]] || fail "8 functions expected: $declared"
original=$(grep -ohE '\bmace_[a-z_]+\(' "$source_dir/tests/api/original/mace_wrapper.h" | tr -d '(' | sort -u)
expect_same "$(comm -23 <(echo "$original") <(echo "$declared"))" ""

# expected_numbers: as `mlff eval` gives them, in the order in which the examples print them
write_water_box() { printf '3\nLattice="9 0 0 0 9 0 0 0 9" pbc="%s"\nO 0 0 0\nH 0.96 0 0\nH -0.24 0.93 0\n' "$1"; }
{ write_water_box "F F F" && write_water_box "T T T"; } >"$temporary/water.xyz"
expected_numbers() {
    "$program" eval "$temporary/water.xyz" --model "$1" --device cpu --precision "$2" --json - | python3 -c '
import json, sys
for frame in json.load(sys.stdin)["frames"]:
    print(frame["energy"], *(x for force in frame["forces"] for x in force), sep="\n")'
}
# check_numbers OUTPUT EXPECTED [TOLERANCE]: all of them, by default to the digits that are printed
check_numbers() {
    python3 - "$1" "$2" "${3:-6e-9}" <<'PYTHON' || fail "numbers of $1 differ"
import re, sys
found = [float(x) for x in re.findall(r"-?\d*\.\d+", open(sys.argv[1]).read())]
expected = [float(x) for x in open(sys.argv[2])]
assert len(found) == len(expected) == 20, (len(found), len(expected))
assert any(abs(x) > 0.1 for x in expected)
for x, y in zip(found, expected):
    assert abs(x - y) <= float(sys.argv[3]), (x, y)
PYTHON
}
for precision in auto fp64; do expected_numbers "$model" $precision >"$temporary/expected_$precision"; done
# try_program PROGRAM: both precisions, and its errors
try_program() {
    "$1" "$model" >"$temporary/numbers"
    check_numbers "$temporary/numbers" "$temporary/expected_auto"
    MACE_PRECISION=fp64 "$1" "$model" >"$temporary/numbers"
    check_numbers "$temporary/numbers" "$temporary/expected_fp64"
    expect_exit 1 "$1" /no/such.model
    expect_text "$(cat "$temporary/output")" /no/such.model
}

echo "the example in C"
# shellcheck disable=SC2086
"$CC" -std=c99 $strict -I"$source_dir/include" "$examples/water.c" -o "$temporary/water_c" -L"$libraries" -lmace_wrapper -Wl,-rpath-link,"$libraries"
try_program "$temporary/water_c"
echo "the same source with the original header"
# shellcheck disable=SC2086
"$CC" -std=c99 $strict -I"$source_dir/tests/api/original" "$examples/water.c" -o "$temporary/water_old" -L"$libraries" -lmace_wrapper -Wl,-rpath-link,"$libraries"
try_program "$temporary/water_old"
echo "the example in C++"
# shellcheck disable=SC2086
"$CXX" -std=c++17 $strict -I"$source_dir/include" "$examples/water.cpp" -o "$temporary/water_cpp" -L"$libraries" -lmace_wrapper -Wl,-rpath-link,"$libraries"
try_program "$temporary/water_cpp"
if has gfortran; then
    echo "the example in Fortran"
    gfortran -std=f2008 -Wall -Werror -J "$temporary" "$examples/mace_wrapper.f90" "$examples/water.f90" -o "$temporary/water_fortran" \
        -L"$libraries" -lmace_wrapper -Wl,-rpath-link,"$libraries"
    try_program "$temporary/water_fortran"
else
    echo "no gfortran: the example in Fortran is not tried"
fi

echo "the programs of the documentation"
python3 - "$source_dir/docs/mace-wrapper.md" "$model" "$temporary" <<'PYTHON'
import re, sys
page, model, folder = open(sys.argv[1]).read(), sys.argv[2], sys.argv[3]
for language, ending in ("c", "c"), ("cpp", "cpp"), ("fortran", "f90"):
    (program,) = [block for block in re.findall(rf"```{language}\n(.*?)```", page, re.S) if "X.model" in block]
    open(f"{folder}/page.{ending}", "w").write(program.replace("X.model", model))
PYTHON
try_page() {
    expect_exit 0 "$@" -o "$temporary/page" -L"$libraries" -lmace_wrapper -Wl,-rpath-link,"$libraries"
    expect_exit 0 "$temporary/page"
    expect_text "$(cat "$temporary/output")" "$(printf '%.4f' "$(head -n 1 "$temporary/expected_auto")" | cut -c 1-6)"
}
# shellcheck disable=SC2086
try_page "$CC" -std=c99 $strict -I"$source_dir/include" "$temporary/page.c"
# shellcheck disable=SC2086
try_page "$CXX" -std=c++17 $strict -I"$source_dir/include" "$temporary/page.cpp"
! has gfortran || try_page gfortran -std=f2008 -Wall -Werror -J "$temporary" "$examples/mace_wrapper.f90" "$temporary/page.f90"

echo "a model by its name"
export MLFF_MODELS=$temporary/models
expect_exit 1 "$temporary/water_old" small
expect_text "$(cat "$temporary/output")" "mlff model add FILE --name small"
expect_exit 0 "$program" model add "$model" --name small --licence MIT
"$temporary/water_old" small >"$temporary/numbers"
check_numbers "$temporary/numbers" "$temporary/expected_auto"
printf 'x' >>"$(echo "$MLFF_MODELS"/small-*)"
expect_exit 1 "$temporary/water_old" small
expect_text "$(cat "$temporary/output")" "'small'"
expect_text "$(cat "$temporary/output")" damaged

echo "the log"
MACE_LOG=1 "$temporary/water_c" "$model" 2>"$temporary/log" >/dev/null
expect_text "$(cat "$temporary/log")" "mace_wrapper: $model on cpu"
expect_same "$("$temporary/water_c" "$model" 2>&1 >/dev/null)" ""

if has valgrind; then
    echo "valgrind"
    valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite,indirect,possible \
        --errors-for-leak-kinds=definite,indirect,possible "$temporary/water_c" "$model" >"$temporary/numbers" 2>"$temporary/valgrind" ||
        fail "valgrind: $(cat "$temporary/valgrind")"
    check_numbers "$temporary/numbers" "$temporary/expected_auto" 1e-5 # its processor rounds single precision in its own way
    valgrind --quiet --error-exitcode=9 --leak-check=full "$temporary/water_c" /no/such.model >/dev/null 2>"$temporary/valgrind" &&
        fail "a model that is not there was found"
    expect_same "$(cat "$temporary/valgrind")" "/no/such.model: cannot open the file (No such file or directory)" # no word of valgrind's own
else
    echo "no valgrind: memory is not checked by it"
fi
