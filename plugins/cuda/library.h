// Opens a shared library at run time and fills a table with its functions.
//
// The driver, the compiler, cuBLAS and cuDNN are opened this way, so that the plugin loads on a
// machine that has none of them. A library that was opened stays open until the process
// ends: its functions may be called from destructors that run at the exit.
#pragma once

#include <string>
#include <vector>

namespace cuda {

// A function of a library by its exported name, and the pointer that is to hold it.
class Symbol {
 public:
  template <class F>
  Symbol(const char* name, F** slot) : name(name), slot(slot) {}

  const char* name;
  void* slot;  // the address of a function pointer, written as bytes
};

class Library {
 public:
  // Opens the first of `candidates` (paths, or names that the loader looks for) that opens and has every
  // symbol, and writes the symbols. Returns false where there is none; reason() then says why.
  bool Open(const std::vector<std::string>& candidates, const std::vector<Symbol>& symbols);

  // Writes the symbols of the opened library, or of those that it brought along; false where one lacks.
  bool Find(const std::vector<Symbol>& symbols) { return Resolve(handle_, symbols); }

  // Where the library lies, "/usr/lib/libcuda.so.1", and its folder without the last slash.
  const std::string& path() const { return path_; }
  std::string folder() const;
  // The loader's words for the library that came closest; no sentence.
  const std::string& reason() const { return reason_; }

 private:
  bool Resolve(void* handle, const std::vector<Symbol>& symbols);

  void* handle_ = nullptr;
  std::string path_, reason_;
};

}  // namespace cuda
