// A tensor's life: factories, views, versions, resizing, storage, Python hooks.
#include <cstring>
#include <vector>

#include "tensor/allocator.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"
#include "test/support/mica_test.h"

namespace mica {
namespace {

std::vector<int64_t> List(IntSpan s) { return {s.begin(), s.end()}; }

TEST_CASE("empty tensors have their face filled in", "[tensor]") {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType d = static_cast<DType>(i);
    const Tensor t = EmptyTensor({2, 3}, d, Device{});
    CHECK(t.dtype() == d);
    CHECK(t.device().is_cpu());
    CHECK(List(t.strides()) == std::vector<int64_t>{3, 1});
    CHECK(t.is_contiguous());
    CHECK(reinterpret_cast<uintptr_t>(t.data()) % 64 == 0);
    CHECK(t.storage()->nbytes() == 6 * ItemSize(d));
    CHECK(t.impl()->has_flag(MICA_TENSOR_HAS_DATA));
    CHECK(t.keys() == KeySet::Of(keys::kCpu));
    std::memset(t.data(), 1, 6 * ItemSize(d));
  }
  CHECK(EmptyTensor({}, DType::kF32, Device{}).numel() == 1);
  const Tensor none = EmptyTensor({2, 0}, DType::kF32, Device{});
  CHECK(none.numel() == 0);
  CHECK(none.is_contiguous());
  CHECK(EmptyTensor({2, 3}, DType::kF32, Device{}).ToString() == "float32[2, 3] on cpu");
  MICA_REQUIRE_ERROR(none.size(2), "out of range");
  CHECK(none.size(-1) == 0);
}

TEST_CASE("more than five dimensions and channels_last", "[tensor]") {
  const Tensor seven = EmptyTensor({1, 2, 3, 1, 2, 3, 2}, DType::kI16, Device{});
  CHECK(seven.ndim() == 7);
  CHECK(seven.numel() == 72);
  CHECK(seven.impl()->has_flag(tensor_flags::kExternalDims));
  seven.impl()->SetSizesStrides({72}, {1});
  CHECK_FALSE(seven.impl()->has_flag(tensor_flags::kExternalDims));
  const Tensor image = EmptyTensor({2, 3, 4, 5}, DType::kF32, Device{}, MemoryFormat::kChannelsLast);
  CHECK(image.is_contiguous(MemoryFormat::kChannelsLast));
  CHECK_FALSE(image.is_contiguous());
  CHECK(EmptyTensor({2, 1, 4, 5}, DType::kF32, Device{}).is_contiguous(MemoryFormat::kChannelsLast));
}

TEST_CASE("absurd sizes end in an Error", "[tensor]") {
  const int64_t huge = int64_t{1} << 40;
  MICA_REQUIRE_ERROR(EmptyTensor({huge}, DType::kF64, Device{}),
                     "The device cpu has no memory for a request of 8796093022208 bytes");
  MICA_REQUIRE_ERROR(EmptyTensor({huge, huge}, DType::kF32, Device{}), "2^63 - 1");
  MICA_REQUIRE_ERROR(EmptyTensor({int64_t{1} << 61}, DType::kF64, Device{}), "2^63 - 1 bytes");
  MICA_REQUIRE_ERROR(EmptyTensor({int64_t{1} << 59}, DType::kF64, Device{}), "no memory");
  MICA_REQUIRE_ERROR(EmptyTensor({3, -2}, DType::kF32, Device{}), "negative dimension -2");
  MICA_REQUIRE_ERROR(EmptyTensor({1, 1, 1, 1, 1, -2}, DType::kF32, Device{}), "negative dimension -2");
  MICA_REQUIRE_ERROR(EmptyStrided({2}, {-1}, DType::kF32, Device{}),
                     "The stride (-1) of dimension (0) is negative");
  MICA_REQUIRE_ERROR(EmptyStrided({2}, {1, 1}, DType::kF32, Device{}), "number of strides (2)");
  MICA_REQUIRE_ERROR(EmptyStrided({3, 3}, {int64_t{1} << 62, 1}, DType::kF32, Device{}), "2^63 - 1 bytes");
  try {
    EmptyTensor({huge}, DType::kF64, Device{});
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::kOutOfMemory);
  }
  const Tensor meta = EmptyTensor({huge}, DType::kF64, Device{1, 0});  // shape alone: fine
  CHECK(meta.numel() == huge);
  CHECK_FALSE(meta.impl()->has_flag(MICA_TENSOR_HAS_DATA));
}

