// A call that reads each element of its result from somewhere in its data (gather.h),
// and the text of its kernel (gather_source.h).
#pragma once

#include <string>
#include <vector>

#include <mica/kit/lanes.h>
#include <mica/kit/programs.h>

namespace mica {
namespace kit {
namespace gather {

// How a coordinate of the data comes about.
struct Source {
  int side = -1;       // the result's dimension that it follows, if any
  int index = -1;      // the index tensor that it is read from, if any
  bool named = false;  // the program says it
};

// An index tensor, with a stride for each dimension of the result.
struct Index {
  const MicaTensor* tensor;
  std::vector<int64_t> strides;
};

struct Gather {
  const MicaCall* call;
  const MicaValue* args;
  const MicaProgram* program = nullptr;  // NULL: coordinates are the indices' values
  plugin::TensorRef data, out;
  std::vector<int64_t> data_sizes, data_strides, side_sizes, side_strides;
  std::vector<Source> sources;  // one for each dimension of the data; one in all if flat
  std::vector<Index> indices;
  bool flat = false;
  bool wraps = false;  // negative indices count from the end
  bool small = false;  // offsets fit 31 bits
  int64_t bytes = 0;   // of what moves as one: an element, or as many neighbours as make 16 bytes
  int64_t each = 1;    // elements of a work-item
  int32_t bounds = MICA_BOUNDS_ERROR;

  Gather(const MicaCall* c, const MicaValue* a, const MicaTensor* from, const MicaTensor* to)
      : call(c), args(a), data(from), out(to) {
    const auto dims = [](const plugin::TensorRef& t, std::vector<int64_t>* sizes,
                         std::vector<int64_t>* strides) {
      sizes->assign(t.sizes(), t.sizes() + t.ndim());
      strides->assign(t.strides(), t.strides() + t.ndim());
      if (t.ndim() == 0) sizes->assign(1, 1), strides->assign(1, 0);
    };
    dims(data, &data_sizes, &data_strides);
    dims(out, &side_sizes, &side_strides);
    bytes = out.itemsize();
  }
  size_t ndim() const { return data_sizes.size(); }
  int Wrapped(int64_t dim) const {
    return static_cast<int>(dim < 0 ? dim + static_cast<int64_t>(ndim()) : dim);
  }
};

// The kernel's integers: declarations and values in one order. Sizes and strides are INDEX.
class GatherParameters {
 public:
  struct Value {
    int64_t value;
    bool is_index;
  };
  void Add(const std::string& name, int64_t value) {
    text_ += "const long " + name + ", ";
    values_.push_back({value, false});
  }
  void Add(const std::string& prefix, const std::vector<int64_t>& values) {
    for (size_t d = 0; d < values.size(); ++d) {
      text_ += "const INDEX " + prefix + std::to_string(d) + ", ";
      values_.push_back({values[d], true});
    }
  }
  const std::string& text() const { return text_; }
  const std::vector<Value>& values() const { return values_; }

 private:
  std::string text_;
  std::vector<Value> values_;
};

}  // namespace gather
}  // namespace kit
}  // namespace mica
