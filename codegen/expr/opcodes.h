// What the `compute` language knows of each opcode of program.h: the name it is
// called by, its operands, its result, and the dtype kinds it has a meaning for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <mica/opcodes.h>

namespace mica::codegen {

// What a program computes in. Unsigned and signed integers share programs.
enum class ComputeKind : uint8_t { kBool, kInt, kFloat, kComplex };
inline constexpr int kComputeKindCount = 4;
const char* Name(ComputeKind kind);  // "bool"

enum class LaneType : uint8_t { kLane, kMask };

// The opcode of a function of the language ("log1p", "isnan"), -1 if there is
// none. Sources, stores and what operators write (`and`) have no function.
int OpcodeOfFunction(std::string_view name);
std::vector<std::string> FunctionNames();

bool HasMeaning(int opcode, ComputeKind kind);
// Operand `i` is a mask.
bool TakesMask(int opcode, int i);
// A hot program (emit/hot.cc) may contain it: sources, arithmetic, comparisons, masks.
bool CanBeHot(int opcode);
// Results differ from call to call, so that equal instructions are kept apart.
bool IsRandom(int opcode);

}  // namespace mica::codegen