TEST_CASE("views share storage, version and root", "[tensor]") {
  const Tensor base = EmptyTensor({4, 3}, DType::kF32, Device{});
  const Tensor row = MakeView(base, {3}, {1}, 24);
  const Tensor element = MakeView(row, {}, {}, 28);
  CHECK(row.data() == static_cast<char*>(base.data()) + 24);
  CHECK(row.storage() == base.storage());
  CHECK(row.storage_offset() == 6);
  CHECK(element.view_base().is_same(base));
  CHECK(row.keys().has(keys::kAutograd));
  base.impl()->storage->BumpVersion();
  CHECK(element.version() == 1);
  CHECK_FALSE(base.is_view());
  const Tensor detached = MakeView(base, {3}, {1}, 0, true);
  CHECK_FALSE(detached.is_view());
  CHECK_FALSE(detached.keys().has(keys::kAutograd));
  CHECK_FALSE(MakeView(EmptyTensor({2}, DType::kI64, Device{}), {2}, {1}, 0).keys().has(keys::kAutograd));
  const Tensor meta = EmptyTensor({4, 3}, DType::kF32, Device{1, 0});
  CHECK(MakeView(meta, {3}, {1}, 12).storage_offset() == 3);
  const Tensor bytes = MakeViewAs(base, {48}, {1}, 0, DType::kU8);
  CHECK(bytes.dtype() == DType::kU8);
  MICA_REQUIRE_ERROR(MakeView(base, {13}, {1}, 0), "out of bounds for storage of size 48");
  MICA_REQUIRE_ERROR(MakeView(base, {3}, {1}, 40), "are out of bounds for storage of size 48");
  MICA_REQUIRE_ERROR(MakeView(base, {3}, {-1}, 8), "is negative");
  MICA_REQUIRE_ERROR(MakeView(base, {3}, {1}, -4), "are out of bounds for storage of size 48");
  MakeView(base, {0}, {1}, 48);  // nothing at the very end is fine
}

TEST_CASE("an inner view is the first element along what it hides", "[tensor]") {
  const Tensor base = EmptyTensor({4, 3, 2}, DType::kF32, Device{});
  const Tensor columns = MakeView(base, {2, 4, 2}, {2, 6, 1}, 8);
  const Tensor inner = MakeInnerView(columns, 1), same = MakeInnerView(columns, 0);
  CHECK(inner.sizes() == IntSpan({4, 2}));
  CHECK(inner.strides() == IntSpan({6, 1}));
  CHECK(inner.data() == columns.data());
  CHECK(inner.storage() == base.storage());
  CHECK_FALSE(inner.is_contiguous());
  CHECK(MakeInnerView(base, 1).is_contiguous());
  CHECK(MakeInnerView(base, 3).sizes().empty());
  CHECK_FALSE(inner.is_view());
  CHECK_FALSE(inner.keys().has(keys::kAutograd));
  CHECK(same.sizes() == columns.sizes());
  CHECK(same.strides() == columns.strides());
  const Tensor many =
      EmptyTensor({1, 1, 1, 1, 1, 1, 2}, DType::kF32, Device{});  // dims in memory of their own
  CHECK(MakeInnerView(many, 0).sizes() == many.sizes());
  CHECK(MakeInnerView(EmptyTensor({0, 3}, DType::kF32, Device{}), 1).sizes() == IntSpan({3}));
}

TEST_CASE("a view outlives its base", "[tensor]") {
  Tensor base = EmptyTensor({4}, DType::kF32, Device{});
  base.data_as<float>()[3] = 7;
  const Tensor view = MakeView(base, {1}, {1}, 12);
  base.reset();
  CHECK(view.data_as<float>()[0] == 7);
  CHECK(view.view_base().numel() == 4);
}

