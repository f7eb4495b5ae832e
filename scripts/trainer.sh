# SPDX-License-Identifier: MIT
# mlff-train and its LibTorch: made by scripts/install --trainer, removed by scripts/uninstall. Sourced after python_environments.sh, never run.

trainer_lock=$root/src/train/torch.lock
trainer_build_dir=$build_dir/trainer
trainer_program=bin/mlff-train       # below the prefix, in the manifest
trainer_libraries=share/mlff/trainer # a Python environment, for its torch only: models do not look here

# The embedded Python, if there is one: it is known to have its parts.
trainer_python() { embedded_python | grep . || command -v python3 || die 2 "--trainer needs python3, whose pip brings LibTorch"; }

# check_trainer_place PREFIX: before anything is built
check_trainer_place() {
    check_environment_place "$1"
    [[ ! -e $1/$trainer_program ]] || grep -qsxF "$trainer_program" "$1/share/mlff/install_manifest.txt" ||
        die 3 "$1/$trainer_program is there already and not from an earlier scripts/install; remove it first"
    [[ ! -e $1/$trainer_libraries || -f $1/$trainer_libraries/$environment_marker ]] ||
        die 3 "$1/$trainer_libraries is there already and not from scripts/install; remove it first"
}

# make_trainer_libraries FOLDER: what is there already is kept if it is what would be made. PyPI's torch has CUDA and needs
# gigabytes of other packages. A CPU build of the same version, which pip prefers where its settings name an index or a
# folder that has one, needs none of its dependencies.
make_trainer_libraries() {
    local wanted python log=$log_dir/trainer-libraries.log
    wanted="mlff-train"$'\n'$(<"$trainer_lock")
    if [[ -f $1/$environment_marker && $(<"$1/$environment_marker") == "$wanted" ]] && "$1/bin/python3" -I -c "" 2>/dev/null; then return 0; fi
    python=$(trainer_python)
    need_venv "$python"
    say "installing LibTorch, hundreds of MB"
    local new=$1.new # what is there goes when this is whole
    rm -rf -- "$new"
    mkdir -p "$new" "$log_dir" || die 3 "cannot write to $new"
    local pip=(install_locked_packages "$python" "$new" "$trainer_lock" "$log" --no-compile)
    "${pip[@]}" --no-deps && {
        ! compgen -G "$new/lib*/python*/site-packages/torch/lib/libtorch_cuda.so" >/dev/null ||
            { say "installing the CUDA libraries that it needs, several GB" && "${pip[@]}"; }
    } || {
        rm -rf -- "$new"
        die 1 "LibTorch could not be installed: pip needs a package index that has $(grep '^torch==' "$trainer_lock") for $("$python" --version); all of its output is in $log"
    }
    printf '%s\n' "$wanted" >"$new/$environment_marker"
    rm -rf -- "$1"
    mv -- "$new" "$1"
}

# install_trainer PREFIX: after mlff itself, whose manifest gets one more line
install_trainer() {
    local manifest=$1/share/mlff/install_manifest.txt
    make_trainer_libraries "$1/$trainer_libraries"
    say "building mlff-train"
    configure release "$trainer_build_dir" -DMLFF_TESTS=OFF -DMLFF_TRAINER=ON -DCMAKE_INSTALL_PREFIX="$1" -DMLFF_TORCH_PYTHON="$1/$trainer_libraries/bin/python3"
    build "$trainer_build_dir" mlff_train
    cmake --install "$trainer_build_dir" --component trainer --strip >"$log_dir/trainer-install.log" || die 1 "cmake --install failed for mlff-train"
    printf '%s\n' "$(<"$manifest")" "$trainer_program" | LC_ALL=C sort -u -o "$manifest"
    check_trainer "$1" || die 1 "$1/$trainer_program was installed, but does not work; its output is above"
    echo "installed the trainer $1/$trainer_program: mlff distill STRUCTURES.xyz --teacher MODEL"
}

# check_trainer PREFIX: a student of a few frames, trained in seconds, and its energy of a water molecule
check_trainer() (
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    printf '3\n\nO 0 0 0\nH 0.9572 0 0\nH -0.239987 0.926627 0\n' >"$folder/water.xyz"
    { "$1/bin/mlff" distill "$folder/water.xyz" --teacher builtin --device cpu --output "$folder/student" --trainer "$1/$trainer_program" \
        --train-options "--steps 50 --hidden 32 --blocks 2 --radial 8 --batch 8 --validations 1" &&
        "$1/bin/mlff" eval "$folder/water.xyz" --model "$folder/student/student.safetensors" --device cpu; } >"$folder/log" 2>&1 </dev/null || {
        cat "$folder/log" >&2
        return 1
    }
    say "checked: a student was trained and gives energies"
)

# remove_trainer PREFIX: the program itself is in the manifest
remove_trainer() {
    [[ -f $1/$trainer_libraries/$environment_marker ]] || return 0
    rm -rf -- "${1:?}/$trainer_libraries" || die 3 "cannot remove $1/$trainer_libraries"
}
