/* Engines of collectives (all_reduce, broadcast, ..), in C11: the table that a plugin offers so that ranks
 * can talk through it. An engine named "acme" is a plugin that registers its table as the extension
 * "acme.collectives"; `mica.distributed.init_process_group("acme")` asks for it by that name. Append-only.
 *
 * A group is one rank's end of a connection among `size` ranks. It is made in two steps, so that an engine
 * needs no store: `open` gives this rank's address (bytes that mean something to the engine alone), the
 * caller brings every rank's address to every rank, and `connect` takes them all, in the order of ranks.
 *
 * All ranks of a group start the same collectives in the same order, from one thread at a time. `start` does
 * not wait for other ranks. Call the functions from any thread; what has no status cannot fail.
 * Errors are full sentences that name the rank, the collective and its number in the group.
 */
#ifndef MICA_COLLECTIVES_H_
#define MICA_COLLECTIVES_H_

#include <mica/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MICA_COLLECTIVES_EXTENSION_SUFFIX ".collectives"

/* Kinds. n is the number of ranks; "input" and "output" are the memory of MicaCollective. */
#define MICA_ALL_REDUCE 0     /* as many elements in as out */
#define MICA_BROADCAST 1      /* output is read on `peer`, written elsewhere; there is no input */
#define MICA_ALL_GATHER 2     /* output is n inputs, in the order of ranks */
#define MICA_REDUCE_SCATTER 3 /* input is n outputs: each rank gets its part of the reduced input */
#define MICA_ALL_TO_ALL 4     /* part i of the input goes to rank i; *_splits have the parts' sizes */
#define MICA_GATHER 5         /* as ALL_GATHER, with an output on `peer` alone */
#define MICA_SCATTER 6        /* part i of the input on `peer` goes to rank i; other inputs are empty */
#define MICA_SEND 7           /* the input goes to `peer`, whose RECV has the same tag */
#define MICA_RECV 8           /* the output comes from `peer` */
#define MICA_BARRIER 9        /* no memory */
#define MICA_COLLECTIVE_KINDS 10

/* Reductions. */
#define MICA_REDUCE_SUM 0
#define MICA_REDUCE_PRODUCT 1
#define MICA_REDUCE_MIN 2
#define MICA_REDUCE_MAX 3
#define MICA_REDUCE_BAND 4
#define MICA_REDUCE_BOR 5
#define MICA_REDUCE_BXOR 6
#define MICA_REDUCE_AVG 7

/* One call of a collective by one rank. Memory is dense; counts are in elements. */
typedef struct MicaCollective {
  uint64_t struct_size;
  int32_t kind;
  int32_t dtype;
  int32_t reduction; /* of the kinds that reduce */
  int32_t peer;      /* the root, or the other side of SEND and RECV; else 0 */
  int64_t tag;       /* of SEND and RECV */
  const void* input;
  void* output;
  int64_t input_count, output_count;
  const int64_t* input_splits; /* of ALL_TO_ALL, n numbers each; borrowed for the call of `start` */
  const int64_t* output_splits;
  MicaDevice device;
  int64_t item_size; /* bytes of an element */
} MicaCollective;

typedef struct MicaGroup MicaGroup; /* the engine's */
typedef struct MicaWork MicaWork;   /* a collective that was started; counted by the caller alone */

typedef struct MicaCollectives {
  MicaTable table;
  /* `name` is the same on all ranks of the group and no other group's. `timeout` (nanoseconds) holds for each
   * collective. `address` gets bytes that live as long as the group. */
  MicaStatus (*open)(MicaStr name, int32_t rank, int32_t size, int64_t timeout, MicaGroup** group,
                     MicaStr* address);
  MicaStatus (*connect)(MicaGroup* group, const MicaStr* addresses);
  /* Starts it. The engine calls `done(held)` once, on any thread, when it touches the memory no more, also
   * where start fails. */
  MicaStatus (*start)(MicaGroup* group, const MicaCollective* collective, void* held,
                      void (*done)(void* held), MicaWork** work);
  /* Waits for its end, at most `timeout` nanoseconds: `finished` says whether it came; the status is the
   * collective's own error. The group's timeout is such an error. */
  MicaStatus (*wait)(MicaWork* work, int64_t timeout, int32_t* finished);
  void (*release)(MicaWork* work); /* what was started goes on */
  /* This rank leaves: what it started and what others still wait for with it ends with an error. */
  void (*close)(MicaGroup* group);
} MicaCollectives;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* MICA_COLLECTIVES_H_ */
