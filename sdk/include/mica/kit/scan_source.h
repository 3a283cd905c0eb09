// The text of scans in teams; see reduce.h and kernels/scan.cl.
#pragma once

#include <cstring>

#include <mica/kit/reduce_source.h>

namespace mica {
namespace kit {
namespace reduce {

// Elements that a member of a team takes at a time, one behind the other: where they lie densely, they are
// read and written at once.
constexpr int kScanEach = 4, kDenseScanEach = 8;
inline int ScanEach(const ReduceCall& c) { return c.chunk > 1 ? c.chunk : kScanEach; }

// Whether the program holds the last element that was chosen and its index: it begins anew at index 0, and
// once more with the element that it holds it only takes the index.
inline bool HoldsLast(const MicaProgram& program) {
  return std::strcmp(program.hint, "cummax") == 0 || std::strcmp(program.hint, "cummin") == 0;
}

class ScanWriter : private Writer {
 public:
  ScanWriter(const ReduceCall& c, const Device& device) : Writer(c, device) {}

  std::string Write() const {
    const ProgramText& p = texts_[0];
    const MicaProgram& stage = *c_.stages[0];
    // The state of element k alone: a first step at index 0 lets go of what was before.
    const std::string begin = "{ " + p.init + "} " +
                              (c_.ordered ? "{ const INDEX index = 0; " + p.main + "} " : "") + "{ " +
                              p.main + "}";
    std::string own, put_part, get_part;
    for (int s = 0; s < c_.num_states(); ++s) {
      const std::string n = N(s),
                        at = "partial[(row * splits + (i)) * " + N(c_.num_states()) + " + " + n + "]";
      own += "L carry_" + n + " = ZERO; ";
      put_part += at + " = s" + n + "; ";
      get_part += "s" + n + " = " + at + "; ";
    }
    std::string to_right, to_carry, from_carry;
    for (int s = 0; s < c_.num_states(); ++s) {
      const std::string n = N(s);
      to_right += "t" + n + " = s" + n + "; ";
      to_carry += "carry_" + n + " = s" + n + "; ";
      from_carry += "s" + n + " = carry_" + n + "; ";
    }
    return LanesText(device_, {c_.lane, 1}, c_.small) + Define("TEAM", N(c_.team)) +
           Define("EACH", N(ScanEach(c_))) + (c_.chunk > 1 ? Define("CHUNK", "EACH") : "") +
           (c_.by_column ? Define("BY_COLUMN", "1") : "") + kReduceText + SlotMacros() +
           Define("LOAD_ELEMENT", ElementText(stage)) + OwnText() + Define("BEGIN", begin) +
           Define("STEP", "{ " + p.main + "}") + Define("COMBINE", "{ " + p.combine + "}") +
           Define("RESULTS", "{ " + ResultText(p.finish) + "}") + Define("PUT_PART(i)", put_part) +
           Define("GET_PART(i)", get_part) + Define("TO_RIGHT", to_right) + Define("TO_CARRY", to_carry) +
           Define("FROM_CARRY", from_carry) + kScanText +
           (c_.splits == 1
                ? Entry("whole", own, "SCAN_PIECE")
                : Entry("part", own, "FOLD_PIECE") + Entry("rest", own, "BEFORE_PIECE SCAN_PIECE"));
  }

 private:
  // An element of those that LOAD_OWN read.
  std::string ElementText(const MicaProgram& stage) const {
    if (c_.chunk == 1) return Element(stage);
    std::string text = "const INDEX index = k; ";
    for (int i = 0; i < stage.num_inputs; ++i) {
      const size_t operand = c_.OperandOf(stage, i);
      const std::string n = N(static_cast<int64_t>(operand));
      text += "const L x" + N(i) + " = LOAD_" + Suffix(c_.kept.operands[operand].dtype) + "(" +
              (IsDense(operand) ? "raw_" + n + " + j" : "a" + n + " + base_" + n) + ", 1); ";
    }
    return text;
  }
  std::string ResultText(const std::string& code) const {
    if (c_.chunk == 1) return Results(code, "at_");
    return ResultsTo(code, [](const std::string& n) { return "out_" + n + " + j"; });
  }
  std::string OwnText() const {
    std::string loads, stores;
    for (size_t k = 0; k < c_.taken.operands.size() && c_.chunk > 1; ++k) {
      const std::string n = N(static_cast<int64_t>(k)), at = "a" + n + " + base_" + n + " + own";
      if (k >= c_.num_inputs()) {
        loads += ElementType(k) + " out_" + n + "[EACH]; ";
        stores += "store_chunk(out_" + n + ", " + at + ", own_end - own); ";
      } else if (IsDense(k)) {
        loads +=
            ElementType(k) + " raw_" + n + "[EACH]; load_chunk(" + at + ", raw_" + n + ", own_end - own); ";
      }
    }
    return Define("LOAD_OWN", loads) + Define("STORE_OWN", stores);
  }
  std::string Entry(const std::string& name, const std::string& own, const std::string& body) const {
    return Open(name) + "  TEAM_PIECE\n" + Row() + "  " + own + "\n  " + Numbers(0) + "\n  " + body + "\n}\n";
  }
};

// Entries: "whole"; and, for splits, "part" and "rest".
inline std::string ScanSource(const ReduceCall& c, const Device& device) {
  return ScanWriter(c, device).Write();
}

}  // namespace reduce
}  // namespace kit
}  // namespace mica
