#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# scripts/package: the packages contain what they should and work where they are unpacked or installed.
source "$(dirname "${BASH_SOURCE[0]}")/helpers.sh"
has pkg-config || skip "no pkg-config"

"$scripts/package" --output "$temporary/package" >"$temporary/paths"
while read -r path; do [[ -s $path ]] || fail "no $path"; done <"$temporary/paths"

# try_tree DIRECTORY: an unpacked mlff does its work
try_tree() {
    local energy
    expect_same "$("$1/bin/mlff" --version)" "mlff $(cat "$source_dir/VERSION")"
    [[ -s $1/share/man/man1/mlff.1 && -s $1/share/man/man1/mlff-eval.1 ]] || fail "no man pages in $1"
    for file in README.md docs/quick-start.md docs/images/speed.svg examples/water.xyz examples/mace_wrapper/Makefile; do
        [[ -s $1/share/doc/mlff/$file ]] || fail "no $file in $1"
    done
    energy=$(command_energy "$1/bin/mlff")
    expect_same "$(c_consumer_energy "$1")" "$energy"
    [[ -z $(readelf -d "$1/bin/mlff" "$(library_dir "$1")"/libmlff.so | grep -E 'RPATH|RUNPATH|libcud' || true) ]] ||
        fail "the files of $1 look for libraries of the machine they were built on"
}

echo "the .tar.gz"
mkdir "$temporary/tar"
tar -xzf "$(grep '\.tar\.gz$' "$temporary/paths")" -C "$temporary/tar"
expect_same "$(ls "$temporary/tar" | wc -l)" 1
try_tree "$temporary"/tar/*

deb=$(grep '\.deb$' "$temporary/paths" || true)
if [[ -z $deb ]]; then
    has dpkg && fail "no .deb was made" || exit 0
fi
echo "the .deb, unpacked"
expect_same "$(dpkg-deb -f "$deb" Package)" mlff
expect_text "$(dpkg-deb -f "$deb" Depends)" libc6
expect_text "$(dpkg-deb -f "$deb" Depends)" zlib1g
dpkg-deb -x "$deb" "$temporary/deb"
try_tree "$temporary/deb/usr"

if [[ $EUID -ne 0 ]] || dpkg -s mlff >/dev/null 2>&1 || [[ -e /usr/bin/mlff ]]; then
    echo "the .deb is not installed here: that takes root, and no mlff in the way"
    exit 0
fi
echo "the .deb, installed and removed"
cleanup() {
    dpkg -P mlff >/dev/null 2>&1 || true
    rm -rf "$temporary"
}
expect_exit 0 dpkg -i "$deb"
energy=$(command_energy /usr/bin/mlff)
# shellcheck disable=SC2046
"$CC" -std=c99 "$here/consumer/main.c" -o "$temporary/installed" $(pkg-config --cflags --libs mlff) -lm
expect_same "$(unset LD_LIBRARY_PATH && "$temporary/installed")" "$energy"
expect_exit 0 dpkg -P mlff
[[ ! -e /usr/bin/mlff && ! -e /usr/include/mlff && ! -e /usr/share/doc/mlff && ! -e /usr/share/man/man1/mlff.1 ]] || fail "dpkg left files of mlff behind"