TEST_CASE("inference mode marks tensors and views", "[tensor]") {
  const Tensor normal = EmptyTensor({2}, DType::kF32, Device{});
  SetInferenceMode(true);
  const Tensor inside = EmptyTensor({2}, DType::kF32, Device{});
  const Tensor view = MakeView(normal, {1}, {1}, 0);
  SetInferenceMode(false);
  CHECK(inside.is_inference());
  CHECK_FALSE(view.is_inference());
  CHECK(view.keys().has(keys::kAutograd));  // a write outside would give it history
  CHECK(view.impl()->extra->view_creation == static_cast<uint8_t>(ViewCreation::kInference));
  const Tensor outside = MakeView(inside, {1}, {1}, 0);
  CHECK(outside.is_inference());
  CHECK_FALSE(outside.keys().has(keys::kAutograd));
}

TEST_CASE("numbers become weak 0-d tensors", "[tensor]") {
  const Tensor t = WrappedNumber(Scalar(2.5));
  CHECK(t.is_wrapped_number());
  CHECK(t.ndim() == 0);
  CHECK(*t.data_as<double>() == 2.5);
  CHECK(*WrappedNumber(Scalar(true)).data_as<bool>());
  CHECK(*WrappedNumber(Scalar(-4)).data_as<int64_t>() == -4);
  CHECK(*WrappedNumber(Scalar(std::complex<double>(1, 2))).data_as<std::complex<double>>() ==
        std::complex<double>(1, 2));
}

TEST_CASE("tensors resize and keep their contents", "[tensor]") {
  const Tensor t = EmptyTensor({4}, DType::kI32, Device{});
  for (int i = 0; i < 4; ++i) t.data_as<int32_t>()[i] = i;
  for (int64_t n : {8, 100, 20000, 3, 1000000}) {
    ResizeTensor(t, {n}, {1});
    CHECK(t.numel() == n);
    CHECK(t.data_as<int32_t>()[2] == 2);
    std::memset(t.data_as<int32_t>() + 3, 0, (n - 3) * 4);
  }
  const Tensor view = MakeView(t, {2}, {1}, 0);
  const Tensor deep = MakeView(t, {1, 1, 1, 1, 1, 2}, {2, 2, 2, 2, 2, 1}, 4);
  const void* before = t.data();
  ResizeTensor(view, {4000000}, {1});
  CHECK(view.data() != before);
  CHECK(t.data() == view.data());
  CHECK(deep.data() == t.data_as<int32_t>() + 1);
  CHECK(deep.data_as<int32_t>()[1] == 2);
  static int deleted = 0;
  deleted = 0;
  int32_t memory[4] = {1, 2, 3, 4};
  {
    const Storage foreign = Storage::FromMemory(
        memory, 16, Device{}, [](void*) { ++deleted; }, nullptr);
    const Tensor f = Tensor::Steal(TensorImpl::Make(foreign, 0, {4}, {1}, DType::kI32));
    CHECK(f.data_as<int32_t>()[3] == 4);
    MICA_REQUIRE_ERROR((ResizeTensor(f, {8}, {1}), 0), "holds foreign memory");
  }
  CHECK(deleted == 1);
}

struct CountedState : LayerState {
  explicit CountedState(int* c) : count(c) {}
  ~CountedState() override { ++*count; }
  int* count;
};

TEST_CASE("what hangs on a tensor goes with it once", "[tensor]") {
  int count = 0;
  int extension = 0;
  {
    Tensor t = EmptyTensor({2}, DType::kF32, Device{});
    t.impl()->EnsureExtra().layer_state = new CountedState(&count);
    t.impl()->extra->extension = &extension;
    t.impl()->extra->extension_deleter = [](void* p) { ++*static_cast<int*>(p); };
    Tensor copy = t;
    Tensor moved = std::move(t);
    moved = copy;
    CHECK(moved.impl()->refs().load() == 2);
    CHECK(count == 0);
  }
  CHECK(count == 1);
  CHECK(extension == 1);
}

int g_calls = 0;
TensorImpl* g_kept = nullptr;

TEST_CASE("the last reference asks the Python side", "[tensor]") {
  int object = 0;
  g_calls = 0;
  g_pyobject_hooks.last_reference = [](TensorImpl* impl) {
    ++g_calls;
    if (g_calls == 1) {
      impl->Retain();  // something during the call takes a new reference
      g_kept = impl;
      return;
    }
    impl->pyobject = nullptr;
  };
  Tensor t = EmptyTensor({2}, DType::kF32, Device{});
  t.impl()->pyobject = &object;
  t.reset();
  REQUIRE(g_calls == 1);
  Tensor again = Tensor::Steal(g_kept);
  CHECK(again.impl()->refs().load() == 1);
  CHECK(again.numel() == 2);
  again.reset();
  CHECK(g_calls == 2);
  g_pyobject_hooks.last_reference = nullptr;
}

