// An imitation of NVIDIA's driver that keeps "device" memory on the host and computes nothing, for what
// a machine without a GPU can test of the runtime's use of the real one: the calls and their order, and
// what happens when they fail. COHORT_IMITATION says how it behaves:
//
//   version=11040   the driver is of CUDA 11.4        none       there is no device
//   memory=BYTES    the device has no more            dies=N     it dies at the Nth launch
//
// At the end of the process it writes how often it did what to the file COHORT_IMITATION_LOG.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INVALID = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, NOT_FOUND = 500, LAUNCH_FAILED = 719 };

static long launches, to_device, to_host, forks;
static int dead;
static size_t used;

static int option(const char *name, long *value) {
    const char *all = getenv("COHORT_IMITATION");
    const char *found = all ? strstr(all, name) : NULL;
    if (found && value) *value = strtol(found + strlen(name) + 1, NULL, 10);
    return found != NULL;
}

static void __attribute__((destructor)) report(void) {
    const char *path = getenv("COHORT_IMITATION_LOG");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    fprintf(file, "launches %ld\nto device %ld\nto host %ld\nforks %ld\nleft %zu\n", launches, to_device,
            to_host, forks, used);
    fclose(file);
}

#define ALIVE() do { if (dead) return LAUNCH_FAILED; } while (0)

int cuDriverGetVersion(int *version) {
    long told = 12090;
    option("version", &told);
    *version = (int)told;
    return OK;
}
int cuInit(unsigned flags) { return flags ? INVALID : option("none", NULL) ? NO_DEVICE : OK; }
int cuDeviceGet(int *device, int number) { *device = number; return number ? INVALID : OK; }
int cuDeviceGetName(char *name, int length, int device) {
    snprintf(name, (size_t)length, "Imitation");
    return device ? INVALID : OK;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR: it is an sm_90.
    *value = attribute == 75 ? 9 : 0;
    return device ? INVALID : OK;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
    *context = &used;
    return device ? INVALID : OK;
}
int cuDevicePrimaryCtxRelease_v2(int device) { return device ? INVALID : OK; }
int cuCtxSetCurrent(void *context) { return context ? OK : INVALID; }
int cuCtxSynchronize(void) { ALIVE(); return OK; }

int cuModuleLoadData(void **module, const char *image) {
    *module = (void *)image;
    return strstr(image, ".entry") ? ((*module = strdup(image)) ? OK : OUT_OF_MEMORY) : INVALID;
}
int cuModuleUnload(void *module) { free(module); return OK; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
    // The place of its name in the text tells which one it is.
    char *found = strstr(module, name);
    *function = found;
    return found ? OK : NOT_FOUND;
}

int cuStreamCreate(void **stream, unsigned flags) { *stream = malloc(1); return flags == 1 ? OK : INVALID; }
int cuStreamDestroy_v2(void *stream) { free(stream); return OK; }
int cuStreamSynchronize(void *stream) { ALIVE(); return stream ? OK : INVALID; }
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
    ALIVE();
    forks++;
    return stream && event && !flags ? OK : INVALID;
}
int cuEventCreate(void **event, unsigned flags) { *event = malloc(1 + flags); return OK; }
int cuEventDestroy_v2(void *event) { free(event); return OK; }
int cuEventRecord(void *event, void *stream) { ALIVE(); return event && stream ? OK : INVALID; }
int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
    ALIVE();
    *milliseconds = 0.5f;
    return start && end ? OK : INVALID;
}
int cuEventElapsedTime_v2(float *milliseconds, void *start, void *end) {
    return cuEventElapsedTime(milliseconds, start, end);
}

static size_t capacity(void) {
    long bytes = 1L << 32;
    option("memory", &bytes);
    return (size_t)bytes;
}
int cuMemGetInfo_v2(size_t *available, size_t *total) {
    ALIVE();
    *total = capacity();
    *available = *total - used;
    return OK;
}
// The size is kept in front, so that what is given back is counted.
int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    ALIVE();
    if (bytes > capacity() - used) return OUT_OF_MEMORY;
    char *block = aligned_alloc(256, (bytes + 511) / 256 * 256);
    if (!block) return OUT_OF_MEMORY;
    memset(block, 0, (bytes + 511) / 256 * 256);
    *(size_t *)block = bytes;
    used += bytes;
    *address = (uint64_t)(block + 256);
    return OK;
}
int cuMemFree_v2(uint64_t address) {
    char *block = (char *)address - 256;
    used -= *(size_t *)block;
    free(block);
    return OK;
}
int cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
    *address = malloc(bytes);
    return flags ? INVALID : *address ? OK : OUT_OF_MEMORY;
}
int cuMemFreeHost(void *address) { free(address); return OK; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
    ALIVE();
    to_device++;
    memcpy((void *)to, from, bytes);
    return stream ? OK : INVALID;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
    ALIVE();
    to_host++;
    memcpy(to, (void *)from, bytes);
    return stream ? OK : INVALID;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
    ALIVE();
    memcpy((void *)to, (void *)from, bytes);
    return stream ? OK : INVALID;
}

int cuLaunchKernel(const char *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned ty,
                   unsigned tz, unsigned shared, void *stream, void **arguments, void **extra) {
    ALIVE();
    long dies = -1;
    option("dies", &dies);
    if (launches++ == dies) dead = 1;
    ALIVE();
    if (!x || !y || z != 1 || !threads || threads % 32 || ty != 1 || tz != 1 || shared || !stream || extra)
        return INVALID;
    if (strncmp(function, "cohort_gather", 13) == 0) {
        uint64_t *table = *(uint64_t **)arguments[0];
        char *to = *(char **)arguments[1];
        for (unsigned block = 0; block < x; block++, table += 3)
            memcpy(to + table[2], (void *)table[0], table[1]);
    }
    return OK;
}

static const char *say(int error) {
    switch (error) {
    case OUT_OF_MEMORY: return "out of memory";
    case NO_DEVICE: return "no CUDA-capable device is detected";
    case LAUNCH_FAILED: return "unspecified launch failure";
    default: return "invalid argument";
    }
}
int cuGetErrorString(int error, const char **text) { *text = say(error); return OK; }
int cuGetErrorName(int error, const char **text) {
    *text = error == NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : error == LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR";
    return OK;
}
