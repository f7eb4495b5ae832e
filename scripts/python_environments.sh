# SPDX-License-Identifier: MIT
# Environments for Python models: made and removed by scripts/install and scripts/uninstall. Sourced after common.sh, never run.

environment_locks=$root/python-environments
environment_marker=made_by_mlff_install.txt # says that the folder is ours

# What cmake found to embed; empty if nothing.
embedded_python() { sed -nE 's/^MLFF_EMBEDDED_PYTHON:INTERNAL=(.+)/\1/p' "$build_dir/CMakeCache.txt"; }
has_python_models() { [[ -n $(embedded_python) ]]; }

check_environment_name() {
    local known
    known=$(cd "$environment_locks" && printf '%s ' *.lock)
    [[ $1 =~ ^[a-z0-9-]+$ && -f $environment_locks/$1.lock ]] ||
        die 2 "--python $1: there are pinned versions for ${known//.lock/}only; an environment of your own can be named with ?env=PATH"
}

# check_environment_place PREFIX: a Python of the user's is not the place
check_environment_place() {
    [[ -z ${VIRTUAL_ENV:-} || $1/ != "$(realpath -m -- "$VIRTUAL_ENV")"/* ]] ||
        die 2 "$1 is the active virtual environment, which is yours; choose another --prefix or deactivate it"
    [[ ! -f $1/pyvenv.cfg && ! -d $1/conda-meta ]] || die 2 "$1 is a Python environment of its own; choose another --prefix"
}

need_python_for_environments() {
    has_python_models || die 2 "this mlff was built without Python models: install python3-dev and pybind11-dev and remove $build_dir"
    need_venv "$(embedded_python)"
}
# need_venv PYTHON
need_venv() {
    "$1" -I -c 'import ensurepip, venv' 2>/dev/null || want venv "environments cannot be made" python3-venv
    "$1" -I -c 'import ensurepip, venv' 2>/dev/null || die 2 "$1 cannot make environments; on Debian and Ubuntu: sudo apt-get install python3-venv"
}

# Without the settings of the user's Python and pip that would lead elsewhere.
in_clean_environment() { env -u PYTHONHOME -u PYTHONPATH -u PYTHONSTARTUP -u PIP_USER -u PIP_TARGET -u PIP_PREFIX -u VIRTUAL_ENV PYTHONNOUSERSITE=1 "$@"; }

# install_locked_packages PYTHON FOLDER LOCK LOG [PIP_OPTION...]: a new environment in FOLDER; shows the end of LOG if that fails
install_locked_packages() {
    in_clean_environment "$1" -I -m venv "$2" >"$4" 2>&1 &&
        in_clean_environment "$2/bin/python3" -I -m pip --require-virtualenv --disable-pip-version-check --no-input install "${@:5}" --requirement "$3" >>"$4" 2>&1 </dev/null || {
        tail -n 20 "$4" >&2
        return 1
    }
}

# environment_pip_options NAME: words for pip; tblite is built from source where it has no wheel, and the tests of one of its parts want a download
environment_pip_options() { [[ $1 != tblite ]] || echo --config-settings=setup-args=-Dtoml-f:tests=false; }

# need_compilers_for_environment NAME
need_compilers_for_environment() {
    [[ $1 == tblite && $(uname -m) != x86_64 ]] || return 0
    has gfortran || want tblite "tblite cannot be built" gfortran liblapack-dev
    has gfortran || die 2 "--python tblite: there is no wheel for $(uname -m), and building it needs gfortran, a LAPACK and minutes; on Debian and Ubuntu: sudo apt-get install gfortran liblapack-dev"
}

# make_environment PREFIX NAME
make_environment() {
    local folder=$1/share/mlff/python/$2 log=$log_dir/python-$2.log python
    python=$(embedded_python)
    [[ ! -e $folder || -f $folder/$environment_marker ]] || die 3 "$folder is there already and not from scripts/install; remove it first"
    need_compilers_for_environment "$2"
    say "making the environment $2, which takes minutes"
    rm -rf -- "$folder"
    mkdir -p "$folder" "$log_dir" || die 3 "cannot write to $folder"
    echo "mlff $(cat "$root/VERSION"), $2.lock" >"$folder/$environment_marker"
    # shellcheck disable=SC2046
    install_locked_packages "$python" "$folder" "$environment_locks/$2.lock" "$log" $(environment_pip_options "$2") || {
        remove_environment "$1" "$2" >/dev/null
        die 1 "the environment $2 could not be made; all of the output is in $log"
    }
    check_environment "$1" "$2" || {
        remove_environment "$1" "$2" >/dev/null
        die 1 "the environment $2 was made, but does not work, and was removed"
    }
    echo "made the environment $folder: $(environment_example "$2")"
}

environment_example() {
    case $1 in
        mace) echo "mlff eval FILE.xyz --model python:mace:FILE.model" ;;
        mace-cueq) echo "mlff eval FILE.xyz --model 'python:mace:FILE.model?cueq=1'" ;;
        orb) echo "mlff eval FILE.xyz --model 'python:orb?weights_path=FILE.ckpt'" ;;
        fennol) echo "mlff eval FILE.xyz --model 'python:fennol?model=FILE.fnx'" ;;
        *) echo "mlff eval FILE.xyz --model python:$1" ;;
    esac
}

# check_environment PREFIX NAME: the energy of a water molecule through the installed command, beside that of native MACE, or of the package by itself
check_environment() (
    mlff=$1/bin/mlff
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    printf '3\nLattice="9 0 0 0 9 0 0 0 9" pbc="T T T"\nO 0 0 0\nH 0.9572 0 0\nH -0.239987 0.926627 0\n' >"$folder/water.xyz"
    # energy MODEL...: sets `found`
    energy() {
        "$mlff" eval "$folder/water.xyz" --device cpu --model "$@" --json "$folder/out.json" >/dev/null && found=$(sed -nE 's/.*"energy":(-?[0-9.]+).*/\1/p' "$folder/out.json")
    }
    limit=2e-6 # eV, for packages that compute in float32
    case $2 in
        mace | mace-cueq)
            limit=1e-7
            model=$root/tests/golden/mace/p09_l2_ell3.model option=
            [[ $2 == mace ]] || option='&cueq=1'
            energy "$model" --precision fp64 --exact-radial || return 1
            expected=$found
            energy "python:mace:$model?env=$2$option" --precision fp64 || return 1
            ;;
        *)
            line=$(in_clean_environment "$1/share/mlff/python/$2/bin/python3" -I "$environment_locks/check.py" "$2" "$folder" 2>"$folder/log") || {
                tail -n 5 "$folder/log" >&2
                return 1
            }
            read -r model expected <<<"$line"
            [[ $model == *\?* ]] && model+="&env=$2" || model+="?env=$2"
            energy "$model" || return 1
            ;;
    esac
    awk -v found="$found" -v expected="$expected" -v limit="$limit" 'BEGIN { difference = found - expected; exit !(found != "" && expected != "" && difference < limit && difference > -limit) }' ||
        { say "its energy of a water molecule is '$found' eV, expected $expected"; return 1; }
    say "checked: a water molecule has $found eV"
    [[ $2 != mace-cueq ]] || say "cuEquivariance was checked on the CPU, where it runs without its CUDA kernels"
    case $2 in orb | fennol) say "it brings no weights: those of the check were not trained" ;; esac
)

# remove_environment PREFIX NAME
remove_environment() {
    local folder=$1/share/mlff/python/$2
    [[ $2 =~ ^[a-z0-9-]+$ && -f $folder/$environment_marker ]] || die 3 "$folder is not an environment of scripts/install"
    rm -rf -- "$folder" || die 3 "cannot remove $folder"
    rmdir --ignore-fail-on-non-empty -- "$1/share/mlff/python" 2>/dev/null || true
    echo "removed the environment $folder"
}
remove_all_environments() {
    local marker
    for marker in "$1"/share/mlff/python/*/"$environment_marker"; do
        [[ ! -f $marker ]] || remove_environment "$1" "$(basename "$(dirname "$marker")")"
    done
}
