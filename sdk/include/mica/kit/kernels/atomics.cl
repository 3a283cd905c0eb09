R"cl(
// Lanes that many work-items combine in place: ADD_IN adds to what lies at p, SWAP_IN runs any code on it.
//
// WORD is the unsigned integer of a lane's size; OpenCL has atomics of integers alone, so
// that floats compare and swap their bits.
// SWAP gives the word that it found, and wrote `now` where that is `old`.
#ifdef __OPENCL_VERSION__
#ifdef WORD_64
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#define SWAP(p, old, now) atom_cmpxchg((volatile global ulong*)(p), old, now)
#define ADD_WORD(p, x) atom_add((volatile global ulong*)(p), (ulong)(x))
#else
#define SWAP(p, old, now) atomic_cmpxchg((volatile global uint*)(p), old, now)
#define ADD_WORD(p, x) atomic_add((volatile global uint*)(p), (uint)(x))
#endif
#elif defined(__CUDACC__)
#ifdef WORD_64
typedef unsigned long long Atomic;  // of 64 bits as ulong is, and another type
#else
typedef uint Atomic;
#endif
#define SWAP(p, old, now) ((WORD)atomicCAS((Atomic*)(p), (Atomic)(old), (Atomic)(now)))
#ifdef LANE_FLOAT
#define ADD_WORD(p, x) atomicAdd(p, x)
#else
#define ADD_WORD(p, x) atomicAdd((Atomic*)(p), (Atomic)(x))
#endif
#else
#define SWAP(p, old, now) __sync_val_compare_and_swap((WORD*)(p), old, now)
#define ADD_WORD(p, x) __sync_fetch_and_add((WORD*)(p), (WORD)(x))
#endif

typedef union {
  LANE lane;
  WORD word;
} Bits;
static Bits bits_at(const volatile global LANE* p) {
  Bits bits;
  bits.lane = *p;
  return bits;
}
// Runs `combine`, which changes the lane s0, on what lies at p, until nobody else wrote between.
#define SWAP_IN(p, combine)                               \
  {                                                       \
    Bits old = bits_at(p), now;                           \
    while (true) {                                        \
      L s0 = old.lane;                                    \
      combine now.lane = s0;                              \
      if (now.word == old.word) break;                    \
      const WORD found = SWAP(p, old.word, now.word);     \
      if (found == old.word) break;                       \
      old.word = found;                                   \
    }                                                     \
  }
#if defined(LANE_FLOAT) && !defined(__CUDACC__)
#define ADD_IN(p, x) SWAP_IN(p, s0 += (x);)
#else
#define ADD_IN(p, x) ADD_WORD(p, x);
#endif
)cl"
