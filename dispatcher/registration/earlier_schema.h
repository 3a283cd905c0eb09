// Kernels and calls of plugins that were built for an earlier schema of an operator, which has got further
// arguments since.
//
// An EarlierSchema is made when such a kernel is registered and lives as long as its
// operator. A call in which every new argument holds its default goes to the kernel
// without them; any other is for whoever comes after it, as if it had answered
// NOT_IMPLEMENTED.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "dispatcher/calls/adapters.h"
#include "dispatcher/calls/kernel_call.h"
#include "dispatcher/devices/opaque.h"
#include "schema/value.h"

namespace mica {

struct EarlierSchema {
  const SchemaGeneration* generation;
  std::vector<int> kept;                        // by the earlier argument, the present one's number
  std::vector<std::pair<int, Value>> left_out;  // the new arguments, with their defaults
  std::string names;                            // of those: "`extra` and `mode`"
};

// The earlier schema that a plugin calls `op` by which passes so many arguments; NULL where they are the
// present ones, or none fits. Once found it stays.
const EarlierSchema* EarlierCall(const Operator& op, int64_t num_args);
// The present arguments of such a call: the new ones hold their defaults. Borrowed.
absl::InlinedVector<MicaValue, 8> Filled(const EarlierSchema& earlier, const MicaValue* args);

// What a kernel of that schema needs to serve `op`; throws a kRuntime Error where it cannot.
EarlierSchema AdaptTo(const Operator& op, const SchemaGeneration& generation);

// CallLeaf for a kernel of `c.earlier`.
MicaStatus CallEarlier(const StructuredContext& c, const MicaCall& call, const MicaValue* args,
                       MicaValue* results, int64_t num_results);

// Calls the backend's own kernel in `c`, which is one for `form`, from that form's
// arguments; where it refuses, the kernels that it has replaced. What they answer comes back.
inline MicaStatus CallLeaf(const StructuredContext& c, const OperatorSpec& form, MicaCall& call,
                           const MicaValue* args, int64_t n, MicaValue* results, int64_t num_results) {
  MicaStatus status;
  const StructuredContext* k = &c;
  do {
    call.context = k->kernel_context;
    status = __builtin_expect(k->earlier != nullptr, 0) ? CallEarlier(*k, call, args, results, num_results)
             : k->leaf ? form.adapters->call_leaf(k->leaf, &call, args, n, nullptr, results)
                       : k->leaf_boxed(&call, args, n, results, num_results);
    k = k->replaced_leaf;
    if (k && !k->takes_opaque && Refused(status)) MakeMemoryOf(args, n);
  } while (k && Refused(status));
  return status;
}

}  // namespace mica
