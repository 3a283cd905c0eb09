// From schema names and types to C++ text. The only place that knows how a
// schema type is spelled in C++; dispatcher/calls/adapters.h has its other half.
#pragma once

#include <string>
#include <string_view>

#include "schema/schema.h"

namespace mica::codegen {

// A valid C++ identifier: `name`, or `name_` where it is a keyword of C++.
std::string CppIdentifier(std::string_view name);

// Parameter type: "const Tensor&", "TensorSpan", "std::optional<IntSpan>". Empty
// where the code generator has no such type.
std::string CppParameterType(const schema::Type& type);
// Whether that is a pointer, for which None is nullptr.
bool IsPointer(const schema::Type& type);
// The type of a value that owns itself: "Tensor", "std::vector<Tensor>", "Dims",
// "std::optional<Dims>", "std::string", "Scalar": what a saved argument is kept as.
std::string CppValueType(const schema::Type& type);
// The same of a constant: "const Tensor", "MicaObject* const".
std::string CppConstantType(const schema::Type& type);
// Result type of the functional form: "Tensor", "std::tuple<Tensor, Tensor>", "void".
std::string CppReturnType(const schema::FunctionSchema& schema);
// C++ text of a default; empty if there is none.
std::string CppDefault(const schema::Argument& argument);
// C++ text of a dtype's name as the schema writes it ("long" -> "DType::kI64");
// empty if unknown.
std::string CppDType(std::string_view name);
// The same of a memory format: "channels_last" -> "MemoryFormat::kChannelsLast".
std::string CppMemoryFormat(std::string_view name);

// "text with \"quotes\"" as a C++ string literal.
std::string CppString(std::string_view text);
// Text that reads back as the same double: "1e-05", "INFINITY", "0.".
std::string CppDouble(double value);

// Type text for messages, without alias annotations.
std::string TypeText(const schema::Type& type);

}  // namespace mica::codegen
