// The class kernels of the portable interpreter that move elements: gather and
// scatter, each one function for all operators of its class.
#include <algorithm>
#include <cstring>

#include "dispatcher/plugins/status.h"
#include "dispatcher/tables/operator_spec.h"
#include "kernels/portable/machine.h"
#include "kernels/portable/places.h"
#include "mica/kernels/portable_declarations.h"
#include "tensor/shape.h"

namespace mica::portable {
namespace {

const Tensor& TensorArg(const MicaValue* args, int32_t i) { return Tensor::Ref(args[i].u.tensor); }

// The bytes of one element of value `v`.
Bytes16 BytesOf(const Scalar& v, DType dtype) {
  Bytes16 bytes{0, 0};
  const int64_t zero = 0;
  const Complex c = v.ToComplex();
  const bool whole = v.is_int() || v.is_bool(), beyond = whole && c.real() >= 0x1p63;
  if (beyond && dtype == DType::kU64) {
    const uint64_t u = v.To<uint64_t>();
    std::memcpy(&bytes, &u, sizeof u);
    return bytes;
  }
  const bool exact = whole && !beyond;
  const int64_t i = exact ? v.ToInt() : 0;
  if (exact && !IsComplex(dtype))
    StoreLanes(Lane::kI64, dtype, &i, reinterpret_cast<char*>(&bytes), &zero, 1);
  else
    StoreLanes(Lane::kC128, dtype, &c, reinterpret_cast<char*>(&bytes), &zero, 1);
  return bytes;
}

// One row of `count` elements of T at `out`. A stretch of neighbours moves at once.
template <typename T>
void GatherRow(const PlaceRow& row, const char* data, T fill, T* out) {
  const auto count = static_cast<int64_t>(row.last.size());
  if (row.base < 0) return void(std::fill_n(out, count, fill));
  const char* from = data + row.base;
  for (int64_t j = 0, next; j < count; j = next) {
    const int64_t place = row.last[static_cast<size_t>(j)];
    const auto follows = [&](int64_t k) {
      return row.last[static_cast<size_t>(k)] ==
             (place < 0 ? -1 : place + (k - j) * static_cast<int64_t>(sizeof(T)));
    };
    for (next = j + 1; next < count && follows(next);) ++next;
    if (place < 0)
      std::fill_n(out + j, next - j, fill);
    else if (next == j + 1)
      out[j] = *reinterpret_cast<const T*>(from + place);
    else
      std::memcpy(out + j, from + place, static_cast<size_t>(next - j) * sizeof(T));
  }
  for (int64_t j = 0; row.kept && j < count; ++j)
    if (row.kept[j] == 0) out[j] = fill;
}

// False where the operator's coordinates do not separate by dimension.
bool GatherRows(const MicaProgram& p, const MicaValue* args, const Tensor& data, const Bytes16& fill,
                const Tensor& out) {
  if (!out.is_contiguous()) return false;
  bool separable = false;
  VisitSize(out.itemsize(), [&]<typename T>() {
    T* to = out.data_as<T>();
    separable = ForEachPlaceRow(p, args, data, out.sizes(), [&](const PlaceRow& row) {
      GatherRow<T>(row, data.data_as<char>(), *reinterpret_cast<const T*>(&fill), to);
      to += row.last.size();
    });
  });
  return separable;
}

MicaStatus RunGather(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
                     int64_t) {
  return CatchAll([&] {
    const MicaProgram& p = *call->program;
    const Tensor& out = Tensor::Ref(outputs[0]);
    if (out.numel() == 0) return;  // an empty index may have fewer dimensions than the data
    const Tensor& data = TensorArg(args, p.data_arg);
    const Scalar number = p.fill_arg < 0 ? Scalar(0) : Scalar::FromAbi(args[p.fill_arg].u.scalar);
    const Bytes16 fill = BytesOf(number, out.dtype());
    if (GatherRows(p, args, data, fill, out)) return;
    const std::vector<int64_t> from = PlacesOf(p, args, data, out.sizes()), to = AllOffsets(out);
    VisitSize(out.itemsize(), [&]<typename T>() {
      for (size_t i = 0; i < to.size(); ++i)
        *reinterpret_cast<T*>(out.data_as<char>() + to[i]) =
            from[i] < 0 ? *reinterpret_cast<const T*>(&fill)
                        : *reinterpret_cast<const T*>(data.data_as<char>() + from[i]);
    });
  });
}

// The elements to scatter in row-major order: of the index's shape, where the
// index has one, the leading part of the source.
template <typename T>
std::vector<T> SourceLanes(const Tensor& source, IntSpan side) {
  std::vector<T> out(static_cast<size_t>(CheckedNumel(side)));
  std::vector<int64_t> at(out.size());
  const Dims none(static_cast<size_t>(side.size()), 0);
  Offsets(side, source.ndim() == side.size() ? source.strides() : IntSpan(none), source.itemsize())
      .Next(at.data(), static_cast<int64_t>(at.size()));
  LoadLanes(kLaneFor<T>, source.dtype(), source.data_as<char>(), at.data(), static_cast<int64_t>(at.size()),
            out.data());
  return out;
}

// One element after the other, since two may go to one place.
template <typename T>
void Scatter(const MicaCall* call, const MicaValue* args, const Tensor& out) {
  const MicaProgram& p = *call->program;
  copy_(out, TensorArg(args, p.data_arg), false);
  const bool whole = p.index_arg >= 0 && p.index_place == MICA_INDEX_WHOLE;
  if (whole && TensorArg(args, p.index_arg).numel() == 0) return;  // it may have fewer dimensions
  const IntSpan side = whole              ? TensorArg(args, p.index_arg).sizes()
                       : p.source_arg < 0 ? IntSpan()
                                          : TensorArg(args, p.source_arg).sizes();
  const std::vector<int64_t> to = PlacesOf(p, args, out, side);
  std::vector<T> elements;
  if (p.source_arg >= 0)
    elements = whole ? SourceLanes<T>(TensorArg(args, p.source_arg), side)
                     : ToLanes<T>(TensorArg(args, p.source_arg));
  Machine<T> machine(p, args, out.dtype());
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] < 0) continue;
    LoadLanes(kLaneFor<T>, out.dtype(), out.data_as<char>(), &to[i], 1, machine.state(0));
    if (!elements.empty()) machine.element()[0] = elements[i];
    machine.Run(p.main, 1);
    StoreLanes(kLaneFor<T>, out.dtype(), machine.state(0), out.data_as<char>(), &to[i], 1);
  }
}

MicaStatus RunScatter(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
                      int64_t) {
  return CatchAll([&] {
    const Tensor& out = Tensor::Ref(outputs[0]);
    VisitLane(LaneOf(out.dtype()), [&]<typename T>() { Scatter<T>(call, args, out); });
  });
}

[[maybe_unused]] const bool kRegistered = [] {
  SetPortableClass(OpClass::kGather, &RunGather);
  SetPortableClass(OpClass::kScatter, &RunScatter);
  return true;
}();

}  // namespace
}  // namespace mica::portable
