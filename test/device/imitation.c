// An imitation of NVIDIA's driver that keeps "device" memory on the host, for what a machine without a GPU
// can test of the runtime's use of the real one: the calls and their order, and what happens when they fail.
// It computes nothing, unless kernels.c has the kernels. COHORT_IMITATION says how it behaves:
//
//   version=11040   the driver is of CUDA 11.4        none       there is no device
//   memory=BYTES    the device has no more            nopools    and allocates not in order of a stream
//   dies=N          it dies at the Nth launch,        code=700   with that error (719 without)
//   nojit           PTX is not compiled               badpools   or says it can and cannot
//   nographs        there are no graphs               nowaits    streams do not wait for events
//   cooperative=N   cooperative launches have room    crowded    and less than was said
//                   on N processors, 2 blocks each    badptx     PTX is wrong, which a log tells
//   shared=BYTES    a block may ask for no more       clusters=N  and there is room for N clusters of blocks
//
// A copy from pinned memory is made when something waits for it and no sooner, so that what is overwritten
// before comes out wrong.
//
// At the end of the process it writes how often it did what to the file COHORT_IMITATION_LOG. To
// COHORT_IMITATION_TRACE it writes every copy to the device with a sum of its bytes, and every launch
// with its arguments: memory lies at the same addresses in every run, so that two runs that should do
// the same write the same. To COHORT_IMITATION_ORDER it writes for each launch its stream and how many of
// the launches so far streams and events put before it.
#define _GNU_SOURCE
#include "kernels.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    OK = 0, INVALID = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, NO_BINARY = 209, ECC = 214, BAD_PTX = 218,
    NO_COMPILER = 221, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700, LAUNCH_FAILED = 719, TOO_LARGE = 720,
    NOT_SUPPORTED = 801,
};

static long launches, to_device, to_host, forks, made, alive, most_alive, graph_launches, changes;
static long pageable, early, cooperative, of_clusters, given_back, kept_again;
static size_t most_taken;
static int dead;
// One call at a time: batches may be recorded on several threads.
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static void leave(const int *guarded) {
    (void)guarded;
    pthread_mutex_unlock(&lock);
}
#define GUARD \
    pthread_mutex_lock(&lock); \
    int guarded __attribute__((cleanup(leave), unused)) = 0

static size_t used;
static FILE *trace, *order;

// For each stream, how many of its launches are done before what is queued next, or what an event stands
// for.
enum { MOST_STREAMS = 16 };
typedef struct { long of[MOST_STREAMS]; } Clock;
typedef struct { int number; Clock before; } Stream;
// An event is behind so many of the copies from pinned memory, too.
typedef struct { Clock before; long copies; } Event;
static int streams;

static long all(const Clock *clock) {
    long sum = 0;
    for (int at = 0; at < MOST_STREAMS; at++) sum += clock->of[at];
    return sum;
}
// A copy would be early if some launch were not before it.
static void order_copy(const Stream *stream) { early += all(&stream->before) != launches; }

static int option(const char *name, long *value) {
    const char *all = getenv("COHORT_IMITATION");
    const char *found = all ? strstr(all, name) : NULL;
    if (found && value) *value = strtol(found + strlen(name) + 1, NULL, 10);
    return found != NULL;
}

static void __attribute__((constructor)) begin(void) {
    const char *path = getenv("COHORT_IMITATION_TRACE");
    trace = path ? fopen(path, "w") : NULL;
    path = getenv("COHORT_IMITATION_ORDER");
    order = path ? fopen(path, "w") : NULL;
}
static void __attribute__((destructor)) report(void) {
    if (trace) fclose(trace);
    if (order) fclose(order);
    const char *path = getenv("COHORT_IMITATION_LOG");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    fprintf(file, "launches %ld\nto device %ld\nto host %ld\nforks %ld\nleft %zu\n", launches, to_device,
            to_host, forks, used);
    fprintf(file, "graphs made %ld\ngraphs left %ld\nmost graphs %ld\n", made, alive, most_alive);
    fprintf(file, "graph launches %ld\nchanges %ld\n", graph_launches, changes);
    fprintf(file, "streams %d\npageable %ld\nearly %ld\n", streams, pageable, early);
    fprintf(file, "cooperative launches %ld\nof clusters %ld\ngiven back %ld\n", cooperative, of_clusters, given_back);
    fprintf(file, "kept %ld\nmost taken %zu\n", kept_again, most_taken);
    fclose(file);
}

