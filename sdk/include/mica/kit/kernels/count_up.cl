R"cl(
// Counts up a number of local memory, and gives what it was.
#ifdef __OPENCL_VERSION__
#define COUNT_UP(p) atomic_inc((volatile local uint*)(p))
#elif defined(__CUDACC__)
#define COUNT_UP(p) atomicAdd((uint*)(p), 1u)
#else
#define COUNT_UP(p) __sync_fetch_and_add((uint*)(p), 1u)
#endif
)cl"
