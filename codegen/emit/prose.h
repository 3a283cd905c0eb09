// What an entry means, in words: shared by the docstrings of Python functions and the reference pages.
#pragma once

#include <string>

#include "codegen/model.h"

namespace mica::codegen {

// "bool, integers, floats": the kinds of dtypes that `supports:` names.
std::string KindsText(uint16_t supports);
// The result's dtype, as the entry's rule has it.
std::string DTypeText(const Entry& entry);
// What the class says of the result's shape; "" where it says nothing.
std::string ShapeText(const Entry& entry);
// What an argument means: the entry's own `arguments:`, else the table's of its name (of "dim[]" for a list,
// if there is one); "" if neither has it.
std::string ArgumentText(const Model& model, const Entry& entry, const schema::Argument& argument);
// "int or tuple of int": the type as a Python user thinks of it, `?` left out.
std::string TypeInWords(const schema::Type& type);
// "1", "'mean'", "mica.float32": a default as Python has it.
std::string DefaultInWords(const schema::Literal& value);

}  // namespace mica::codegen
