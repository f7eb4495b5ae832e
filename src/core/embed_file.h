// SPDX-License-Identifier: MIT
// Files that become part of the library. The assembler copies them: no time to compile, and the same for gcc and clang
// on every ELF machine.
//
//   MLFF_EMBED_FILE(mlff_water, "/path/water.xyz")      at namespace scope, once in the program for each symbol
//   MLFF_EMBEDDED(mlff_water)                            its bytes, a std::span<const std::byte>
#pragma once

#include <cstddef>
#include <span>

#define MLFF_EMBED_FILE(symbol, path)                                   \
    asm(".pushsection .rodata\n.balign 64\n"                            \
        ".hidden " #symbol "_begin\n.globl " #symbol "_begin\n" #symbol \
        "_begin:\n"                                                     \
        ".incbin \"" path                                               \
        "\"\n"                                                          \
        ".hidden " #symbol "_end\n.globl " #symbol "_end\n" #symbol     \
        "_end:\n"                                                       \
        ".popsection\n");                                               \
    extern "C" __attribute__((visibility("hidden"))) const std::byte symbol##_begin[], symbol##_end[];

#define MLFF_EMBEDDED(symbol) (std::span<const std::byte>(symbol##_begin, symbol##_end))