#define ALIVE() do { if (dead) return dead; } while (0)

// Copies to the device, of which some are not made yet.
enum { MOST_COPIES = 1024 };
static struct { uint64_t to; const void *from; size_t bytes; } copies[MOST_COPIES];
static long copies_begun, copies_made;

static void copy_up_to(long end) {
    for (; copies_made < end; copies_made++) {
        uint64_t to = copies[copies_made % MOST_COPIES].to, sum = 0;
        const unsigned char *from = copies[copies_made % MOST_COPIES].from;
        size_t bytes = copies[copies_made % MOST_COPIES].bytes;
        if (trace) {
            for (size_t at = 0; at < bytes; at++) sum = sum * 31 + from[at];
            fprintf(trace, "copy %lx %zu %lx\n", (long)to, bytes, (long)sum);
        }
        memcpy((void *)to, from, bytes);
    }
}
static void copy_all(void) { copy_up_to(copies_begun); }

int cuDriverGetVersion(int *version) {
    GUARD;
    long told = 12090;
    option("version", &told);
    *version = (int)told;
    return OK;
}
int cuInit(unsigned flags) { GUARD; return flags ? INVALID : option("none", NULL) ? NO_DEVICE : OK; }
int cuDeviceGet(int *device, int number) { GUARD; *device = number; return number ? INVALID : OK; }
int cuDeviceGetName(char *name, int length, int device) {
    GUARD;
    snprintf(name, (size_t)length, "Imitation");
    return device ? INVALID : OK;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    GUARD;
    // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR: it is an sm_90. MEMORY_POOLS_SUPPORTED,
    // MULTIPROCESSOR_COUNT, COOPERATIVE_LAUNCH, CLUSTER_LAUNCH.
    long processors = 0, clusters = 0;
    option("cooperative", &processors);
    option("clusters", &clusters);
    *value = attribute == 75    ? 9
             : attribute == 115 ? !option("nopools", NULL)
             : attribute == 16  ? (int)processors
             : attribute == 95  ? processors > 0
             : attribute == 120 ? clusters > 0
                                : 0;
    return device ? INVALID : OK;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
    GUARD;
    *context = &used;
    return device ? INVALID : OK;
}
int cuDevicePrimaryCtxRelease_v2(int device) { GUARD; return device ? INVALID : OK; }
int cuCtxSetCurrent(void *context) { GUARD; return context ? OK : INVALID; }
static void give_back_what_is_kept(void);
int cuCtxSynchronize(void) {
    GUARD;
    ALIVE();
    copy_all();
    give_back_what_is_kept();
    return OK;
}

int cuModuleLoadData(void **module, const char *image) {
    GUARD;
    if (strncmp(image, "\x7f" "ELF", 4) == 0) return NO_BINARY;
    if (option("nojit", NULL)) return NO_COMPILER;
    if (option("badptx", NULL)) return BAD_PTX;
    return strstr(image, ".entry") ? ((*module = strdup(image)) ? OK : OUT_OF_MEMORY) : INVALID;
}
int cuModuleLoadDataEx(void **module, const char *image, unsigned count, const int *options, void **values) {
    GUARD;
    // CU_JIT_INFO_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER, and behind each its _SIZE_BYTES.
    const char *texts[] = {"ptxas info : 0 bytes gmem\n", "ptxas input, line 9; fatal : no such thing\n"};
    int status = cuModuleLoadData(module, image);
    for (unsigned at = 0; at < count; at += 2) {
        int kind = options[at] == 3 ? 0 : options[at] == 5 ? 1 : -1;
        if (kind < 0 || at + 1 == count || options[at + 1] != options[at] + 1) return INVALID;
        const char *text = status == BAD_PTX || (status == OK && kind == 0) ? texts[kind] : "";
        if (snprintf(values[at], (size_t)values[at + 1], "%s", text) < 0) return INVALID;
        values[at + 1] = (void *)strlen(values[at]);
    }
    return status;
}
int cuModuleUnload(void *module) { GUARD; free(module); return OK; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
    GUARD;
    // The place of its name in the text tells which one it is.
    char pattern[512];
    snprintf(pattern, sizeof pattern, ".entry %s(", name);
    const char *found = strstr(module, pattern);
    *function = found ? (void *)(found + strlen(".entry ")) : NULL;
    return found ? OK : NOT_FOUND;
}

