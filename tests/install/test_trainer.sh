#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# scripts/install --trainer and what scripts/uninstall leaves of it: nothing. Usage: test_trainer.sh install|uninstall PREFIX; tests of tests/train run in between.
source "$(dirname "${BASH_SOURCE[0]}")/helpers.sh"
prefix=$2
libraries=$prefix/share/mlff/trainer

if [[ $1 == uninstall ]]; then
    expect_exit 0 "$scripts/uninstall" --prefix "$prefix"
    [[ ! -e $prefix ]] || fail "left behind: $(find "$prefix" | head)"
    exit
fi

[[ ! -e $prefix ]] || "$scripts/uninstall" --prefix "$prefix" # of a test that was stopped
echo "install: a LibTorch of its own, and a training as check"
status=0
"$scripts/install" --trainer --prefix "$prefix" 2>&1 </dev/null | tee "$temporary/output" || status=$?
if [[ $status -ne 0 ]] && grep -q "LibTorch could not be installed" "$temporary/output" && ! python3 -m pip download --quiet --no-deps --dest "$temporary" six >/dev/null 2>&1; then
    skip "pip reaches no package index"
fi
expect_same "$status" 0
expect_text "$(cat "$temporary/output")" "checked: a student was trained"
manifest=$prefix/share/mlff/install_manifest.txt
sort -c "$manifest"
grep -qxF bin/mlff-train "$manifest" || fail "mlff-train is not in the manifest"
[[ -f $libraries/made_by_mlff_install.txt ]] || fail "no $libraries"

echo "moved as a whole, it still finds LibTorch"
mv "$prefix" "$prefix-moved"
version=$("$prefix-moved/bin/mlff-train" --version) || { mv "$prefix-moved" "$prefix" && fail "it does not start elsewhere"; }
mv "$prefix-moved" "$prefix"
expect_text "$version" "$(cat "$source_dir/VERSION")"

echo "installing mlff again keeps the trainer"
expect_exit 0 "$scripts/install" --prefix "$prefix"
sort -c "$manifest"
grep -qxF bin/mlff-train "$manifest" || fail "mlff-train went from the manifest"
[[ -x $prefix/bin/mlff-train && -f $libraries/made_by_mlff_install.txt ]] || fail "mlff-train went"
