/* SPDX-License-Identifier: MIT */
/* A plugin of qemu-user that counts instructions from each entry of mlff_counted() to the next of mlff_counted_end(),
 * as callgrind does natively, and prints one line "counted N" for each on standard error. scripts/bench-gate builds it.
 * Debian has no header for qemu's plugins: what is used of version 1 of that interface is declared here. */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void (*translated_callback)(uint64_t id, struct qemu_plugin_tb* block);
typedef void (*executed_callback)(unsigned processor, void* data);
enum { kAdd = 0, kNoRegisters = 0 };
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, translated_callback callback);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb* block, executed_callback callback, int flags,
                                          void* data);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb* block, int operation, void* number, uint64_t by);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb* block, size_t index);
const char* qemu_plugin_insn_symbol(const struct qemu_plugin_insn* instruction);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

static uint64_t executed, at_begin;
static bool is_counting;

static void begin(unsigned processor, void* data) {
    (void)processor, (void)data;
    if (is_counting) return; /* a later block of the same function */
    is_counting = true;
    at_begin = executed;
}

static void end(unsigned processor, void* data) {
    (void)processor, (void)data;
    if (is_counting) fprintf(stderr, "counted %" PRIu64 "\n", executed - at_begin);
    is_counting = false;
}

static void watch(uint64_t id, struct qemu_plugin_tb* block) {
    (void)id;
    const char* symbol = qemu_plugin_insn_symbol(qemu_plugin_tb_get_insn(block, 0));
    if (symbol && strcmp(symbol, "mlff_counted") == 0)
        qemu_plugin_register_vcpu_tb_exec_cb(block, begin, kNoRegisters, NULL);
    if (symbol && strcmp(symbol, "mlff_counted_end") == 0)
        qemu_plugin_register_vcpu_tb_exec_cb(block, end, kNoRegisters, NULL);
    qemu_plugin_register_vcpu_tb_exec_inline(block, kAdd, &executed, qemu_plugin_tb_n_insns(block));
}

__attribute__((visibility("default"))) int qemu_plugin_install(uint64_t id, const void* info, int argument_count,
                                                               char** arguments) {
    (void)info, (void)argument_count, (void)arguments;
    qemu_plugin_register_vcpu_tb_trans_cb(id, watch);
    return 0;
}
