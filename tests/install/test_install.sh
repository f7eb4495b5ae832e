#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# scripts/install, both ways of using the installed library, scripts/uninstall.
source "$(dirname "${BASH_SOURCE[0]}")/helpers.sh"
has pkg-config || skip "no pkg-config"

# Something is there before: it must be there, and the same, afterwards.
prefix=$temporary/a\ prefix
mkdir -p "$prefix/bin" "$prefix/share/empty"
echo "not ours" >"$prefix/bin/stranger"
listing() { (cd "$1" && find . -printf '%p %y %m %l\n' | sort && find . -type f -exec sha256sum {} + | sort); }
before=$(listing "$prefix")

expect_exit 3 "$scripts/uninstall" --prefix "$prefix"
expect_text "$(cat "$temporary/output")" "not installed"

echo "install, twice: the second replaces the first"
expect_exit 0 "$scripts/install" --prefix "$prefix"
expect_text "$(cat "$temporary/output")" "verified builtin: PASS"
expect_text "$(cat "$temporary/output")" "verified self-test: PASS"
installed=$(listing "$prefix")
(cd "$temporary" && expect_exit 0 "$scripts/install" --prefix "a prefix")
expect_same "$(listing "$prefix")" "$installed"
manifest=$prefix/share/mlff/install_manifest.txt
sort -c "$manifest"
while read -r path; do [[ -e $prefix/$path ]] || fail "$path is in the manifest, but not there"; done <"$manifest"
expect_same "$("$prefix/bin/mlff" --version)" "mlff $(cat "$source_dir/VERSION")"
"$prefix/bin/mlff" --write-man-pages "$temporary/man"
for page in "$temporary"/man/*.1; do cmp "$page" "$prefix/share/man/man1/${page##*/}"; done
energy=$(command_energy "$prefix/bin/mlff")
[[ $energy =~ ^-?[0-9]+\.[0-9]+$ && ! $energy =~ ^-?0\.0+$ ]] || fail "odd energy '$energy'"

echo "find_package(mlff)"
expect_exit 0 cmake -S "$here/consumer" -B "$temporary/consumer" -DCMAKE_PREFIX_PATH="$prefix" -DMLFF_EXAMPLES="$source_dir/examples"
expect_exit 0 cmake --build "$temporary/consumer"
expect_same "$("$temporary/consumer/consumer_cpp")" "$energy"
expect_same "$("$temporary/consumer/consumer_c")" "$energy"

echo "moved as a whole, with pkg-config"
cp -a "$prefix" "$temporary/moved"
expect_same "$(c_consumer_energy "$temporary/moved")" "$energy"
libraries=$(library_dir "$temporary/moved")
model=$source_dir/tests/golden/mace/p03_mace_plain_l1.model
# shellcheck disable=SC2046
"$CC" "$source_dir/examples/mace_wrapper/water.c" -o "$temporary/water" $(PKG_CONFIG_PATH=$libraries/pkgconfig pkg-config --cflags --libs mace_wrapper)
expect_same "$(LD_LIBRARY_PATH=$libraries "$temporary/water" "$model")" "$("$temporary/consumer/consumer_wrapper" "$model")"

if has gfortran; then
    echo "the Fortran module, as its README has it: full arrays, and both ways of failing"
    sources=$temporary/moved/share/mlff/fortran
    flags=$(PKG_CONFIG_PATH=$libraries/pkgconfig pkg-config --libs mlff)
    sed -n '/^```fortran$/,/^```$/p' "$sources/README.md" | sed '/^```/d' >"$temporary/example.f90"
    for name in "$temporary/example.f90" "$sources/water.f90"; do
        # shellcheck disable=SC2086
        gfortran -std=f2008 -Wall -Wextra -Werror -J "$temporary" "$sources/mlff.f90" "$name" -o "$temporary/$(basename "$name" .f90)" $flags
    done
    printf '3\nLattice="9 0 0 0 9 0 0 0 9" pbc="T T T"\nO 0 0 0\nH 0.96 0 0\nH -0.24 0.93 0\n3\nLattice="9 0 0 1 9 0 0 0.5 9" pbc="T T T"\nO 0 0 0\nH 0.96 0 0\nH -0.24 0.93 0\n' >"$temporary/boxes.xyz"
    "$prefix/bin/mlff" eval "$temporary/boxes.xyz" --device cpu --precision fp64 --json "$temporary/boxes.json" >/dev/null
    LD_LIBRARY_PATH=$libraries "$temporary/example" >"$temporary/example.txt"
    LD_LIBRARY_PATH=$libraries "$temporary/water" >"$temporary/water.txt"
    python3 - "$temporary" <<'PYTHON' || fail "numbers of Fortran differ"
