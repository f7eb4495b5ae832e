# SPDX-License-Identifier: MIT
# x86-64 Linux with Debian's compiler for it, programs run by qemu with everything that it emulates: AVX2 from version 7.2 on, never AVX-512.
# CMAKE_SYSTEM_NAME makes it a cross build on an x86-64 machine too.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER x86_64-linux-gnu-g++)
find_program(MLFF_QEMU_X86_64 NAMES qemu-x86_64 qemu-x86_64-static REQUIRED)
set(CMAKE_CROSSCOMPILING_EMULATOR ${MLFF_QEMU_X86_64} -cpu max)
