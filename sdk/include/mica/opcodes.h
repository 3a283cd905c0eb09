// What each opcode of program.h is called and how many registers it reads, as a table in C++.
//
// For what prints, checks or interprets programs; the meaning of an opcode stands in program.h.
#ifndef MICA_OPCODES_H_
#define MICA_OPCODES_H_

#include <mica/program.h>

namespace mica {

struct OpcodeInfo {
  const char* name;  // "LOG1P"
  int arity;         // registers read: a, b, c
  char result;       // L lane, M mask, N none
};

// By opcode.
inline constexpr OpcodeInfo kOpcodeInfo[] = {
#define MICA_OPCODE(name, arity, result) {#name, arity, #result[0]},
    MICA_FORALL_OPCODES(MICA_OPCODE)
#undef MICA_OPCODE
};

}  // namespace mica

#endif  // MICA_OPCODES_H_
