// Runs the kernels of the shared library COHORT_IMITATION_KERNELS, which are those of an artifact that were
// compiled for the simulator (cohort_abi::gpu::SimFn): blocks as loops, and threads one after another, each
// from barrier to barrier. The simulator finds more mistakes of a kernel; this is for the way there.
#include "kernels.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { MOST_THREADS = 4096, STACK = 64 << 10, SHARED = 227 << 10, POISON = 0xff };

typedef void Kernel(const uint64_t *arguments, uint64_t x, uint64_t y, uint64_t thread, void *shared,
                    void *context);
typedef enum { ENDED, AT_BARRIER, AT_CLUSTER_BARRIER, AT_GRID_BARRIER } Stop;
typedef struct {
    ucontext_t context;
    Stop stop;
    uint64_t x, y, number;
    void *shared;
} Thread;

static Thread threads[MOST_THREADS];
static char *stacks;
static ucontext_t scheduler;
static Thread *running;
static Kernel *kernel;
static const uint64_t *given;

static void stop(Thread *thread, Stop why) {
    thread->stop = why;
    swapcontext(&thread->context, &scheduler);
}

// What kernels call.
void cohort_sim_barrier(Thread *thread) { stop(thread, AT_BARRIER); }
void cohort_sim_cluster_barrier(Thread *thread) { stop(thread, AT_CLUSTER_BARRIER); }
void cohort_sim_grid_barrier(Thread *thread) { stop(thread, AT_GRID_BARRIER); }
void cohort_sim_copy(void *context, char *to, const char *from, int64_t bytes, int64_t copied) {
    (void)context;
    memcpy(to, from, (size_t)copied);
    memset(to + copied, 0, (size_t)(bytes - copied));
}
void cohort_sim_commit(void *context) { (void)context; }
void cohort_sim_wait(void *context, int64_t pending) { (void)context, (void)pending; }

static void begin(void) {
    Thread *thread = running;
    kernel(given, thread->x, thread->y, thread->number, thread->shared, thread);
    thread->stop = ENDED;
}

// Runs threads of a block to the next stop of another kind than a barrier, to which all of them come.
static int run_block(Thread *block, unsigned count, Stop *reached) {
    do {
        for (unsigned at = 0; at < count; at++) {
            running = &block[at];
            swapcontext(&scheduler, &block[at].context);
            if (block[at].stop != block[0].stop) {
                fprintf(stderr, "threads 0 and %u of a block do not stop at the same\n", at);
                return 1;
            }
        }
    } while (block[0].stop == AT_BARRIER);
    *reached = block[0].stop;
    return 0;
}

static void begin_block(Thread *block, unsigned count, unsigned x, unsigned y, char *shared) {
    memset(shared, POISON, SHARED);
    for (unsigned at = 0; at < count; at++) {
        Thread *thread = &block[at];
        getcontext(&thread->context);
        thread->context.uc_stack.ss_sp = stacks + (size_t)(thread - threads) * STACK;
        thread->context.uc_stack.ss_size = STACK;
        thread->context.uc_link = &scheduler;
        thread->x = x, thread->y = y, thread->number = at, thread->shared = shared;
        makecontext(&thread->context, begin, 0);
    }
}

static int run_apart(unsigned x, unsigned y, unsigned count, char *shared) {
    for (unsigned row = 0; row < y; row++)
        for (unsigned column = 0; column < x; column++) {
            Stop reached;
            begin_block(threads, count, column, row, shared);
            if (run_block(threads, count, &reached)) return 1;
            if (reached != ENDED) return 1;
        }
    return 0;
}

// Runs the blocks of a cluster to their next barrier of all blocks, or to their end.
static int run_cluster(unsigned from, unsigned blocks, unsigned count, Stop *reached) {
    do {
        for (unsigned at = from; at < from + blocks; at++) {
            Stop own;
            if (run_block(threads + at * count, count, &own)) return 1;
            if (at == from) *reached = own;
            if (own != *reached) {
                fprintf(stderr, "blocks %u and %u do not stop at the same\n", from, at);
                return 1;
            }
        }
    } while (*reached == AT_CLUSTER_BARRIER);
    return 0;
}

static int run_together(unsigned blocks, unsigned of_cluster, unsigned count, char *shared) {
    if (blocks * count > MOST_THREADS) return 1;
    for (unsigned at = 0; at < blocks; at++)
        begin_block(threads + at * count, count, at, 0, shared + (size_t)at * SHARED);
    Stop first = ENDED, other = ENDED;
    do {
        for (unsigned at = 0; at < blocks; at += of_cluster) {
            if (run_cluster(at, of_cluster, count, &other)) return 1;
            if (at == 0) first = other;
            if (other != first) {
                fprintf(stderr, "blocks 0 and %u do not stop at the same\n", at);
                return 1;
            }
        }
    } while (first != ENDED);
    return 0;
}

static void *library(void) {
    static void *found;
    const char *path = getenv("COHORT_IMITATION_KERNELS");
    if (!found && path && *path) {
        found = dlopen(path, RTLD_LAZY);
        if (!found) fprintf(stderr, "%s\n", dlerror());
    }
    return found;
}

int kernels_are_there(void) { return library() != NULL; }

int run_kernel(const char *name, unsigned x, unsigned y, unsigned count, const uint64_t *arguments,
               int together) {
    kernel = (Kernel *)dlsym(library(), name);
    if (!kernel || count > MOST_THREADS) return 1;
    given = arguments;
    if (!stacks)
        stacks = mmap(NULL, (size_t)MOST_THREADS * STACK, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *shared = aligned_alloc(64, (size_t)(together ? x : 1) * SHARED);
    int failed = together ? run_together(x, (unsigned)together, count, shared) : run_apart(x, y, count, shared);
    free(shared);
    return failed;
}
