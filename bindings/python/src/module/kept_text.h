// Texts for structures in C that outlive whoever made the text.
#pragma once

#include <string>
#include <unordered_set>

namespace mica::python {

// The text, which stays for good; equal texts are one. With the GIL.
inline const char* Kept(const std::string& text) {
  static auto* const kept = new std::unordered_set<std::string>();
  return kept->insert(text).first->c_str();
}

}  // namespace mica::python
