# SPDX-License-Identifier: MIT
# Common parts of the scripts: packages, configuration, quiet builds. Sourced, never run.

root=$(cd "${BASH_SOURCE[0]%/*}/.." && pwd)
build_dir=${MLFF_BUILD_DIR:-$root/build/release}
log_dir=$root/build/log
whole_build=(mlff mace_wrapper mlff_command) # targets: the libraries, the command and the modules that they load

say() { printf '%s\n' "$*" >&2; }
# die EXIT_CODE MESSAGE
die() {
    say "${0##*/}: ${*:2}"
    exit "$1"
}

# The comment at the top of a script is its help.
show_help() {
    local line
    while IFS= read -r line && [[ $line == '#'* ]]; do
        [[ $line == '#!'* || $line == '# SPDX'* ]] && continue
        line=${line#'#'}
        printf '%s\n' "${line# }"
    done <"$0"
}
bad_option() { die 2 "unknown option '$1' (try '${0##*/} --help')"; }
# option_value OPTION [VALUE]: for options that need one
option_value() {
    [[ $# -ge 2 && -n $2 ]] || die 2 "$1 needs a value (try '${0##*/} --help')"
    printf '%s\n' "$2"
}

has() { command -v "$1" >/dev/null; }

# What building for another architecture and running it under qemu takes: GNU's name, qemu's and Debian's of aarch64 or x86-64.
emulated_names() {
    case $1 in
        aarch64) echo aarch64-linux-gnu aarch64 arm64 ;;
        x86-64) echo x86_64-linux-gnu x86_64 amd64 ;;
        *) return 1 ;;
    esac
}
# Whether a C++ program with zlib can be built for it and run: can_run_emulated TRIPLET QEMU_NAME
can_run_emulated() {
    local directory emulator program='#include <iostream>
        #include <zlib.h>
        int main() { std::cout << zlibVersion(); }'
    emulator=$(command -v "qemu-$2" || command -v "qemu-$2-static") || return
    directory=$(mktemp -d)
    local status=0
    { "$1-g++" -x c++ - -lz -o "$directory/probe" <<<"$program" && "$emulator" "$directory/probe"; } >/dev/null 2>&1 || status=1
    rm -r "$directory"
    return $status
}