struct Counted : DeferredElements {
  int* writes;
  bool fails = false;
  explicit Counted(int* w) : writes(w) {}
  Storage InMemory() override {
    MICA_CHECK(!fails, "out of reach");
    Storage made = Storage::Allocate(24, Device{});
    for (int i = 0; i < 6; ++i) static_cast<float*>(made->data())[i] = static_cast<float>(i);
    ++*writes;
    return made;
  }
};

TEST_CASE("deferred elements are written once, when somebody reads or moves them", "[tensor]") {
  int writes = 0;
  const auto make = [&] {
    return MakeDeferred({2, 3}, DType::kF32, Device{}, std::make_shared<Counted>(&writes));
  };
  const Tensor t = make();
  const Tensor row = MakeView(t, {3}, {1}, 12), inner = MakeInnerView(row, 1);
  CHECK(t.is_contiguous());
  CHECK(row.storage_offset() == 3);
  CHECK(t.storage_offset() == 0);
  CHECK(row.keys().has(keys::kOpaque));
  CHECK(t.impl()->storage->nbytes() == 24);
  CHECK(t.impl()->storage->deferred() != nullptr);
  REQUIRE(writes == 0);
  CHECK(row.data_as<float>()[1] == 4);
  CHECK(inner.data_as<float>()[0] == 3);
  CHECK(t.data_as<float>() + 3 == row.data_as<float>());
  CHECK(row.storage_offset() == 3);
  CHECK(t.impl()->storage->deferred() == nullptr);
  CHECK(writes == 1);
  const Tensor later = MakeView(t, {2}, {3}, 4);
  CHECK_FALSE(later.keys().has(keys::kOpaque));  // of memory that is there
  CHECK(later.data_as<float>()[0] == 1);

  const Tensor grown = make(), part = MakeView(grown, {2}, {1}, 8);
  ResizeTensor(grown, {100, 3}, {3, 1});  // the memory is made, and moves
  CHECK(grown.data_as<float>()[5] == 5);
  CHECK(part.data_as<float>() == grown.data_as<float>() + 2);
  CHECK(writes == 2);

  const Tensor moved = make(), other = EmptyTensor({2, 3}, DType::kF32, Device{});
  const Tensor of_moved = MakeView(moved, {1}, {1}, 16);
  moved.impl()->storage->MoveTensors(nullptr, other.impl()->storage);
  CHECK(moved.data() == other.data());
  CHECK(of_moved.data_as<float>() == other.data_as<float>() + 4);
  CHECK(writes == 2);
}

TEST_CASE("deferred elements that cannot be written leave the tensor as it was", "[tensor]") {
  int writes = 0;
  const auto elements = std::make_shared<Counted>(&writes);
  const Tensor t = MakeDeferred({6}, DType::kF32, Device{}, elements);
  elements->fails = true;
  MICA_REQUIRE_ERROR(t.data(), "out of reach");
  MICA_REQUIRE_ERROR(t.storage(), "out of reach");
  CHECK(t.impl()->has_flag(MICA_TENSOR_OPAQUE));
  elements->fails = false;
  CHECK(t.data_as<float>()[5] == 5);
  MICA_REQUIRE_ERROR(MakeDeferred({INT64_C(1) << 62}, DType::kF32, Device{}, elements),
                     "Storage size calculation overflowed");
}

TEST_CASE("an Error takes its context once", "[tensor]") {
  Error e(ErrorKind::kValue, "One.", "f.cc", 3);
  e.AddContext("add.Tensor");
  e.AddContext("outer");
  CHECK(e.message() == "One.\n  in add.Tensor");
  MICA_REQUIRE_ERROR(([] { MICA_INTERNAL(1 == 2, "the sum (", 3, ") is odd."); }(), 0),
                     "Internal error: the sum (3) is odd.");
}

}  // namespace
}  // namespace mica
