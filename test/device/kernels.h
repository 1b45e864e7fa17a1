// Kernels that are run, see kernels.c.
#include <stdint.h>

// Whether there are kernels to run.
int kernels_are_there(void);

// Runs a kernel; with `together`, with all its blocks alive at a time, in clusters of so many. Gives 0 where that works.
int run_kernel(const char *name, unsigned x, unsigned y, unsigned threads, const uint64_t *arguments,
               int together);