import json, re, sys
frames = json.load(open(sys.argv[1] + "/boxes.json"))["frames"]
for name, frame in ("example", frames[0]), ("water", frames[1]):
    text = open(f"{sys.argv[1]}/{name}.txt").read()
    found = [float(x) for x in re.findall(r"-?\d*\.\d{8}\b", text)]
    expected = [frame["energy"], *(x for force in frame["forces"] for x in force), *frame["stress"]]
    assert len(found) == len(expected) == 16, (found, expected)
    assert any(abs(x) > 0.1 for x in expected[1:10]) and any(abs(x) > 1e-5 for x in expected[10:])
    for x, y in zip(found, expected):
        assert abs(x - y) <= 6e-9, (x, y)
assert "atom 0 is U, which the model does not know" in open(sys.argv[1] + "/example.txt").read()
(drift,) = re.findall(r"drift +(\S+) eV", text)
assert abs(float(drift)) <= 1e-4, drift
PYTHON
    LD_LIBRARY_PATH=$libraries expect_exit 1 "$temporary/water" /no/such.model
    expect_text "$(cat "$temporary/output")" "/no/such.model: cannot open the file"
else
    echo "no gfortran: the Fortran module is not tried"
fi

echo "a file of a stranger in our way is not overwritten"
mkdir -p "$temporary/taken/bin"
echo "not ours" >"$temporary/taken/bin/mlff"
expect_exit 3 "$scripts/install" --prefix "$temporary/taken"
expect_same "$(cd "$temporary/taken" && find . | sort | tr '\n' ' ')" ". ./bin ./bin/mlff "
mv "$temporary/taken/bin/mlff" "$temporary/taken/bin/mlff-train"
expect_exit 3 "$scripts/install" --trainer --prefix "$temporary/taken"
expect_same "$(cd "$temporary/taken" && find . | sort | tr '\n' ' ')" ". ./bin ./bin/mlff-train "

echo "mlff distill names the command that puts the trainer beside it"
write_water "$temporary/water.xyz"
expect_exit 3 env PATH="$temporary" "$prefix/bin/mlff" distill "$temporary/water.xyz" --teacher builtin --output "$temporary/student"
expect_text "$(cat "$temporary/output")" "scripts/install --trainer --prefix '$prefix'"

echo "uninstall"
echo "not ours" >"$prefix/share/mlff/stranger"
expect_exit 0 "$scripts/uninstall" --prefix "$prefix"
[[ -f $prefix/share/mlff/stranger ]] || fail "the file of a stranger was removed"
rm -r "$prefix/share/mlff"
expect_same "$(listing "$prefix")" "$before"

echo "a prefix that install made goes with it"
expect_exit 0 "$scripts/install" --prefix "$temporary/new"
expect_exit 0 "$scripts/uninstall" --prefix "$temporary/new"
[[ ! -e $temporary/new ]] || fail "left behind: $(find "$temporary/new")"

echo "a manifest that leads out of the prefix"
mkdir -p "$temporary/evil/share/mlff"
echo "../a prefix/bin/stranger" >"$temporary/evil/share/mlff/install_manifest.txt"
expect_exit 3 "$scripts/uninstall" --prefix "$temporary/evil"
expect_same "$(listing "$prefix")" "$before"
