# SPDX-License-Identifier: MIT
"""What a wheel contains, how large it is, and what its programs need of a machine: glibc and zlib alone, as for manylinux. Usage: check_wheel.py WHEEL"""
import os
import re
import subprocess
import sys
import tempfile
import zipfile

MOST_BYTES = 16_000_000
# What glibc has, and zlib; libmlff lies beside the module.
ALLOWED = re.compile(r"(lib(c|m|dl|rt|pthread)\.so\.\d|ld-linux[a-z0-9-]*\.so\.\d|libz\.so\.1|libmlff\.so\.\d)$")
WANTED = (r"mlff/__init__\.py", r"mlff/_core\..*so", r"mlff/libmlff\.so\.\d", r"mlff/include/mlff/mlff\.h", r"mlff/include/mlff/mlff\.hpp", r"mlff/py\.typed", r".*\.data/scripts/mlff",
          r".*\.data/data/share/man/man1/mlff\.1", r".*\.dist-info/licenses/LICENSE")


def readelf(*words):
    return subprocess.run(["readelf", "-W", *words], capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}).stdout


def faults_of_program(path, name):
    """What is wrong with one program or library, and the newest glibc that it asks for."""
    dynamic = readelf("-d", path)
    faults = [f"{name} needs {needed}" for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic) if not ALLOWED.match(needed)]
    faults += [f"{name} looks for libraries in {folder}" for folder in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic) if folder != "$ORIGIN"]
    if re.search(r"\.symtab", readelf("-S", path)):
        faults.append(f"{name} has symbols that only a debugger reads")
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", readelf("-V", path))
    return faults, max((tuple(map(int, version)) for version in versions), default=(0, 0))


def main(wheel):
    faults, newest, programs = [], (0, 0), 0
    size = os.path.getsize(wheel)
    if size > MOST_BYTES:
        faults.append(f"it has {size} bytes, more than {MOST_BYTES}")
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        names = archive.namelist()
        for pattern in WANTED:
            if len([name for name in names if re.fullmatch(pattern, name)]) != 1:
                faults.append(f"it has not one {pattern}")
        for name in names:
            data = archive.read(name)
            if data[:4] != b"\x7fELF":
                continue
            programs += 1
            path = os.path.join(folder, str(programs))
            with open(path, "wb") as file:
                file.write(data)
            found, version = faults_of_program(path, name)
            faults += found
            newest = max(newest, version)
    if programs != 3:
        faults.append(f"it has {programs} programs and libraries, expected the module, the library and the command")
    if newest[0] != 2:
        faults.append(f"its programs ask for glibc {newest}")
    for fault in faults:
        print(f"{os.path.basename(wheel)}: {fault}")
    print(f"{os.path.basename(wheel)}: {size / 1e6:.1f} MB, {len(names)} files, for machines with glibc {newest[0]}.{newest[1]} or later")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
