// Kernel texts to shared objects, by the machine's C++ compiler.
//
// MICA_SIMT_CXX names it, with arguments if need be ("g++" by default; clang++ works too).
// Keeps nothing: plugins/gpu/kit_driver.h keeps binaries on disk. Safe from many threads.
#pragma once

#include <string>

namespace simt {

// What stands before every text: raw C++17.
const char* Prelude();

// The compiler's version and flags, or "" where it does not run.
std::string CompilerVersion();

// The bytes of the shared object of a text, which may begin with the prelude. Throws with the
// compiler's first lines, and `what`, the operator's name.
std::string CompileText(const std::string& text, const std::string& what);

// Opens the bytes of a shared object; the handle is dlopen's.
void* LoadObject(const std::string& binary);

}  // namespace simt