int cuStreamCreate(Stream **stream, unsigned flags) {
    GUARD;
    *stream = calloc(1, sizeof **stream);
    (*stream)->number = streams++;
    return flags == 1 && streams <= MOST_STREAMS ? OK : INVALID;
}
int cuStreamDestroy_v2(void *stream) { GUARD; free(stream); return OK; }
int cuStreamSynchronize(void *stream) { GUARD; return stream ? cuCtxSynchronize() : INVALID; }
int cuStreamWaitEvent(Stream *stream, const Event *event, unsigned flags) {
    GUARD;
    ALIVE();
    forks++;
    if (!stream || !event || flags) return INVALID;
    if (option("nowaits", NULL)) return OK;
    for (int at = 0; at < MOST_STREAMS; at++)
        if (event->before.of[at] > stream->before.of[at]) stream->before.of[at] = event->before.of[at];
    return OK;
}
int cuEventCreate(Event **event, unsigned flags) {
    GUARD;
    *event = calloc(1, sizeof **event);
    return flags & ~2u ? INVALID : OK;
}
int cuEventDestroy_v2(void *event) { GUARD; free(event); return OK; }
int cuEventRecord(Event *event, const Stream *stream) {
    GUARD;
    ALIVE();
    if (!event || !stream) return INVALID;
    *event = (Event){stream->before, copies_begun};
    return OK;
}
int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
    GUARD;
    ALIVE();
    *milliseconds = 0.5f;
    return start && end ? OK : INVALID;
}
int cuEventElapsedTime_v2(float *milliseconds, void *start, void *end) {
    GUARD;
    return cuEventElapsedTime(milliseconds, start, end);
}

static size_t capacity(void) {
    long bytes = 1L << 32;
    option("memory", &bytes);
    return (size_t)bytes;
}
// What was given back to a pool, which keeps no more than its threshold when something is waited for.
enum { MOST_KEPT = 256 };
static struct { size_t of[MOST_KEPT], all; int count; uint64_t threshold; } kept;

static void give_back(uint64_t threshold) {
    if (kept.all <= threshold) return;
    given_back += kept.count;
    kept.all = 0;
    kept.count = 0;
}
static void give_back_what_is_kept(void) { give_back(kept.threshold); }

