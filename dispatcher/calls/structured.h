// Structured kernels: the host computes shapes and dtypes, allocates, resizes or
// checks the outputs, and hands a leaf kernel outputs that are ready.
//
// One boxed function serves all three forms of all operators: functional (fresh
// outputs), in-place (the first argument is the output), out (given outputs).
// It also does what must be done once a call for every kernel, a vendor's
// included: version bumps, inference-mode checks, overlap checks.
#pragma once

#include "dispatcher/tables/operator.h"
#include "tensor/tensor.h"

namespace mica {

struct EarlierSchema;  // dispatcher/registration/earlier_schema.h

struct StructuredContext {
  const OperatorSpec* functional = nullptr;
  const OperatorSpec* out = nullptr;  // NULL if there is none
  // The backend's own kernel, one of the two, and its kernel for the class, which
  // runs where the first is missing or refuses; none on meta.
  MicaFunction leaf = nullptr;
  MicaBoxedFunction leaf_boxed = nullptr;
  void* kernel_context = nullptr;
  bool takes_opaque = false;               // of that kernel
  const EarlierSchema* earlier = nullptr;  // what the kernel was built for, where that is not the present
  MicaClassFunction class_fn = nullptr;
  MicaClassListFunction class_list_fn = nullptr;  // of the same kernel, or NULL
  void* class_context = nullptr;
  // What an override has replaced runs where the override refuses: the next older kernel of its own, and of
  // the class, each in a context that has it alone.
  const StructuredContext* replaced_leaf = nullptr;
  const StructuredContext* replaced_class = nullptr;
  // Taken when the kernel answers NOT_IMPLEMENTED.
  MicaFunction portable = nullptr;
  MicaClassFunction portable_class = nullptr;
  MicaFunction composite = nullptr;            // of this very form, in layer convention
  const BoxedKernel* decomposition = nullptr;  // the same, registered at run time
  bool meta_only = false;
  bool operator==(const StructuredContext&) const = default;
};

// BoxedFunctions; the kernel's context is given in parentheses.
void RunStructured(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
                   MicaValue* results);  // (StructuredContext*)
void RunLeaf(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
             MicaValue* results);  // (StructuredContext*: leaf of this very form)
// A write to a meta tensor by an operator that is not structured: of the version alone.
void RunMetaWrite(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
                  MicaValue* results);
void RunView(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
             MicaValue* results);  // (none)
// A composite at Autograd that has a kernel of a backend: what is below where nothing
// is recorded, else the decomposition.
void RunUnlessRecorded(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args,
                       int64_t n,
                       MicaValue* results);  // (StructuredContext*: composite or decomposition)
// On a device without a kernel for a structured operator: its checks, then what it is made of.
void RunParts(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
              MicaValue* results);  // (StructuredContext*: composite)
// In-place and out forms of a composite: the functional form, then a copy.
void RunThroughFunctional(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args,
                          int64_t n,
                          MicaValue* results);  // (Operator*: the functional form)
// An overload of numbers: the one of Tensors, the numbers as 0-d tensors.
void RunWithTensors(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
                    MicaValue* results);  // (Operator*: of Tensors)
// Opens the plugin that is missing and calls again, or throws the sentence that
// says which is missing.
void RunMissing(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
                MicaValue* results);  // (a backend's bit)
// Of an operator whose plugin or library is gone, at every bit: says so, to who kept a handle.
void RunGone(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
             MicaValue* results);
// As RunMissing, at a layer whose tensors no kernel may read: of keys::kLazy, or Opaque.
void RunUnserved(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
                 MicaValue* results);  // (the layer's bit)
// At a layer whose plugin is disabled: below for calls that do without the layer, an error for others.
void RunAsleep(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
               MicaValue* results);  // (the layer's bit)

// Throws when the tensor is read-only or was made in an inference mode that is over; then
// tells who watches that it is written next.
void CheckWritable(const Tensor& t, const OperatorSpec& spec);
// After a write: the next version, and its name for whoever watches.
void MarkWritten(const Tensor& t, const OperatorSpec& spec);

}  // namespace mica