# Prints the Debian packages that are missing for a purpose: demo (the command alone), build, test, package, or aarch64 or
# x86-64 (tests under qemu).
missing_packages() {
    local -a compiler
    local compiler_package=build-essential headers='nlohmann/json.hpp=nlohmann-json3-dev CLI/CLI.hpp=libcli11-dev eigen3/Eigen/Core=libeigen3-dev' pair probe=
    read -ra compiler <<<"${CXX:-g++}"
    local triplet machine debian
    if read -r triplet machine debian < <(emulated_names "$1"); then
        compiler=("$triplet-g++")
        [[ $(uname -m) == "$machine" ]] || compiler_package=g++-${triplet//_/-}
        has "qemu-$machine" || has "qemu-$machine-static" || echo qemu-user
        can_run_emulated "$triplet" "$machine" || printf '%s\n' "zlib1g-dev:$debian" "libstdc++6:$debian"
    else
        headers+=' zlib.h=zlib1g-dev'
    fi
    has "${compiler[0]}" || echo "$compiler_package"
    has cmake || echo cmake
    has ninja || echo ninja-build
    if [[ $1 == test || -n $triplet ]]; then
        headers+=' doctest/doctest.h=doctest-dev'
        has python3 || echo python3
    fi
    if [[ $1 == test ]]; then
        has pkg-config || echo pkg-config
        has curl || echo curl
        [[ ${needs_browser:-0} -eq 0 ]] || has chromium || has chromium-browser || has google-chrome || echo chromium
    fi
    if [[ $1 == test || $1 == package ]] && has dpkg; then
        has dpkg-shlibdeps || echo dpkg-dev
        has file || echo file
    fi
    for pair in $headers; do probe+="#if !__has_include(<${pair%=*}>)"$'\n'"${pair#*=}"$'\n#endif\n'; done
    local includes=${CMAKE_PREFIX_PATH:+${CMAKE_PREFIX_PATH//:/\/include:}/include}
    if has "${compiler[0]}"; then
        CPLUS_INCLUDE_PATH=$includes "${compiler[@]}" -E -P -x c++ - <<<"$probe"
    else
        for pair in $headers; do echo "${pair#*=}"; done
    fi
}

# What mlff can do without: spglib (symmetry of crystals), HDF5 (H5MD trajectories), gfortran, valgrind and clang-format (parts of tests), what pip needs to build (the test of the Python package).
has_spglib() { echo '#include <spglib.h>' | ${CXX:-g++} -E -x c++ - >/dev/null 2>&1; }
has_hdf5() { echo '#include <hdf5.h>' | ${CXX:-g++} -E -x c++ -isystem /usr/include/hdf5/serial - >/dev/null 2>&1; }
can_build_for_python() {
    python3 -c 'import ensurepip, os, sysconfig; os.stat(os.path.join(sysconfig.get_path("include"), "Python.h"))' 2>/dev/null
}
# Nor does it need Python: only models that are Python programs do. Their tests use numpy.
has_embeddable_python() {
    local include
    include=$(/usr/bin/python3 -I -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null) &&
        printf '#include <Python.h>\n#include <pybind11/embed.h>\n' | ${CXX:-g++} -E -x c++ -isystem "$include" - >/dev/null 2>&1 &&
        { [[ $1 != test ]] || /usr/bin/python3 -I -c 'import numpy' 2>/dev/null; }
}
# want NAME CONSEQUENCE PACKAGE...: installed where that is possible; tried once.
want() {
    local log=$log_dir/want-$1.log
    [[ $EUID -eq 0 && ! -f $log ]] && has apt-get || return 0
    say "installing ${*:3}"
    mkdir -p "$log_dir"
    { apt-get update || true; DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${@:3}"; } >"$log" 2>&1 </dev/null ||
        say "apt-get could not install ${*:3}: $2"
}
want_optional_packages() {
    [[ $1 != demo ]] && ! emulated_names "$1" >/dev/null || return 0
    has_spglib || want spglib "mlff phonons will know only translations" libsymspg-dev
    has_hdf5 || want hdf5 "mlff will be built without H5MD trajectories" libhdf5-dev
    local python_packages=(python3-dev pybind11-dev)
    [[ $1 != test ]] || python_packages+=(python3-numpy)
    has_embeddable_python "$1" || want python "mlff will be built without Python models" "${python_packages[@]}"
    [[ $1 == test ]] || return 0
    has clang-format || want clang-format "the layout of the sources will not be checked" clang-format
    has gfortran || want gfortran "the Fortran examples will not be tested" gfortran
    has valgrind || want valgrind "memory of the drop-in will not be checked and instructions not counted" valgrind
    [[ ${needs_python:-0} -eq 0 ]] || can_build_for_python || want python-package "the test of the Python package will be skipped" python3-venv python3-dev
}

# Installs what is missing where that is possible (root, apt-get); otherwise says what is needed.
need_packages() {
    want_optional_packages "$1"
    local missing
    mapfile -t missing < <(missing_packages "$1" | sed '/^$/d')
    [[ ${#missing[@]} -gt 0 ]] || return 0
    local foreign='' triplet machine debian
    if read -r triplet machine debian < <(emulated_names "$1") && [[ ${missing[*]} == *:$debian* && $(uname -m) != "$machine" ]]; then foreign=$debian; fi
    if [[ $EUID -ne 0 ]] || ! has apt-get; then
        local first=
        [[ -z $foreign ]] || first="sudo dpkg --add-architecture $foreign && sudo apt-get update && "
        die 2 "these packages are needed (by their Debian names): ${missing[*]}
On Debian and Ubuntu:  ${first}sudo apt-get install ${missing[*]}"
    fi
    say "installing ${missing[*]}"
    mkdir -p "$log_dir"
    local log=$log_dir/packages.log
    [[ -z $foreign ]] || dpkg --add-architecture "$foreign"
    apt-get update >"$log" 2>&1 </dev/null || true
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" >>"$log" 2>&1 </dev/null ||
        die 2 "apt-get could not install ${missing[*]}; its words are in $log"
}

# Not where the cmake and ninja of the configuration are gone, as those that pip brings for the time of a build.
is_configured() {
    [[ -f $1/build.ninja || -f $1/Makefile ]] || return
    local program
    while IFS= read -r program; do command -v -- "$program" >/dev/null || return; done < <(sed -nE 's/^CMAKE_(COMMAND|MAKE_PROGRAM):[A-Z]+=//p' "$1/CMakeCache.txt")
}

# ---- CUDA: compiled where there is a GPU, or on demand. It takes most of the time of a build. ----

cuda=auto # on: --cuda was given

# Cheap, as scripts/run asks each time: files of NVIDIA's driver, or those of WSL 2.
has_gpu() { compgen -G '/proc/driver/nvidia/gpus/*' >/dev/null || compgen -G '/dev/nvidia[0-9]*' >/dev/null || [[ -e /dev/dxg && -e /usr/lib/wsl/lib/libcuda.so.1 ]]; }
find_nvcc() {
    local candidate
    for candidate in "${CUDACXX:-}" "$(command -v nvcc || true)" "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" /usr/local/cuda/bin/nvcc; do
        [[ ! -x $candidate ]] || { printf '%s' "$candidate" && return; }
    done
}
wants_cuda() { [[ $cuda == on ]] || has_gpu; }
is_cuda_off() { grep -q '^MLFF_CUDA:BOOL=OFF' "$1/CMakeCache.txt"; }
# For the GPUs of this machine only, where nvidia-smi names them and CUDAARCHS says nothing else.
gpu_architectures() {
    local smi
    smi=$(find_nvidia_smi)
    [[ -z $smi ]] || "$smi" --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sed -nE 's/^([0-9]+)\.([0-9]+)$/\1\2-real/p' | sort -u | paste -sd';'
}
# Prints the options of cmake, and says why there is no CUDA.
cuda_options() {
    local architectures=
    if ! wants_cuda; then
        [[ -z $(find_nvcc) ]] || say "no GPU here: building without CUDA (--cuda builds it all the same)"
        echo -DMLFF_CUDA=OFF
        return
    fi
    [[ -n $(find_nvcc) ]] || say "no nvcc found: building without CUDA (install the CUDA toolkit, or put nvcc on PATH)"
    echo -DMLFF_CUDA=ON
    [[ -n ${CUDAARCHS:-} ]] || architectures=$(gpu_architectures)
    [[ -z $architectures ]] || echo "-DCMAKE_CUDA_ARCHITECTURES=$architectures"
}

# Looks for packages only when nothing is built yet or these files have changed: an up-to-date tree starts at once.
prepare() {
    local stamp=$build_dir/packages-$1.stamp file
    if is_configured "$build_dir" && [[ -f $stamp ]]; then
        local is_fresh=1
        for file in "$root"/scripts/common.sh "$root"/CMakeLists.txt "$root"/*/CMakeLists.txt "$root"/cmake/*; do
            [[ ! $file -nt $stamp ]] || is_fresh=0
        done
        [[ $is_fresh -eq 0 ]] || ! wants_cuda || ! is_cuda_off "$build_dir" || is_fresh=0
        [[ $is_fresh -eq 0 ]] || return 0
    fi
    need_packages "$1"
    if ! is_configured "$build_dir"; then
        configure release "$build_dir" -DMLFF_TESTS=OFF
    elif wants_cuda && is_cuda_off "$build_dir"; then
        configure release "$build_dir"
    elif [[ ! -f $stamp && -f $build_dir/packages-demo.stamp ]]; then
        cmake "$build_dir" >"$log_dir/configure-again.log" 2>&1 || die 2 "cmake could not configure $build_dir again" # finds libraries of modules
    fi
    : >"$stamp"
}

# configure PRESET DIRECTORY [-DOPTION=VALUE...]
configure() {
    local log=$log_dir/configure-$1.log
    local -a options=("${@:3}") more
    mkdir -p "$log_dir"
    if [[ $1 == release ]]; then
        mapfile -t more < <(cuda_options)
        options=("${more[@]}" "${options[@]}")
        if wants_cuda && [[ -n $(find_nvcc) ]]; then # cmake looks on PATH only
            CUDACXX=$(find_nvcc)
            export CUDACXX
        fi
    fi
    step "configuration"
    is_configured "$2" || rm -f "$2/CMakeCache.txt"
    (cd "$root" && cmake --preset "$1" -B "$2" "${options[@]}") >"$log" 2>&1 || {
        cat "$log" >&2
        die 2 "cmake could not configure $2"
    }
}

# step NAME: a line that says what begins
step() { say "== $1"; }
minutes() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }
# Reads the output of ninja: how far the build is and how long it will take, in one line that changes on a terminal, and
# in a line every 20 s elsewhere.
show_progress() {
    local line status percent text='' begin=$SECONDS said=$SECONDS
    while true; do
        status=0
        IFS= read -r -t 1 line || status=$?
        if [[ $status -gt 128 ]]; then
            line=
        elif [[ $status -ne 0 ]]; then
            break
        fi
        if [[ $line =~ ^\[\ *([0-9]+)/([0-9]+)\] ]]; then
            percent=$((100 * BASH_REMATCH[1] / BASH_REMATCH[2]))
            text="building: $percent % (${BASH_REMATCH[1]} of ${BASH_REMATCH[2]})"
            [[ $percent -eq 0 ]] || text+=", about $(minutes $(((SECONDS - begin) * (100 - percent) / percent))) left"
        fi
        [[ -n $text ]] || continue
        if [[ -t 2 ]]; then
            printf '\r\033[K%s, %s so far' "$text" "$(minutes $((SECONDS - begin)))" >&2
        elif ((SECONDS - said >= 20)); then
            said=$SECONDS
            say "$text"
        fi
    done
    [[ ! -t 2 || -z $text ]] || printf '\r\033[K' >&2
}

# build DIRECTORY [TARGET...]: shows progress, and what went wrong. One build at a time.
build() {
    local directory=$1 log=$log_dir/build-${1##*/}.log
    shift
    mkdir -p "$log_dir"
    if { flock 9 && cmake --build "$directory" ${1:+--target "$@"} 2>&1; } 9>"$directory/.lock" </dev/null | tee "$log.new" | show_progress; then
        if grep -q 'no work to do' "$log.new"; then rm -f "$log.new"; else mv "$log.new" "$log"; fi
        return 0
    fi
    mv "$log.new" "$log"
    if grep -qE '^FAILED:|^CMake Error|error:' "$log"; then
        sed -nE '/^FAILED:|^CMake Error|error:/,$p' "$log" >&2
    else
        tail -n 40 "$log" >&2
    fi
    die 1 "the build failed; all of its output is in $log"
}

# environment_folders [PREFIX]: where scripts/install puts Python environments, one folder per name, in the order of the
# search. The library has the same list (src/python_models/environment.h).
environment_folders() {
    [[ -z ${1:-} ]] || printf '%s\n' "$1/share/mlff/python"
    [[ -z ${HOME:-} ]] || printf '%s\n' "$HOME/.local/share/mlff/python"
    echo /usr/local/share/mlff/python
}
# find_environment NAME_OR_PATH [PREFIX]: its folder; nothing if there is none
find_environment() {
    local folder
    if [[ $1 == */* ]]; then
        [[ ! -x $1/bin/python3 ]] || printf '%s\n' "$1"
        return 0
    fi
    while IFS= read -r folder; do
        [[ ! -x $folder/$1/bin/python3 ]] || { printf '%s\n' "$folder/$1" && return; }
    done < <(environment_folders "${2:-}")
}

# The command of an up-to-date build.
mlff_program() { printf '%s\n' "$build_dir/apps/mlff/mlff"; }

# nvidia-smi, which WSL 2 keeps outside PATH; nothing if there is none.
find_nvidia_smi() { command -v nvidia-smi || { [[ -x /usr/lib/wsl/lib/nvidia-smi ]] && echo /usr/lib/wsl/lib/nvidia-smi; } || true; }
