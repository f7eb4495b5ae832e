#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# scripts/run is mlff, with its exit codes and the caller's directory; every script has help and refuses unknown options.
source "$(dirname "${BASH_SOURCE[0]}")/helpers.sh"

for script in run app build test install uninstall package detect-env; do
    expect_exit 0 "$scripts/$script" --help
    expect_text "$(cat "$temporary/output")" "scripts/$script"
    expect_exit 2 "$scripts/$script" --no-such-option
    expect_text "$(cat "$temporary/output")" "$(if [[ $script == run ]]; then echo mlff:; else echo --no-such-option; fi)"
done
echo "progress of a build: percentage and time"
progress=$(source "$scripts/common.sh" && { for line in '[1/40] a' 'ninja: note' '[10/40] b'; do echo "$line" && sleep 0.1; done; sleep 21; } | show_progress 2>&1)
[[ $progress == 'building: 25 % (10 of 40), about '*' left' ]] || fail "progress was: $progress"

echo "CUDA code is compiled where there is a GPU, or on demand"
options=$(source "$scripts/common.sh" && has_gpu() { false; } && cuda_options 2>/dev/null)
expect_same "$options" -DMLFF_CUDA=OFF
options=$(source "$scripts/common.sh" && has_gpu() { false; } && find_nvidia_smi() { :; } && cuda=on && cuda_options 2>/dev/null)
expect_same "$options" -DMLFF_CUDA=ON
printf '#!/bin/sh\nprintf "9.0\\n8.6\\n9.0\\n"\n' >"$temporary/smi"
chmod +x "$temporary/smi"
options=$(unset CUDAARCHS && source "$scripts/common.sh" && has_gpu() { true; } && find_nvidia_smi() { echo "$temporary/smi"; } && cuda_options 2>/dev/null)
expect_same "$options" $'-DMLFF_CUDA=ON\n-DCMAKE_CUDA_ARCHITECTURES=86-real;90-real'

echo "the demonstration wants no optional packages; other uses do"
wanted() (source "$scripts/common.sh" && has_hdf5() { false; } && has_embeddable_python() { false; } && want() { echo "$1"; } && want_optional_packages "$1")
expect_same "$(wanted demo)" ""
expect_same "$(wanted build)" $'hdf5\npython'

echo "a build folder whose ninja is gone, as that of a build by pip, is configured again"
is_configured() (source "$scripts/common.sh" && is_configured "$temporary/build")
mkdir "$temporary/build"
! is_configured || fail "an empty folder is configured"
touch "$temporary/build/build.ninja"
printf 'CMAKE_COMMAND:INTERNAL=/bin/sh\nCMAKE_MAKE_PROGRAM:FILEPATH=/bin/sh\n' >"$temporary/build/CMakeCache.txt"
is_configured || fail "a configured folder is not"
printf 'CMAKE_COMMAND:INTERNAL=/bin/sh\nCMAKE_MAKE_PROGRAM:FILEPATH=%s/gone\n' "$temporary" >"$temporary/build/CMakeCache.txt"
! is_configured || fail "a folder without its ninja is configured"

for script in install uninstall; do
    expect_exit 2 "$scripts/$script" --prefix
    expect_exit 2 "$scripts/$script" --python
done

echo "environments for Python models: only known ones, and never in a Python of the user"
expect_exit 2 "$scripts/install" --prefix "$temporary/none" --python no-such-model
expect_text "$(cat "$temporary/output")" "pinned versions for"
expect_exit 2 "$scripts/install" --prefix "$temporary/none" --python ../mace
for lock in "$source_dir"/python-environments/*.lock; do
    name=$(basename "$lock" .lock)
    [[ $name == mace* ]] || grep -q "^def $name(folder):" "$source_dir/python-environments/check.py" || fail "$name.lock has no check in check.py"
    grep -qF "| \`$name\` |" "$source_dir/docs/python-teachers.md" || fail "$name is not in docs/python-teachers.md"
    strangers=$(sed 's/ *#.*//; /^$/d' "$lock" | grep -vE '^[A-Za-z0-9_.-]+==[A-Za-z0-9_.+!-]+( *;.*)?$' || true)
    [[ -z $strangers ]] || fail "$name.lock does not pin: $strangers"
    expect_text "$(cat "$temporary/output")" " $name "
done
mkdir -p "$temporary/venv/share/mlff/python/mine/bin" "$temporary/conda/conda-meta"
touch "$temporary/venv/pyvenv.cfg"
expect_exit 2 env VIRTUAL_ENV="$temporary/venv" "$scripts/install" --prefix "$temporary/venv/inside" --python mace
expect_text "$(cat "$temporary/output")" "active virtual environment"
for place in venv conda; do
    for what in "--python mace" --trainer; do
        # shellcheck disable=SC2086
        expect_exit 2 env -u VIRTUAL_ENV "$scripts/install" --prefix "$temporary/$place" $what
        expect_text "$(cat "$temporary/output")" "a Python environment of its own"
    done
done
expect_exit 3 "$scripts/uninstall" --prefix "$temporary/venv" --python mine
expect_text "$(cat "$temporary/output")" "not an environment of scripts/install"
[[ -d $temporary/venv/share/mlff/python/mine/bin && ! -e $temporary/none ]] || fail "a folder of the user was touched"
expect_exit 2 "$scripts/package" --output
expect_exit 2 "$scripts/test" --filter

echo "scripts/run: exit codes, relative paths, clean standard output"
mkdir "$temporary/elsewhere"
write_water "$temporary/elsewhere/water.xyz"
cd "$temporary/elsewhere"
expect_exit 0 "$scripts/run" eval water.xyz --device cpu --output result.xyz
[[ -s result.xyz ]] || fail "a relative output path went astray"
"$scripts/run" eval water.xyz --device cpu --json - 2>/dev/null | python3 -m json.tool >/dev/null
expect_exit 3 "$scripts/run" eval not_there.xyz
expect_exit 2 "$scripts/run" eval
expect_exit 0 "$scripts/run"
expect_text "$(cat "$temporary/output")" water

echo "scripts/run starts fast when there is nothing to build"
best=100000
for _ in 1 2 3; do
    time=$(time_of "$scripts/run" --version)
    [[ $time -ge $best ]] || best=$time
done
echo "$best ms"
[[ $best -lt 1500 ]] || fail "scripts/run --version took $best ms"

if [[ $("$scripts/detect-env") =~ gpu\ +none ]]; then
    echo "scripts/test --gpu without a GPU"
    expect_exit 4 "$scripts/test" --gpu
fi
