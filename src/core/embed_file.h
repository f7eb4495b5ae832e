// SPDX-License-Identifier: MIT
// Embeds files in the library. The assembler copies the bytes, so this costs no compile time. It works with gcc and
// clang on every ELF platform.
//
//   MLFF_EMBED_FILE(mlff_water, "/path/water.xyz")      at namespace scope, once per symbol in the program
//   MLFF_EMBEDDED(mlff_water)                            the bytes, a std::span<const std::byte>
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
