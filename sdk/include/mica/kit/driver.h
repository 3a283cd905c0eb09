// What a device that compiles kernels at run time gives the kit.
//
// The kit (kit.h) turns operators into kernel texts and launches; a Driver compiles a
// text, launches an entry of it, and reads memory back: five functions besides what it
// says of its devices. A text is C in OpenCL's words (`kernel`, `global`, `local`,
// `get_global_id`, `barrier`); a driver whose compiler speaks another dialect puts a
// prelude before it. Every function may throw mica::plugin::Error, is called by many
// threads at once and takes no lock of the host's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <mica/plugin.h>

namespace mica {
namespace kit {

// A device as the texts of kernels depend on it.
struct Device {
  int32_t index = 0;
  std::string name;  // of the hardware, for people
  bool has_f64 = true;
  // Whether the compiler takes the functions of mica/maths: 2,000 lines over doubles, which not every
  // OpenCL does (PoCL 3 crashes at some).
  bool has_maths = false;
  // The most lanes that a work-item computes at once where memory is dense: 1, 2, 4, 8 or 16.
  int vector_width = 1;
  // The most bytes of one operand that a work-item should access at once; 0: no limit.
  int access_bytes = 0;
  // Whether many thousands of work-items run at once, and neighbours that read neighbouring
  // memory read it together: a GPU. Then rows are shared by as many work-items as they feed.
  bool is_wide = false;
  // The most bytes of addresses that an argument passed by value may hold; 0: kernels take addresses as
  // pointers alone, and lists of tensors run one by one.
  int32_t list_bytes = 0;
  // The most groups that a launch has in its second and third dimension.
  int64_t max_groups_yz = INT64_MAX;
};

// An argument of a kernel: the bytes of a value, or a pointer into the device's memory.
struct Argument {
  const void* bytes;
  size_t size;
  bool is_pointer;
};

// Groups of work-items, and work-items of a group, by dimension.
struct Grid {
  int64_t groups[3];
  int64_t items[3];
};

// An error that a kernel may find in its data: its kind, and the sentence once the kernel
// has written `number` (never 0) where it was told to.
struct LateError {
  int64_t code;
  std::string before, after;  // around `number` + offset; a sentence without a number has `after` empty
  int64_t offset = 0;
  std::string Sentence(int number) const {
    return after.empty() ? before : before + std::to_string(number + offset) + after;
  }
};

// out = alpha a b + beta out, for each matrix of a batch: a is m x k, b is k x n. Strides are in
// elements, by batch, row and column.
struct MatrixProduct {
  struct Matrix {
    void* data = nullptr;
    int64_t batch = 0, row = 0, column = 0;
  };
  int32_t dtype = 0;
  int64_t batches = 1, m = 0, n = 0, k = 0;
  Matrix a, b, out;
  MicaScalar alpha{MICA_SCALAR_INT, 0, {1}}, beta{MICA_SCALAR_INT, 0, {0}};
  // Not NULL: this row of n elements, side by side, is added to each row of out, in place of beta out.
  const void* row = nullptr;
};

enum class ConvolutionKind : int32_t { kForward, kBackwardInput, kBackwardWeight };

// The sizes of a convolution: windows slide over an image (N, C, ...), each is multiplied with weights
// (K, C / groups, ...) and gives an element of the result (N, K, ...). There are no gaps between the bytes.
struct ConvolutionShape {
  ConvolutionKind kind = ConvolutionKind::kForward;
  int32_t dtype = 0;
  int32_t spatial = 2;        // dimensions behind the first two: 1 to 3
  int32_t channels_last = 0;  // whether all three tensors have them so: (N, ..., C) in memory
  int64_t groups = 1;
  int64_t image[5] = {}, weight[5] = {}, result[5] = {};
  int64_t stride[3] = {}, padding[3] = {}, dilation[3] = {};  // of which `spatial` are there
};

// Writes the result, or, a gradient, the image or the weight. All three lie densely, and at addresses that
// are multiples of 16.
struct ConvolutionCall {
  ConvolutionShape shape;
  void* image = nullptr;
  void* weight = nullptr;
  void* result = nullptr;
};

class Driver {
 public:
  virtual ~Driver() = default;

  // The name of the backend, as the plugin's manifest has it.
  virtual const char* backend() const = 0;
  // Throws a value error for an index that no device has.
  virtual const Device& DeviceAt(int64_t index) = 0;

  // Compiles a text. `what` is the operator's name, for the sentence that holds the
  // compiler's first lines where it refuses. A module stays for the process's life.
  virtual void* Compile(const Device& device, const std::string& text, const char* what) = 0;
  // A kernel of a module by its name.
  virtual void* Entry(const Device& device, void* module, const char* name) = 0;
  // Queues a launch. `arguments` are valid for the call.
  virtual void Launch(const Device& device, void* entry, const Argument* arguments, size_t count,
                      const Grid& grid, uint64_t stream) = 0;
  // Queues zeros.
  virtual void Zero(const Device& device, void* data, size_t size, uint64_t stream) = 0;
  // Waits for the stream and reads.
  virtual void Read(const Device& device, void* to, const void* from, size_t size, uint64_t stream) = 0;

  // Queues a product on a library of the device's; false where it has none for the dtype or
  // the strides, and a kernel of the kit computes it.
  virtual bool Multiply(const Device& device, const MatrixProduct& product, uint64_t stream) {
    (void)device, (void)product, (void)stream;
    return false;
  }
  // What addresses of matrices, the distances between their rows and those rows' lengths have to be multiples
  // of, in bytes, for Multiply to be fast: 1 where it does not matter, 0 where there is no library for the
  // dtype.
  virtual int64_t ProductAlignment(const Device& device, int32_t dtype) {
    (void)device, (void)dtype;
    return 0;
  }

  // Whether the device has a library of convolutions for the dtype: the kit then puts operands in order for
  // Convolve.
  virtual bool HasConvolutions(const Device& device, int32_t dtype) {
    (void)device, (void)dtype;
    return false;
  }
  // Queues a convolution of `call` on that library; false where it does not take this one, and a kernel of
  // the kit computes it.
  virtual bool Convolve(const Device& device, const ConvolutionCall& convolution, const MicaCall* call) {
    (void)device, (void)convolution, (void)call;
    return false;
  }

  // Where a kernel of `call` writes an int that is not 0 when it meets `error`, which the
  // driver then raises when the device is next waited for; or NULL: the kit gives a word of its
  // own, waits for the kernel and raises at once.
  virtual void* LateWord(const Device& device, const MicaCall* call, const LateError& error) {
    (void)device, (void)call, (void)error;
    return nullptr;
  }
};

}  // namespace kit
}  // namespace mica