int cuMemGetInfo_v2(size_t *available, size_t *total) {
    GUARD;
    ALIVE();
    *total = capacity();
    *available = *total - used - kept.all;
    return OK;
}
// The size is kept in front, so that what is given back is counted.
static int allocate(uint64_t *address, size_t bytes) {
    static char *next;
    ALIVE();
    size_t length = (bytes + 511) / 256 * 256;
    if (bytes > capacity() - used - kept.all) return OUT_OF_MEMORY;
    if (!next) {
        void *base = (void *)0x300000000000;
        next = mmap(base, 1L << 36, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (next != base) abort();
    }
    *(size_t *)next = bytes;
    used += bytes;
    if (used + kept.all > most_taken) most_taken = used + kept.all;
    // Not a number.
    if (kernels_are_there()) memset(next + 256, 0xff, bytes);
    *address = (uint64_t)(next + 256);
    next += length;
    return OK;
}
int cuMemAlloc_v2(uint64_t *address, size_t bytes) { GUARD; return allocate(address, bytes); }
int cuMemFree_v2(uint64_t address) {
    GUARD;
    size_t *bytes = (size_t *)(address - 256);
    if (!*bytes) return INVALID;
    used -= *bytes;
    *bytes = 0;
    return OK;
}
int cuMemPoolCreate(void **pool, const int *properties) {
    GUARD;
    // Pinned memory of a device, for this process.
    if (properties[0] != 1 || properties[1] != 0 || properties[2] != 1 || properties[3] != 0) return INVALID;
    *pool = malloc(1);
    return option("nopools", NULL) ? NOT_SUPPORTED : OK;
}
int cuMemPoolSetAttribute(void *pool, int attribute, const uint64_t *value) {
    GUARD;
    // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD.
    if (!pool || attribute != 4) return INVALID;
    kept.threshold = *value;
    return OK;
}
int cuMemPoolTrimTo(void *pool, size_t bytes) {
    GUARD;
    give_back(bytes);
    return pool ? OK : INVALID;
}
int cuMemPoolDestroy(void *pool) {
    GUARD;
    kept.all = 0;
    kept.count = 0;
    free(pool);
    return OK;
}
int cuMemAllocFromPoolAsync(uint64_t *address, size_t bytes, void *pool, void *stream) {
    GUARD;
    if (option("badpools", NULL)) return NOT_SUPPORTED;
    if (!pool || !stream) return INVALID;
    // A block that is kept serves for what is no larger, as a whole.
    for (int at = 0; at < kept.count; at++) {
        if (kept.of[at] < bytes) continue;
        bytes = kept.of[at];
        kept.of[at] = kept.of[--kept.count];
        kept.all -= bytes;
        break;
    }
    return allocate(address, bytes);
}
int cuMemFreeAsync(uint64_t address, void *stream) {
    GUARD;
    size_t bytes = *(size_t *)(address - 256);
    int status = stream ? cuMemFree_v2(address) : INVALID;
    if (status || kept.count == MOST_KEPT) return status;
    kept_again++;
    kept.of[kept.count++] = bytes;
    kept.all += bytes;
    return OK;
}
// Pinned memory has an address and a length of its own, and begins at a page.
enum { MOST_PINNED = 64 };
static struct { char *address; size_t bytes; } pinned[MOST_PINNED];

static int is_pinned(const void *address, size_t bytes) {
    for (int at = 0; at < MOST_PINNED; at++) {
        const char *begin = pinned[at].address, *first = address;
        if (begin && first >= begin && first + bytes <= begin + pinned[at].bytes) return 1;
    }
    return 0;
}
int cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
    GUARD;
    int at = 0;
    while (at < MOST_PINNED && pinned[at].address) at++;
    if (flags || at == MOST_PINNED) return INVALID;
    *address = pinned[at].address = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    pinned[at].bytes = bytes;
    return *address ? OK : OUT_OF_MEMORY;
}
int cuMemFreeHost(void *address) {
    GUARD;
    int at = 0;
    while (at < MOST_PINNED && pinned[at].address != address) at++;
    if (at == MOST_PINNED) return INVALID;
    for (long copy = copies_made; copy < copies_begun; copy++) {
        const char *from = copies[copy % MOST_COPIES].from;
        if (from >= pinned[at].address && from < pinned[at].address + pinned[at].bytes) return INVALID;
    }
    pinned[at].address = NULL;
    free(address);
    return OK;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, const Stream *stream) {
    GUARD;
    ALIVE();
    if (!stream) return INVALID;
    to_device++;
    pageable += !is_pinned(from, bytes);
    order_copy(stream);
    if (copies_begun - copies_made == MOST_COPIES) copy_up_to(copies_made + 1);
    copies[copies_begun % MOST_COPIES].to = to;
    copies[copies_begun % MOST_COPIES].from = from;
    copies[copies_begun % MOST_COPIES].bytes = bytes;
    copies_begun++;
    if (!is_pinned(from, bytes)) copy_all();
    return OK;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, const Stream *stream) {
    GUARD;
    ALIVE();
    if (!stream) return INVALID;
    to_host++;
    pageable += !is_pinned(to, bytes);
    order_copy(stream);
    copy_all();
    memcpy(to, (void *)from, bytes);
    return OK;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
    GUARD;
    ALIVE();
    copy_all();
    memcpy((void *)to, (void *)from, bytes);
    return stream ? OK : INVALID;
}

int cuEventSynchronize(const Event *event) {
    GUARD;
    ALIVE();
    if (!event) return INVALID;
    copy_up_to(event->copies);
    return OK;
}

enum { MOST_ARGUMENTS = 256 };
typedef struct {
    const char *function;
    unsigned x, y, threads;
    int count;
    uint64_t arguments[MOST_ARGUMENTS];
} Launch;

