#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# scripts/detect-env: its JSON is valid whatever the machine has, and says what is there.
source "$(dirname "${BASH_SOURCE[0]}")/helpers.sh"
python=$(python3 -c 'import sys; print(sys.executable)') || skip "no python3"

# value EXPRESSION: of the report in $temporary/report.json
value() { "$python" -c "import json, sys; report = json.load(open(sys.argv[1])); print(($1))" "$temporary/report.json"; }
report() { env "$@" "$(command -v bash)" "$scripts/detect-env" --json >"$temporary/report.json"; }

echo "this machine"
report
"$python" -m json.tool "$temporary/report.json" >/dev/null
expect_same "$(value 'report["system"]')" Linux
expect_same "$(value 'report["architecture"]')" "$(uname -m)"
expect_same "$(value 'report["cores"]')" "$(nproc)"
expect_same "$(value 'report["cmake"] is not None and report["memory_bytes"] > 2**20 and len(report["pythons"]) > 0')" True
expect_exit 0 "$scripts/detect-env"
expect_text "$(cat "$temporary/output")" "$(uname -m)"

expect_same "$(value '[entry["name"] for entry in report["dependencies"] if entry["needed"] and not entry["found"]]')" "[]"
expect_same "$(value 'report["verdict"]')" "ready to build: scripts/run"
expect_text "$(cat "$temporary/output")" "found, for model files"
expect_text "$(cat "$temporary/output")" "ready to build: scripts/run"

echo "no program on PATH at all"
mkdir "$temporary/empty"
report -u CXX PATH="$temporary/empty"
"$python" -m json.tool "$temporary/report.json" >/dev/null
expect_same "$(value 'report["g++"], report["cmake"], report["valgrind"], report["pythons"]')" "(None, None, None, [])"
expect_same "$(value 'report["system"], report["memory_bytes"] > 2**20')" "('Linux', True)"
expect_same "$(value 'sum(entry["needed"] and not entry["found"] for entry in report["dependencies"])')" 7
expect_text "$(value 'report["verdict"]')" "build-essential cmake ninja-build zlib1g-dev nlohmann-json3-dev libcli11-dev libeigen3-dev"

echo "a header that is missing"
printf '#!/bin/sh\ninput=$(cat)\ncase $input in *CLI*) exit 1 ;; esac\n' >"$temporary/compiler"
chmod +x "$temporary/compiler"
report CXX="$temporary/compiler"
expect_same "$(value '[entry["name"] for entry in report["dependencies"] if entry["needed"] and not entry["found"]]')" "['CLI11']"
expect_text "$(value 'report["verdict"]')" " libcli11-dev"

echo "two GPUs, one with odd characters in its name, by a fake nvidia-smi"
mkdir "$temporary/fake"
cat >"$temporary/fake/nvidia-smi" <<'SMI'
#!/bin/sh
echo 'NVIDIA H200, 143771, 570.86.15'
printf 'Odd "GPU" \\ \303\251,\tInc, [N/A], 570.86.15\n'
SMI
chmod +x "$temporary/fake/nvidia-smi"
report PATH="$temporary/fake:/usr/bin:/bin"
expect_same "$(value 'report["gpus"][0]')" "{'name': 'NVIDIA H200', 'memory_mib': 143771}"
expect_text "$(PATH="$temporary/fake:/usr/bin:/bin" "$(command -v bash)" "$scripts/detect-env")" "NVIDIA H200, 150.7 GB"
expect_same "$(PYTHONIOENCODING=utf-8 value 'report["gpus"][1]["name"]')" $'Odd "GPU" \\ \303\251,\tInc'
expect_same "$(value 'report["gpus"][1]["memory_mib"], report["nvidia_driver"]')" "(None, '570.86.15')"

echo "a driver without a GPU, and one that fails"
printf '#!/bin/sh\necho "No devices were found"\nexit 6\n' >"$temporary/fake/nvidia-smi"
report PATH="$temporary/fake:/usr/bin:/bin"
expect_same "$(value 'report["gpus"]')" "[]"

echo "WSL"
wsl() {
    echo "$1" >"$temporary/version"
    report -u WSL_INTEROP PATH="$temporary/empty" MLFF_PROC_VERSION="$temporary/version" "${@:2}"
    value 'report["wsl"]'
}
expect_same "$(wsl 'Linux version 5.15.153.1-microsoft-standard-WSL2 (root@941d701f84f1)')" 2
expect_same "$(wsl 'Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com)')" 1
expect_same "$(wsl 'Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org)')" None
expect_same "$(wsl 'Linux version 6.6.0-custom (me@home)' WSL_INTEROP=/run/WSL/8_interop)" 2

echo "the traps of WSL 2"
names() { value '[trap["name"] for trap in report["traps"]]'; }
expect_same "$(wsl 'Linux version 5.15.153.1-microsoft-standard-WSL2' MLFF_WSL_FOLDER="$temporary/nowhere" >/dev/null && names)" "['wsl2-driver', 'wsl2-triton']"
mkdir -p "$temporary/wsl/lib"
: >"$temporary/wsl/lib/libcuda.so.1"
wsl 'Linux version 5.15.153.1-microsoft-standard-WSL2' MLFF_WSL_FOLDER="$temporary/wsl/lib" >/dev/null
expect_text "$(names)" wsl2-triton
[[ $(names) != *wsl2-driver* ]] || fail "the driver of Windows was not seen"
wsl 'Linux version 6.1.0-18-amd64' >/dev/null
expect_same "$(value '[trap for trap in report["traps"] if trap["name"].startswith("wsl")]')" "[]"

echo "a Python environment"
mkdir -p "$temporary/env/bin"
ln -s "$python" "$temporary/env/bin/python3"
report VIRTUAL_ENV="$temporary/env"
expect_same "$(value '[entry["path"] for entry in report["python_environments"] if entry["version"]][-1]')" "$temporary/env"

echo "the environments of mlff doctor, in its order: by MLFF_PYTHON_ENV, of scripts/install, the active one"
user=$temporary/home/.local/share/mlff/python
for name in b a second; do
    mkdir -p "$user/$name/bin"
    ln -s "$python" "$user/$name/bin/python3"
done
mkdir -p "$user/no_environment"
with_environments=(HOME="$temporary/home" MLFF_PYTHON_ENV=second VIRTUAL_ENV="$temporary/env")
report "${with_environments[@]}"
found=$(value '[entry["path"] for entry in report["python_environments"]]')
env "${with_environments[@]}" "$MLFF_BUILD_DIR/apps/mlff/mlff" doctor --json - >"$temporary/doctor.json" || [[ $? -eq 4 ]]
expect_same "$found" "$(python3 -c 'import json, sys; print([entry["folder"] for entry in json.load(open(sys.argv[1]))["python_environments"]])' "$temporary/doctor.json")"
expect_text "$found" "['$user/second', '$user/a', '$user/b'"
expect_text "$found" "'$temporary/env']"
