// Attributes of mica.Tensor: what it is (shape, dtype, device, ...), its
// transposes, and its place in the autograd graph.
#include "bindings/python/src/autograd/graph_node.h"
#include "bindings/python/src/interception/override.h"
#include "bindings/python/src/operators/arguments.h"
#include "bindings/python/src/tensor/symbolic.h"
#include "dispatcher/calls/warn_once.h"
#include "dispatcher/frames/frames.h"
#include "dispatcher/plugins/host.h"
#include "mica/ops/adjoint.h"
#include "mica/ops/imag.h"
#include "mica/ops/permute.h"
#include "mica/ops/real.h"
#include "mica/ops/transpose.h"

namespace mica::python {
namespace {

#define MICA_GETTER(name, expression)     \
  PyObject* name(PyObject* self, void*) { \
    return Guarded([&]() -> PyObject* {   \
      const Tensor& t = Unwrap(self);     \
      return expression;                  \
    });                                   \
  }

MICA_GETTER(GetShape, ShapeOf(t))
MICA_GETTER(GetDType, FromDType(t.dtype()))
MICA_GETTER(GetDevice, FromDevice(t.device()))
MICA_GETTER(GetLayout, (static_cast<void>(t), FromLayout(Layout::kStrided)))
MICA_GETTER(GetNdim, PyLong_FromLongLong(t.ndim()))
MICA_GETTER(GetItemsize, PyLong_FromLongLong(t.itemsize()))
MICA_GETTER(GetNbytes, PyLong_FromLongLong(t.itemsize() * t.numel()))
uint32_t VersionOf(const Tensor& t) {
  MICA_CHECK(!t.is_inference(), "A tensor made in inference mode has no version.");
  return t.version();
}
MICA_GETTER(GetVersion, PyLong_FromUnsignedLong(VersionOf(t)))
MICA_GETTER(GetBase, Wrap(t.view_base()))
MICA_GETTER(GetIsCpu, NewBool(t.device().is_cpu()))
MICA_GETTER(GetIsMeta, NewBool(t.device().is_meta()))
MICA_GETTER(GetIsCuda, NewBool(BackendName(t.device().backend) == "cuda"))
MICA_GETTER(GetFalse, (static_cast<void>(t), NewBool(false)))
MICA_GETTER(GetReal, Wrap(ops::real(t)))
MICA_GETTER(GetImag, Wrap(ops::imag(t)))

Tensor Reversed(const Tensor& t) {
  if (t.ndim() != 2)
    WarnOnce("T",
             absl::StrCat("The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
                          "deprecated in PyTorch; this one has ",
                          t.ndim(),
                          ". Consider `x.mT` to transpose "
                          "batches of matrices or `x.permute(*range(x.ndim - 1, -1, -1))` to reverse the "
                          "dimensions of a tensor."));
  Dims dims;
  for (int64_t i = t.ndim() - 1; i >= 0; --i) dims.push_back(i);
  return ops::permute(t, dims);
}
Tensor MatrixTransposed(const Tensor& t) {
  MICA_CHECK(t.ndim() >= 2, "tensor.mT is only supported on matrices or batches of matrices. Got ", t.ndim(),
             "-D tensor.");
  return ops::transpose(t, -2, -1);
}
MICA_GETTER(GetT, Wrap(Reversed(t)))
MICA_GETTER(GetmT, Wrap(MatrixTransposed(t)))
Tensor ConjugateTransposed(const Tensor& t) {
  MICA_CHECK(t.ndim() == 2 || t.ndim() == 0, "tensor.H is only supported on matrices (2-D tensors). Got ",
             t.ndim(), "-D tensor.");
  return t.ndim() == 0 ? t : ops::adjoint(t);
}
MICA_GETTER(GetH, Wrap(ConjugateTransposed(t)))
MICA_GETTER(GetmH, Wrap(ops::adjoint(t)))

bool HasHistory(const Tensor& t) {
  return (t.impl()->extra && (t.impl()->extra->layer_state || t.impl()->extra->view_base)) ||
         frames::IsWrapper(t);
}

// Tensors without autograd state answer without the plugin.
Autograd AutogradOf(const Tensor& t) { return HasHistory(t) ? LoadedAutograd() : Autograd(nullptr); }

bool RequiresGrad(const Tensor& shown) {
  const Tensor t = frames::Behind(shown);
  if (t.requires_grad()) return true;
  const Autograd a = AutogradOf(t);
  return a && a.RequiresGrad(t);
}
bool IsLeaf(const Tensor& shown) {
  const Tensor t = frames::Behind(shown);
  const Autograd a = AutogradOf(t);
  return !a || a.IsLeaf(t);
}
PyObject* GetGradFn(PyObject* self, void*) {
  return Guarded([&] {
    const Tensor t = frames::Behind(Unwrap(self));
    const Autograd a = AutogradOf(t);
    NodePtr node = a ? a.GradFn(t) : NodePtr();
    if (node) Track(self);  // what is hung on the node is the tensor's, too
    return WrapNode(std::move(node));
  });
}
MICA_GETTER(GetRequiresGrad, NewBool(RequiresGrad(t)))
MICA_GETTER(GetIsLeaf, NewBool(IsLeaf(t)))
MICA_GETTER(GetRetainsGrad, NewBool(AutogradOf(t) && AutogradOf(t).RetainsGrad(t)))
PyObject* GetGrad(PyObject* self, void*) {
  return Guarded([&] {
    const Tensor t = frames::Behind(Unwrap(self));
    const Autograd a = AutogradOf(t);
    if (!a) return NewNone();
    Tensor grad = a.Grad(Resident(t));
    if (!grad.defined() && !a.IsLeaf(t) && !a.RetainsGrad(t)) {
      HostWarn(
          "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
          "won't "
          "be populated during backward(); call retain_grad() on it first, or ask autograd.grad for the "
          "gradient.");
    }
    return Wrap(std::move(grad));
  });
}
int64_t OutputNr(const Tensor& t) {
  const Autograd a = AutogradOf(t);
  return a ? a.OutputNr(t) : 0;
}
MICA_GETTER(GetOutputNr, PyLong_FromLongLong(OutputNr(t)))
MICA_GETTER(GetData, Wrap(GetAutograd().Data(t)))

void RefuseDeletion(PyObject* value, const char* name) {
  MICA_CHECK(value, "The attribute `", name, "` of a Tensor cannot be deleted.");
}
int SetRequiresGrad(PyObject* self, PyObject* value, void*) {
  return GuardedInt([&] {
    RefuseDeletion(value, "requires_grad");
    if (!PyBool_Check(value)) Raise(PyExc_TypeError, "requires_grad must be set to True or False.");
    if (value == Py_False && !HasHistory(Unwrap(self))) return 0;
    GetAutograd().SetRequiresGrad(Unwrap(self), value == Py_True);
    return 0;
  });
}
int SetGrad(PyObject* self, PyObject* value, void*) {
  return GuardedInt([&] {
    if (value && value != Py_None && !IsTensor(value)) {
      Raise(PyExc_TypeError,
            std::string("grad must be a Tensor or None; this value is of type (") + TypeName(value) + ").");
    }
    const bool clear = !value || value == Py_None;
    if (clear && !HasHistory(Unwrap(self))) return 0;
    GetAutograd().SetGrad(Resident(Unwrap(self)), clear ? Tensor() : Resident(Unwrap(value)));
    return 0;
  });
}
int SetData(PyObject* self, PyObject* value, void*) {
  return GuardedInt([&] {
    RefuseDeletion(value, "data");
    if (!IsTensor(value)) Raise(PyExc_TypeError, "data must be set to a Tensor.");
    GetAutograd().SetData(Unwrap(self), Unwrap(value));
    return 0;
  });
}
template <bool kReal>
int SetPart(PyObject* self, PyObject* value, void*) {
  return GuardedInt([&] {
    const Ref part = Own(kReal ? GetReal(self, nullptr) : GetImag(self, nullptr));
    return value ? PyObject_SetItem(part.get(), Py_Ellipsis, value) : -1;
  });
}

}  // namespace

PyGetSetDef kTensorAttributes[] = {
    {"shape", Asking<"shape", GetShape>::Get, nullptr, "The sizes of the dimensions, as a mica.Size.",
     nullptr},
    {"dtype", Asking<"dtype", GetDType>::Get, nullptr, "The type of the elements.", nullptr},
    {"device", Asking<"device", GetDevice>::Get, nullptr, "Where the elements are.", nullptr},
    {"layout", Asking<"layout", GetLayout>::Get, nullptr, "How the elements lie in memory: mica.strided.",
     nullptr},
    {"ndim", Asking<"ndim", GetNdim>::Get, nullptr, "The number of dimensions.", nullptr},
    {"itemsize", Asking<"itemsize", GetItemsize>::Get, nullptr, "The bytes of one element.", nullptr},
    {"nbytes", Asking<"nbytes", GetNbytes>::Get, nullptr, "The bytes of all elements.", nullptr},
    {"T", Asking<"T", GetT>::Get, nullptr, "A view with the dimensions in reverse order.", nullptr},
    {"mT", Asking<"mT", GetmT>::Get, nullptr, "A view with the last two dimensions exchanged.", nullptr},
    {"H", Asking<"H", GetH>::Get, nullptr, "The conjugate transpose of a matrix.", nullptr},
    {"mH", Asking<"mH", GetmH>::Get, nullptr, "The conjugate transpose of the last two dimensions.", nullptr},
    {"real", Asking<"real", GetReal>::Get, Asking<"real", SetPart<true>>::Set, "The real parts, as a view.",
     nullptr},
    {"imag", Asking<"imag", GetImag>::Get, Asking<"imag", SetPart<false>>::Set,
     "The imaginary parts, as a view.", nullptr},
    {"requires_grad", Asking<"requires_grad", GetRequiresGrad>::Get,
     Asking<"requires_grad", SetRequiresGrad>::Set, "Whether a gradient is wanted.", nullptr},
    {"grad", Asking<"grad", GetGrad>::Get, Asking<"grad", SetGrad>::Set,
     "The gradient that backward() has added up, or None.", nullptr},
    {"grad_fn", Asking<"grad_fn", GetGradFn>::Get, nullptr,
     "The node that made this tensor, None for a leaf.", nullptr},
    {"is_leaf", Asking<"is_leaf", GetIsLeaf>::Get, nullptr,
     "Whether the tensor was made by the user or needs no gradient.", nullptr},
    {"retains_grad", Asking<"retains_grad", GetRetainsGrad>::Get, nullptr,
     "Whether an interior tensor keeps its gradient.", nullptr},
    {"output_nr", Asking<"output_nr", GetOutputNr>::Get, nullptr, "Which result of grad_fn this tensor is.",
     nullptr},
    {"data", Asking<"data", GetData>::Get, Asking<"data", SetData>::Set, "The same elements without history.",
     nullptr},
    {"_version", Asking<"_version", GetVersion>::Get, nullptr, "How often the storage was written in place.",
     nullptr},
    {"_base", Asking<"_base", GetBase>::Get, nullptr, "The tensor of which this one is a view, or None.",
     nullptr},
    {"is_cpu", Asking<"is_cpu", GetIsCpu>::Get, nullptr, "Whether the device is cpu.", nullptr},
    {"is_meta", Asking<"is_meta", GetIsMeta>::Get, nullptr, "Whether the tensor has no memory.", nullptr},
    {"is_cuda", Asking<"is_cuda", GetIsCuda>::Get, nullptr, "Whether the device is cuda.", nullptr},
    {"is_sparse", Asking<"is_sparse", GetFalse>::Get, nullptr, "False: tensors are strided.", nullptr},
    {"is_quantized", Asking<"is_quantized", GetFalse>::Get, nullptr,
     "False: there are no quantized dtypes yet.", nullptr},
    {"is_nested", Asking<"is_nested", GetFalse>::Get, nullptr, "False: there are no nested tensors.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace mica::python