// Shared memory that a launch of a function may give, as it was asked.
enum { USUAL_SHARED = 48 << 10, MOST_SHARED = 227 << 10, MOST_FUNCTIONS = 1024, SHARED_ATTRIBUTE = 8 };
enum { LARGE_CLUSTERS = 14 };
static struct {
    const char *function;
    unsigned shared;
} asked[MOST_FUNCTIONS];
static int asked_count;

static unsigned shared_of(const char *function) {
    for (int at = 0; at < asked_count; at++)
        if (asked[at].function == function) return asked[at].shared;
    return USUAL_SHARED;
}
int cuFuncSetAttribute(const char *function, int attribute, int value) {
    GUARD;
    ALIVE();
    long most = MOST_SHARED;
    option("shared", &most);
    if (function && attribute == LARGE_CLUSTERS) return value == 1 ? OK : INVALID;
    if (!function || attribute != SHARED_ATTRIBUTE || value < 0 || value > most) return INVALID;
    if (asked_count == MOST_FUNCTIONS) return OUT_OF_MEMORY;
    asked[asked_count].function = function;
    asked[asked_count++].shared = (unsigned)value;
    return OK;
}

// A launch as a function's text says how many arguments it has.
static int read_launch(Launch *launch, const char *function, unsigned x, unsigned y, unsigned z,
                       unsigned threads, unsigned ty, unsigned tz, unsigned shared, void **arguments,
                       void **extra) {
    if (!x || !y || z != 1 || !threads || threads % 32 || ty != 1 || tz != 1 || extra) return INVALID;
    if (shared > shared_of(function)) return INVALID;
    *launch = (Launch){function, x, y, threads, 0, {0}};
    const char *end = strchr(function, ')');
    for (const char *at = function; (at = strstr(at, ".param")) && at < end; at++) {
        if (launch->count == MOST_ARGUMENTS) return INVALID;
        launch->arguments[launch->count] = *(uint64_t *)arguments[launch->count];
        launch->count++;
    }
    return launch->count ? OK : INVALID;
}

// `before` is how many launches are; with `together`, all blocks are on the card at the same time, in clusters of so many.
static int run(const Launch *launch, Stream *stream, long before, int together) {
    ALIVE();
    copy_all();
    if (order) fprintf(order, "%d %ld\n", stream->number, before);
    stream->before.of[stream->number]++;
    long dies = -1, code = LAUNCH_FAILED;
    option("dies", &dies);
    option("code", &code);
    if (launches++ == dies) dead = (int)code;
    ALIVE();
    if (trace) {
        fprintf(trace, "%.*s %u %u %u", (int)strcspn(launch->function, "("), launch->function, launch->x,
                launch->y, launch->threads);
        for (int at = 0; at < launch->count; at++) fprintf(trace, " %lx", (long)launch->arguments[at]);
        fputc('\n', trace);
    }
    if (strncmp(launch->function, "cohort_gather", 13) == 0) {
        uint64_t *table = (uint64_t *)launch->arguments[0];
        char *to = (char *)launch->arguments[1];
        for (unsigned block = 0; block < launch->x; block++, table += 3)
            memcpy(to + table[2], (void *)table[0], table[1]);
    } else if (kernels_are_there()) {
        char name[512];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(launch->function, "("), launch->function);
        if (run_kernel(name, launch->x, launch->y, launch->threads, launch->arguments, together))
            return dead = LAUNCH_FAILED;
    }
    return OK;
}

int cuLaunchKernel(const char *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned ty,
                   unsigned tz, unsigned shared, Stream *stream, void **arguments, void **extra) {
    GUARD;
    Launch launch;
    ALIVE();
    int status = read_launch(&launch, function, x, y, z, threads, ty, tz, shared, arguments, extra);
    return status ? status : stream ? run(&launch, stream, all(&stream->before), 0) : INVALID;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const char *function, int threads,
                                                size_t shared) {
    GUARD;
    *blocks = 2;
    return function && threads > 0 && shared <= shared_of(function) ? OK : INVALID;
}
int cuLaunchCooperativeKernel(const char *function, unsigned x, unsigned y, unsigned z, unsigned threads,
                              unsigned ty, unsigned tz, unsigned shared, Stream *stream, void **arguments) {
    GUARD;
    long processors = 0;
    option("cooperative", &processors);
    if (!processors) return NOT_SUPPORTED;
    if (option("crowded", NULL) || (unsigned long)x * y > 2ul * (unsigned long)processors) return TOO_LARGE;
    Launch launch;
    ALIVE();
    int status = read_launch(&launch, function, x, y, z, threads, ty, tz, shared, arguments, NULL);
    if (status || !stream) return status ? status : INVALID;
    cooperative++;
    return run(&launch, stream, all(&stream->before), (int)x);
}

