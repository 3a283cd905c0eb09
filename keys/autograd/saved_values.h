// SavedVisitor: what a node keeps for its backward, shown by name.
//
// Generated nodes call it with each member: tensors, lists of tensors, plain values
// (as a schema::Value), and of tensors whose look alone is kept, the sizes. It serves
// grad_fn._saved_* in Python; backward itself never comes here.
#pragma once

#include <optional>
#include <vector>

#include "keys/autograd/saved_tensor.h"
#include "schema/value.h"

namespace mica::autograd {

// A list of saved tensors.
class SavedTensors {
 public:
  void Save(TensorSpan list);
  std::vector<Tensor> Unpack(Node* owner) const;
  void Reset();
  int64_t size() const { return size_; }
  SavedTensor& operator[](int64_t i) { return items_[static_cast<size_t>(i)]; }

 private:
  std::unique_ptr<SavedTensor[]> items_;
  int64_t size_ = 0;
};

// How the tensors of a list look whose values are not saved; read as tensors are.
class SavedLook {
 public:
  explicit SavedLook(const Tensor& t) { info_.Set(t); }
  IntSpan sizes() const { return info_.sizes(); }
  int64_t size(int64_t dim) const { return info_.size(dim); }
  int64_t ndim() const { return info_.ndim; }
  int64_t numel() const { return info_.numel(); }
  DType dtype() const { return info_.dtype; }
  Device device() const { return info_.device; }

 private:
  OutputInfo info_;
};
class SavedLooks {
 public:
  void Set(TensorSpan list) { looks_ = std::vector<SavedLook>(list.begin(), list.end()); }
  auto begin() const { return looks_.begin(); }
  auto end() const { return looks_.end(); }

 private:
  std::vector<SavedLook> looks_;
};

class SavedVisitor {
 public:
  virtual void VisitTensor(const char* name, SavedTensor& tensor) = 0;
  virtual void VisitTensors(const char* name, SavedTensors& tensors) = 0;
  virtual void VisitValue(const char* name, Value value) = 0;

  void operator()(const char* name, SavedTensor& tensor) { VisitTensor(name, tensor); }
  void operator()(const char* name, SavedTensors& tensors) { VisitTensors(name, tensors); }
  template <typename T>
  void operator()(const char* name, const T& value) {
    VisitValue(name, ValueOf(value));
  }

 protected:
  ~SavedVisitor() = default;

 private:
  static Value ValueOf(const OutputInfo& info) { return Value(info.sizes()); }
  static Value ValueOf(const std::vector<uint8_t>& bools) { return Value::Bools(bools); }
  static Value ValueOf(const Generator*) { return Value(); }
  template <typename T>
  static Value ValueOf(const std::optional<T>& value) {
    return value ? ValueOf(*value) : Value();
  }
  template <typename T>
  static Value ValueOf(const T& value) {
    return Value(value);
  }
};

}  // namespace mica::autograd
