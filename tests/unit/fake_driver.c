/* SPDX-License-Identifier: MIT
 * Libraries in the place of NVIDIA's, for test_host_facts.cpp: one that is complete, one with an NVML that lacks a
 * function (FAKE_PARTIAL), one whose NVML fails to begin (FAKE_FAILING). */
#include <stdio.h>

#define EXPORTED __attribute__((visibility("default")))
int EXPORTED cuDriverGetVersion(int* version);
int EXPORTED nvmlInit_v2(void);
int EXPORTED nvmlShutdown(void);

int cuDriverGetVersion(int* version) {
    *version = 12040;
    return 0;
}

int nvmlInit_v2(void) {
#if defined(FAKE_FAILING)
    return 9;
#else
    return 0;
#endif
}

int nvmlShutdown(void) { return 0; }

#if !defined(FAKE_PARTIAL)
int EXPORTED nvmlSystemGetDriverVersion(char* version, unsigned length);
int nvmlSystemGetDriverVersion(char* version, unsigned length) {
    snprintf(version, length, "570.86.15");
    return 0;
}
#endif
