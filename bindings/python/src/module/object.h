// Python.h, an owning PyObject pointer, and the exception that means "a Python
// error is set".
//
// Every file of the binding includes this first. C++ code below an entry point
// may throw; entry points go through Guarded(), which turns any exception into a
// Python error and returns NULL (or -1).
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <string_view>
#include <utility>

namespace mica::python {

// An owned reference, possibly NULL.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : p_(owned) {}
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref(const Ref& o) : p_(o.p_) { Py_XINCREF(p_); }
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() { Py_XDECREF(p_); }
  static Ref Borrow(PyObject* p) {
    Py_XINCREF(p);
    return Ref(p);
  }
  PyObject* get() const { return p_; }
  PyObject* release() { return std::exchange(p_, nullptr); }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  PyObject* p_ = nullptr;
};

// Thrown when a Python error is set already.
struct PythonErrorIsSet {};

// The object, or an exception if the call that made it failed.
inline PyObject* Check(PyObject* p) {
  if (!p) throw PythonErrorIsSet();
  return p;
}
inline Ref Own(PyObject* p) { return Ref(Check(p)); }
inline void Check(int status) {
  if (status < 0) throw PythonErrorIsSet();
}

// Throws a Python exception of `type` with a sentence.
[[noreturn]] void Raise(PyObject* type, const std::string& message);

// Sets a Python error whose message may be any bytes.
void SetError(PyObject* type, std::string_view message) noexcept;

// Sets the Python error that stands for the C++ exception being handled.
void SetErrorFromException() noexcept;

template <typename F>
PyObject* Guarded(F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    SetErrorFromException();
    return nullptr;
  }
}
template <typename F>
int GuardedInt(F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    SetErrorFromException();
    return -1;
  }
}

inline PyObject* NewNone() {
  Py_INCREF(Py_None);
  return Py_None;
}
inline PyObject* NewBool(bool b) { return PyBool_FromLong(b); }
inline PyObject* NewStr(std::string_view s) {
  return PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()));
}
// A string's UTF-8, borrowed; a ValueError if it has none (a lone surrogate).
inline std::string_view StrView(PyObject* s) {
  Py_ssize_t n;
  const char* p = PyUnicode_AsUTF8AndSize(s, &n);
  if (!p && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
    Raise(PyExc_ValueError, "A string holds a lone surrogate, which UTF-8 cannot express.");
  if (!p) throw PythonErrorIsSet();
  return {p, static_cast<size_t>(n)};
}
inline const char* TypeName(PyObject* o) { return Py_TYPE(o)->tp_name; }

// f takes the GIL. When Python ends, whoever asks for it is ended by unwinding, which no
// destructor lets pass: such a thread stays here instead, until the process is gone.
template <typename F>
auto TakingGil(F&& f) {
  try {
    return f();
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
}

// Holds the GIL, for callbacks that C++ threads make.
class GilAcquire {
 public:
  GilAcquire() : state_(TakingGil([] { return PyGILState_Ensure(); })) {}
  ~GilAcquire() { PyGILState_Release(state_); }
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;

 private:
  PyGILState_STATE state_;
};

// How many threads run our code without the GIL now: Note [Collector and C++ references].
extern std::atomic<int> g_without_gil;

// Gives the GIL up while it lives, if asked to.
class GilRelease {
 public:
  explicit GilRelease(bool really = true) : saved_(really ? Save() : nullptr) {}
  ~GilRelease() {
    if (saved_) Restore(saved_);
  }
  static PyThreadState* Save() {
    g_without_gil.fetch_add(1, std::memory_order_relaxed);
    return PyEval_SaveThread();
  }
  static void Restore(PyThreadState* saved) {
    TakingGil([saved] { PyEval_RestoreThread(saved); });
    g_without_gil.fetch_sub(1, std::memory_order_relaxed);
  }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* saved_;
};

// A method with keywords, as method tables hold it.
inline PyCFunction Keywords(PyObject* (*f)(PyObject*, PyObject*, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

}  // namespace mica::python