// A launch with attributes: of these, that all blocks are on the card together, and that they form clusters.
typedef struct {
    int id;
    char pad[4];
    union {
        char pad[64];
        unsigned cluster[3];
        int cooperative;
    } value;
} Attribute;
typedef struct {
    unsigned x, y, z, threads, ty, tz, shared;
    Stream *stream;
    const Attribute *attributes;
    unsigned count;
} Config;
enum { COOPERATIVE = 2, CLUSTER = 4, BLOCKS_OF_CLUSTER = 16 };

static const Attribute *attribute_of(const Config *config, int id) {
    for (unsigned at = 0; at < config->count; at++)
        if (config->attributes[at].id == id) return &config->attributes[at];
    return NULL;
}
static int has_clusters(const Config *config) {
    const Attribute *cluster = attribute_of(config, CLUSTER);
    return cluster && cluster->value.cluster[0] == BLOCKS_OF_CLUSTER && cluster->value.cluster[1] == 1 &&
           cluster->value.cluster[2] == 1 && config->x % BLOCKS_OF_CLUSTER == 0;
}
int cuOccupancyMaxActiveClusters(int *clusters, const char *function, const Config *config) {
    GUARD;
    long count = 0;
    option("clusters", &count);
    *clusters = (int)count;
    return function && has_clusters(config) && config->shared <= shared_of(function) ? OK : INVALID;
}
int cuLaunchKernelEx(const Config *config, const char *function, void **arguments, void **extra) {
    GUARD;
    long clusters = 0;
    option("clusters", &clusters);
    const Attribute *together = attribute_of(config, COOPERATIVE);
    if (!has_clusters(config) || !together || together->value.cooperative != 1) return INVALID;
    if (option("crowded", NULL) || config->x > BLOCKS_OF_CLUSTER * (unsigned)clusters) return TOO_LARGE;
    Launch launch;
    ALIVE();
    int status = read_launch(&launch, function, config->x, config->y, config->z, config->threads, config->ty,
                             config->tz, config->shared, arguments, extra);
    if (status || !config->stream) return status ? status : INVALID;
    cooperative++, of_clusters++;
    return run(&launch, config->stream, all(&config->stream->before), BLOCKS_OF_CLUSTER);
}

// A graph's nodes in the order in which they were added, which is one in which they may run. What is
// made of it to be launched has copies of them.
enum { MOST_LAUNCHES = 4096 };
typedef struct Node {
    struct Node *next;
    int is_launch, number;
    Launch launch;
    // By number, the launches before it.
    char before[MOST_LAUNCHES];
} Node;
typedef struct { Node *first, *last; int launches; } Graph;
typedef struct { Graph *graph; int count; Launch *launches; long *before; } Executable;
typedef struct {
    const char *function;
    unsigned x, y, z, threads, ty, tz, shared;
    void **arguments, **extra;
    void *kernel, *context;
} Parameters;

