/* SPDX-License-Identifier: MIT
 * Loads libmlff as a plug-in host would, with no GPU to be seen: it must load, say why it has no GPU, and be unloaded.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int32_t count_devices(void* library) {
    int32_t (*function)(void);
    void* symbol = dlsym(library, "mlff_device_count");
    memcpy(&function, &symbol, sizeof function);
    return symbol ? function() : -1;
}

static const char* why_none(void* library) {
    const char* (*function)(void);
    void* symbol = dlsym(library, "mlff_device_why_none");
    memcpy(&function, &symbol, sizeof function);
    return symbol ? function() : "";
}

int main(int argc, char** argv) {
    void* library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "usage: load_library PATH");
        return 1;
    }
    printf("%d devices: %s\n", (int)count_devices(library), why_none(library));
    if (count_devices(library) != 0 || why_none(library)[0] == '\0') return 1;
    return dlclose(library) == 0 ? 0 : 1;
}
