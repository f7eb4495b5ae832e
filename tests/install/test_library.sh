#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The library as it is built: what it exports and needs, its size, its headers, and how fast the command starts.
source "$(dirname "${BASH_SOURCE[0]}")/helpers.sh"
library=$MLFF_BUILD_DIR/src/libmlff.so
program=$MLFF_BUILD_DIR/apps/mlff/mlff

echo "loads without a GPU"
"$CC" -std=c99 -pedantic-errors -Wall -Wextra -Werror "$here/load_library.c" -o "$temporary/load_library" -ldl
CUDA_VISIBLE_DEVICES=-1 "$temporary/load_library" "$library"
needed=$(readelf -d "$library" | grep NEEDED)
[[ $needed != *libcud* ]] || fail "libmlff needs CUDA libraries: $needed"

echo "exports only mlff_*"
exported=$(exported_names "$library")
expect_text "$exported" mlff_session_evaluate
strangers=$(grep -vE '^mlff_' <<<"$exported" || true)
[[ -z $strangers ]] || fail "also exported: $strangers"
for name in $(grep -ohE '\bmlff_[a-z_]+\(' "$source_dir/include/mlff/mlff.h" | tr -d '(' | sort -u); do
    grep -qx "$name" <<<"$exported" || fail "$name is declared but not exported"
done

echo "size"
strip -o "$temporary/stripped.so" "$library"
size=$(stat -c %s "$temporary/stripped.so")
student=$(stat -c %s "$source_dir/models/student/student.safetensors")
[[ $student -lt $((3 << 20)) ]] || fail "the embedded student has $student bytes, more than $((3 << 20))"
echo "$size bytes, $student of them the embedded student"
# Beside the student, KiB; 175 are the numbers of D3. On x86-64 the kernels are there three times (AVX-512, AVX2, any), on AArch64 once.
case $(uname -m) in
    x86_64) limit=2816 name=x86-64 ;;
    *) limit=2528 name=AArch64 ;;
esac
[[ ${MLFF_HAS_CUDA:-OFF} != ON ]] || limit=$((limit + 7168)) # two GPU architectures and the CUDA runtime
[[ $((size - student)) -lt $((limit << 10)) ]] || fail "the stripped library has $((size - student)) bytes beside the student, more than $((limit << 10))"
# The documentation says how large it is, to a twentieth.
documented=$(sed -nE "s/^\| $name \| ([0-9.]+) MB \|.*/\1/p" "$source_dir/docs/performance.md")
if [[ ${MLFF_HAS_CUDA:-OFF} != ON && $name == x86-64 ]]; then
    [[ -n $documented ]] || fail "docs/performance.md has no size of the library for $name"
    awk -v size="$size" -v said="$documented" 'BEGIN { exit !(size > 0.95e6 * said && size < 1.05e6 * said) }' || fail "docs/performance.md says $documented MB, the stripped library has $size bytes"
fi

echo "headers: C99, and C++17"
while read -r header; do
    if [[ $header == *.h ]]; then
        "$CC" -x c -std=c99 -pedantic-errors -Wall -Wextra -Werror -fsyntax-only -I"$source_dir/include" "$header"
    fi
    "$CXX" -x c++ -std=c++17 -pedantic-errors -Wall -Wextra -Werror -fsyntax-only -I"$source_dir/include" "$header"
done < <(find "$source_dir/include" -name '*.h' -o -name '*.hpp')

echo "mlff --help starts fast"
median=$(for _ in {1..10}; do time_of "$program" --help; done | sort -n | sed -n 5p)
echo "$median ms"
[[ $median -lt 60 ]] || fail "mlff --help took $median ms"