int cuGraphCreate(Graph **graph, unsigned flags) {
    GUARD;
    ALIVE();
    if (option("nographs", NULL)) return NOT_SUPPORTED;
    *graph = calloc(1, sizeof **graph);
    made++;
    if (++alive > most_alive) most_alive = alive;
    return flags ? INVALID : OK;
}
static int add(Node **added, Graph *graph, Node *const *behind, size_t count) {
    ALIVE();
    for (size_t at = 0; at < count; at++) {
        Node *node = graph->first;
        while (node && node != behind[at]) node = node->next;
        if (!node) return INVALID;
    }
    // Nothing but the first level waits for nothing.
    if (!graph->first && count) return INVALID;
    Node *node = calloc(1, sizeof *node);
    for (size_t at = 0; at < count; at++) {
        for (int other = 0; other < MOST_LAUNCHES; other++) node->before[other] |= behind[at]->before[other];
        if (behind[at]->is_launch) node->before[behind[at]->number] = 1;
    }
    *(graph->first ? &graph->last->next : &graph->first) = node;
    graph->last = node;
    *added = node;
    return OK;
}
int cuGraphAddEmptyNode(Node **node, Graph *graph, Node *const *behind, size_t count) {
    GUARD;
    return add(node, graph, behind, count);
}
static int read_parameters(Launch *launch, const Parameters *given) {
    if (given->kernel || given->context) return INVALID;
    return read_launch(launch, given->function, given->x, given->y, given->z, given->threads, given->ty,
                       given->tz, given->shared, given->arguments, given->extra);
}
int cuGraphAddKernelNode_v2(Node **node, Graph *graph, Node *const *behind, size_t count,
                            const Parameters *given) {
    GUARD;
    int status = add(node, graph, behind, count);
    if (status) return status;
    (*node)->is_launch = 1;
    (*node)->number = graph->launches++;
    if (graph->launches > MOST_LAUNCHES) return INVALID;
    return read_parameters(&(*node)->launch, given);
}
int cuGraphInstantiateWithFlags(Executable **executable, Graph *graph, unsigned long long flags) {
    GUARD;
    ALIVE();
    Executable *new = calloc(1, sizeof *new);
    new->graph = graph;
    for (Node *node = graph->first; node; node = node->next) new->count += node->is_launch;
    new->launches = calloc((size_t)new->count, sizeof *new->launches);
    new->before = calloc((size_t)new->count, sizeof *new->before);
    int at = 0;
    for (Node *node = graph->first; node; node = node->next) {
        if (!node->is_launch) continue;
        for (int other = 0; other < MOST_LAUNCHES; other++) new->before[at] += node->before[other];
        new->launches[at++] = node->launch;
    }
    *executable = new;
    return flags ? INVALID : OK;
}
int cuGraphExecKernelNodeSetParams_v2(Executable *executable, const Node *node, const Parameters *given) {
    GUARD;
    ALIVE();
    int at = 0;
    for (Node *other = executable->graph->first; other; other = other->next) {
        if (other == node) {
            changes++;
            return node->is_launch ? read_parameters(&executable->launches[at], given) : INVALID;
        }
        at += other->is_launch;
    }
    return INVALID;
}
int cuGraphLaunch(const Executable *executable, Stream *stream) {
    GUARD;
    ALIVE();
    if (!stream) return INVALID;
    graph_launches++;
    long first = all(&stream->before);
    for (int at = 0; at < executable->count; at++) {
        int status = run(&executable->launches[at], stream, first + executable->before[at], 0);
        if (status) return status;
    }
    return OK;
}
int cuGraphExecDestroy(Executable *executable) {
    GUARD;
    free(executable->launches);
    free(executable->before);
    free(executable);
    return OK;
}
int cuGraphDestroy(Graph *graph) {
    GUARD;
    for (Node *node = graph->first, *next; node; node = next) {
        next = node->next;
        free(node);
    }
    free(graph);
    alive--;
    return OK;
}

static const char *say(int error) {
    switch (error) {
    case OUT_OF_MEMORY: return "out of memory";
    case NO_DEVICE: return "no CUDA-capable device is detected";
    case LAUNCH_FAILED: return "unspecified launch failure";
    case ILLEGAL_ADDRESS: return "an illegal memory access was encountered";
    case ECC: return "uncorrectable ECC error encountered";
    case BAD_PTX: return "a PTX JIT compilation failed";
    case NO_COMPILER: return "PTX JIT compiler library not found";
    case NO_BINARY: return "no kernel image is available for execution on the device";
    default: return "invalid argument";
    }
}
int cuGetErrorString(int error, const char **text) { GUARD; *text = say(error); return OK; }
int cuGetErrorName(int error, const char **text) {
    GUARD;
    *text = error == NO_DEVICE         ? "CUDA_ERROR_NO_DEVICE"
            : error == LAUNCH_FAILED   ? "CUDA_ERROR_LAUNCH_FAILED"
            : error == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : error == ECC             ? "CUDA_ERROR_ECC_UNCORRECTABLE"
                                       : "CUDA_ERROR";
    return OK;
}
