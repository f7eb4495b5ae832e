# SPDX-License-Identifier: MIT
# AArch64 Linux with Debian's compiler for it, programs run by qemu. CMAKE_SYSTEM_NAME makes it a cross build on an AArch64
# machine too, where the same compiler is the native one: tests run under qemu everywhere.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
find_program(MLFF_QEMU_AARCH64 NAMES qemu-aarch64 qemu-aarch64-static REQUIRED)
set(CMAKE_CROSSCOMPILING_EMULATOR ${MLFF_QEMU_AARCH64})
