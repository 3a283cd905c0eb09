// The text of reductions, scans and rows; see reduce.h and kernels/reduce.cl.
#pragma once

#include <mica/kit/reduce_call.h>

namespace mica {
namespace kit {
namespace reduce {

constexpr int kBatch = 4;  // chunks that a member has on their way at a time

inline std::string N(int64_t n) { return std::to_string(n); }

class Writer {
 public:
  Writer(const ReduceCall& c, const Device& device) : c_(c), device_(device) {
    for (size_t s = 0; s < c.stages.size(); ++s) texts_.push_back(TextOf(*c.stages[s]));
  }

  std::string Write() {
    std::string text = LanesText(device_, {c_.lane, 1}, c_.small) + Define("TEAM", N(c_.team)) +
                       Define("MEMBERS", c_.by_index ? "members" : "TEAM") +
                       (c_.chunk > 1 ? Define("CHUNK", N(c_.chunk)) + Define("BATCH", N(kBatch)) : "") +
                       kReduceText + SlotMacros();
    if (c_.splits == 1) return text + Whole();
    return text + Part() + Rest();
  }

 protected:
  std::string Parameters() const {
    std::string text;
    for (size_t k = 0; k < c_.kept.operands.size(); ++k)
      text += std::string(k < c_.num_inputs() ? "const " : "") + "global E_" +
              Suffix(c_.kept.operands[k].dtype) + "* a" + N(static_cast<int64_t>(k)) + ", ";
    for (size_t s = 0; s < c_.stages.size(); ++s)
      for (int i = 0; i < c_.stages[s]->num_scalars; ++i)
        text += "const LANE number_" + N(static_cast<int64_t>(s)) + "_" + N(i) + ", ";
    text += SpaceParameters(c_.kept, "r") + SpaceParameters(c_.taken, "k");
    return text +
           "const INDEX rows, const INDEX length, const INDEX splits, global LANE* partial, "
           "global int* raised";
  }
  static std::string SpaceParameters(const Space& space, const std::string& prefix) {
    std::string text;
    const auto ndim = static_cast<int64_t>(space.sizes.size());
    for (int64_t d = 0; d < ndim; ++d) text += "const INDEX size_" + prefix + N(d) + ", ";
    for (size_t k = 0; k < space.operands.size(); ++k)
      for (int64_t d = 0; d < ndim; ++d)
        text += "const INDEX stride_" + N(static_cast<int64_t>(k)) + "_" + prefix + N(d) + ", ";
    return text;
  }

  // Local memory of a team: PUT, GET and GET_RIGHT of reduce.cl.
  std::string SlotMacros() const {
    std::string put, get, right;
    for (int s = 0; s < c_.num_states(); ++s) {
      const std::string slot = "slots_" + N(s) + "[i]";
      put += slot + " = s" + N(s) + "; ";
      get += "s" + N(s) + " = " + slot + "; ";
      right += "t" + N(s) + " = " + slot + "; ";
    }
    return Define("PUT(i)", put) + Define("GET(i)", get) + Define("GET_RIGHT(i)", right);
  }

  std::string Open(const std::string& entry) const {
    std::string text = "kernel void " + entry + "(" + Parameters() + ") {\n";
    if (c_.team > 1)
      for (int s = 0; s < c_.num_states(); ++s) text += "  local LANE slots_" + N(s) + "[TEAM];\n";
    return text + "  const INDEX count = length;\n";
  }
  // Declarations of the row: where its operands begin, its states.
  std::string Row() const {
    const size_t ndim = c_.kept.sizes.size();
    std::string text = "  " + SplitText("row", "r", ndim) + "\n";
    for (size_t k = 0; k < c_.kept.operands.size(); ++k) {
      const std::string n = N(static_cast<int64_t>(k));
      text += "  const INDEX base_" + n + " = " + OffsetText(n, "r", ndim) + ";\n";
    }
    for (int s = 0; s < c_.num_states(); ++s) text += "  L s" + N(s) + " = ZERO, t" + N(s) + " = ZERO;\n";
    return text;
  }
  std::string Numbers(size_t stage) const {
    std::string text;
    for (int i = 0; i < c_.stages[stage]->num_scalars; ++i)
      text += "const L n" + N(i) + " = (L)(number_" + N(static_cast<int64_t>(stage)) + "_" + N(i) + "); ";
    return text;
  }
  // Element k of the row: offsets of the operands and the inputs' values.
  std::string Element(const MicaProgram& stage) const {
    const size_t ndim = c_.taken.sizes.size();
    std::string text = std::string("const INDEX index = k") + (c_.by_index ? " - first; " : "; ") +
                       SplitText("k", "k", ndim);
    for (size_t k = 0; k < c_.taken.operands.size(); ++k) {
      const std::string n = N(static_cast<int64_t>(k));
      text += "const INDEX at_" + n + " = base_" + n + " + " + OffsetText(n, "k", ndim) + "; ";
    }
    for (int i = 0; i < stage.num_inputs; ++i) {
      const size_t operand = c_.OperandOf(stage, i);
      const std::string n = N(static_cast<int64_t>(operand));
      text += "const L x" + N(i) + " = LOAD_" + Suffix(c_.kept.operands[operand].dtype) + "(a" + n +
              " + at_" + n + ", 1); ";
    }
    return text;
  }
  // Joins the states t to the states s. Those of the lesser index are the left ones.
  std::string Combine(const ProgramText& stage) const {
    std::string swap;
    for (int s = 0; c_.by_index && s < c_.num_states(); ++s)
      swap += "const L u" + N(s) + " = s" + N(s) + "; s" + N(s) + " = t" + N(s) + "; t" + N(s) + " = u" +
              N(s) + "; ";
    const std::string i = c_.by_index ? N(c_.index_states[0]) : "";
    return (c_.by_index ? "{ if (t" + i + " < s" + i + ") { " + swap + "} " : "{ ") + stage.combine + "}";
  }
  std::string Team(const ProgramText& stage) const {
    if (c_.team == 1) return "";
    // A macro's argument holds no bare commas, so the combine is a macro itself.
    return "#undef COMBINE\n" + Define("COMBINE", Combine(stage)) +
           "COMBINE_TEAM(PUT, GET, GET_RIGHT, COMBINE)\n";
  }
  // The first element of a member in [begin, end), and how many members have any.
  std::string First(const std::string& begin, const std::string& end) const {
    if (!c_.by_index) return "";
    const std::string chunk = N(c_.chunk);
    return "  const INDEX first = " + begin + " + MEMBER * " + chunk + ", members = min((INDEX)TEAM, (" +
           end + " - " + begin + " + " + chunk + " - 1) / " + chunk + ");\n";
  }
  // A loop of a member over its elements of [begin, end): `code` for each element of a stage,
  // which stores results where it is a map.
  std::string Each(const MicaProgram& stage, const std::string& begin, const std::string& end,
                   const std::string& code, bool is_map) const {
    if (c_.chunk == 1)
      return "  for (INDEX k = " + begin + " + MEMBER; k < " + end + "; k += TEAM) {\n    " + Element(stage) +
             (is_map ? Results(code, "at_") : code) + "\n  }\n";
    const bool keeps = c_.kept_chunks > 0;
    const std::string left = c_.whole ? "CHUNK" : end + " - chunk";
    const std::string piece = ChunkText(stage, code, is_map, left, keeps ? Raw::kKept : Raw::kLoaded);
    if (keeps) return "  " + EachKept(begin, end) + "{\n" + piece + "  }\n";
    return "  { INDEX chunk = " + begin + " + MEMBER * CHUNK;\n" + Batches(stage, end, code, is_map) +
           "  for (; chunk < " + end + "; chunk += TEAM * CHUNK) {\n" + piece + "  } }\n";
  }

  enum class Raw { kKept, kLoaded, kBatch };  // where a chunk's elements are
  // What a member does with the chunk that begins at element `chunk`.
  std::string ChunkText(const MicaProgram& stage, const std::string& code, bool is_map,
                        const std::string& left, Raw raw) const {
    std::string loads, stores,
        body = "const INDEX k = chunk + j, index = k" + std::string(c_.by_index ? " - first; " : "; ");
    for (size_t k = 0; k < c_.taken.operands.size(); ++k) {
      const std::string n = N(static_cast<int64_t>(k)), element = ElementType(k), at = Place(k);
      if (k >= c_.num_inputs()) {
        if (!is_map) continue;
        loads += element + " out_" + n + "[CHUNK]; ";
        stores += raw == Raw::kBatch ? "store_aligned(out_" + n + ", " + at + "); "
                                     : "store_chunk(out_" + n + ", " + at + ", left); ";
      } else if (IsDense(k) && raw != Raw::kLoaded) {
        loads += "const " + element + "* raw_" + n + (raw == Raw::kKept ? " = kept_" : " = batch_") + n +
                 "[part]; ";
      } else if (IsDense(k) && Reads(stage, k)) {
        loads += element + " raw_" + n + "[CHUNK]; load_chunk(" + at + ", raw_" + n + ", left); ";
      }
    }
    for (int i = 0; i < stage.num_inputs; ++i) {
      const size_t operand = c_.OperandOf(stage, i);
      const std::string n = N(static_cast<int64_t>(operand));
      body += "const L x" + N(i) + " = LOAD_" + Suffix(c_.kept.operands[operand].dtype) + "(" +
              (IsDense(operand) ? "raw_" + n + " + j" : "a" + n + " + base_" + n) + ", 1); ";
    }
    body += is_map ? ResultsTo(code, [](const std::string& n) { return "out_" + n + " + j"; }) : code;
    return "    const INDEX left = " + left + ";\n    " + loads +
           "\n    UNROLL for (uint j = 0; j < CHUNK; ++j) if (j < left) {\n      " + body + "\n    }\n    " +
           stores + "\n";
  }
  // The loop over what lies aligned, BATCH chunks at a time: their loads are on their way together.
  // `chunk` stands behind them then.
  std::string Batches(const MicaProgram& stage, const std::string& end, const std::string& code,
                      bool is_map) const {
    std::string aligned, arrays, loads;
    for (size_t k = 0; k < c_.taken.operands.size(); ++k) {
      const bool is_input = k < c_.num_inputs();
      if (is_input ? !IsDense(k) : !is_map) continue;
      const std::string n = N(static_cast<int64_t>(k));
      aligned += (aligned.empty() ? "" : " && ") + ("is_aligned(" + Place(k) + ")");
      if (!is_input) continue;
      arrays += ElementType(k) + " batch_" + n + "[BATCH][CHUNK]; ";
      if (Reads(stage, k))
        loads += "load_aligned(" + Place(k) + " + part * (TEAM * CHUNK), batch_" + n + "[part]); ";
    }
    if (aligned.empty()) aligned = "true";  // inputs are one element of each row
    return "  if (" + aligned + ") for (; chunk + ((BATCH - 1) * TEAM + 1) * CHUNK <= " + end + ";) {\n    " +
           arrays + "\n    UNROLL for (uint part = 0; part < BATCH; ++part) { " + loads +
           "}\n    UNROLL for (uint part = 0; part < BATCH; ++part, chunk += TEAM * CHUNK) {\n" +
           ChunkText(stage, code, is_map, "CHUNK", Raw::kBatch) + "    }\n  }\n";
  }
  std::string ElementType(size_t operand) const {
    return "E_" + std::string(Suffix(c_.kept.operands[operand].dtype));
  }
  // Where the elements from `chunk` on lie.
  static std::string Place(size_t operand) {
    const std::string n = N(static_cast<int64_t>(operand));
    return "a" + n + " + base_" + n + " + chunk";
  }
  // The loop over the chunks of [begin, end) that a member keeps: `chunk` is the first element of one.
  std::string EachKept(const std::string& begin, const std::string& end) const {
    return "UNROLL for (uint part = 0; part < " + N(c_.kept_chunks) +
           "; ++part) if (const INDEX chunk = " + begin +
           " + MEMBER * CHUNK + part * (TEAM * CHUNK); chunk < " + end + ") ";
  }
  bool IsDense(size_t operand) const { return c_.taken.operands[operand].strides[0] == 1; }
  bool Reads(const MicaProgram& stage, size_t operand) const {
    for (int i = 0; i < stage.num_inputs; ++i)
      if (c_.OperandOf(stage, i) == operand) return true;
    return false;
  }
  // A member's chunks of the row, read once for all stages.
  std::string Keep() const {
    if (c_.kept_chunks == 0) return "";
    std::string arrays, aligned, whole_loads, loads;
    for (size_t k = 0; k < c_.num_inputs(); ++k) {
      if (!IsDense(k)) continue;
      const std::string n = N(static_cast<int64_t>(k)), to = ", kept_" + n + "[part]";
      arrays += "  " + ElementType(k) + " kept_" + n + "[" + N(c_.kept_chunks) + "][CHUNK];\n";
      aligned += (aligned.empty() ? "" : " && ") + ("is_aligned(a" + n + " + base_" + n + ")");
      whole_loads += "load_aligned(" + Place(k) + to + "); ";
      loads += "load_chunk(" + Place(k) + to + ", length - chunk); ";
    }
    const std::string each = EachKept("(INDEX)0", "length");
    const std::string any = each + "{ " + loads + "}\n";
    if (!c_.whole) return arrays + "  " + any;
    return arrays + "  if (" + aligned + ") {\n    " + each + "{ " + whole_loads + "}\n  } else {\n    " +
           any + "  }\n";
  }
  // Indices that counted from a member's first as those of the row.
  std::string Shift() const {
    std::string text;
    for (const int state : c_.index_states) text += "  s" + N(state) + " += first;\n";
    return text;
  }
  // One stage over the elements from `begin` to `end`, up to its finish.
  std::string Fold(size_t number, const std::string& begin, const std::string& end) const {
    const ProgramText& text = texts_[number];
    return "  { " + text.init + "}\n" + First(begin, end) +
           Each(*c_.stages[number], begin, end, text.main, false) + Shift() + Team(text);
  }
  std::string Results(const std::string& code, const std::string& at) const {
    return ResultsTo(code, [&](const std::string& k) { return "a" + k + " + " + at + k; });
  }
  // The same into the places that `place` gives by operand.
  template <typename F>
  std::string ResultsTo(const std::string& code, F&& place) const {
    std::string before, after;
    for (int64_t o = 0; o < c_.num_outputs; ++o) {
      const auto operand = c_.num_inputs() + static_cast<size_t>(o);
      before += "L y" + N(o) + "; ";
      after += "STORE_" + std::string(Suffix(c_.kept.operands[operand].dtype)) + "(y" + N(o) + ", " +
               place(N(static_cast<int64_t>(operand))) + ", 1); ";
    }
    return before + code + after;
  }

  std::string Whole() const {
    std::string text =
        Open("whole") + "  const INDEX row = ROW_NUMBER;\n  if (row >= rows) return;\n" + Row();
    if (c_.form == Form::kScan) {
      const ProgramText& p = texts_[0];
      return text + Numbers(0) + "{ " + p.init + "}\n  for (INDEX k = 0; k < length; ++k) {\n" +
             Element(*c_.stages[0]) + p.main + "{ " + Results(p.finish, "at_") + "}\n  }\n}\n";
    }
    text += Keep();
    for (size_t s = 0; s < c_.stages.size(); ++s) {
      const MicaProgram& stage = *c_.stages[s];
      text += "  {\n  " + Numbers(s) + "\n" + Fold(s, "(INDEX)0", "length");
      if (c_.form == Form::kReduction) {
        text += "  if (MEMBER == 0) { " + Results(texts_[s].finish, "base_") + "}\n";
      } else {
        text += "  { " + texts_[s].finish + "}\n";
      }
      if (stage.map.size > 0) text += Each(stage, "(INDEX)0", "length", texts_[s].map, true);
      text += "  }\n";
    }
    return text + "}\n";
  }

  // Elements of a piece: whole chunks, so that each piece begins where vectors are aligned.
  std::string Piece() const {
    const std::string least = "(length + splits - 1) / splits";
    return c_.chunk == 1 ? least : "(" + least + " + CHUNK - 1) / CHUNK * CHUNK";
  }
  // A group folds one piece of a row and leaves its states in `partial`.
  std::string Part() const {
    std::string put;
    for (int s = 0; s < c_.num_states(); ++s)
      put += "partial[(row * splits + part) * " + N(c_.num_states()) + " + " + N(s) + "] = s" + N(s) + "; ";
    return Open("part") + "  if (ROW_NUMBER >= rows * splits) return;\n" +
           (c_.by_column ? "  const INDEX row = ROW_NUMBER % rows, part = ROW_NUMBER / rows;\n"
                         : "  const INDEX row = ROW_NUMBER / splits, part = ROW_NUMBER % splits;\n") +
           "  const INDEX piece = " + Piece() + ";\n" +
           "  const INDEX begin = min(length, part * piece), end = min(length, begin + piece);\n" + Row() +
           Numbers(0) + Fold(0, "begin", "end") + "  if (MEMBER == 0) { " + put + "}\n}\n";
  }
  std::string Rest() const {
    const ProgramText& p = texts_[0];
    std::string get, take;
    for (int s = 0; s < c_.num_states(); ++s) {
      get += "t" + N(s) + " = partial[(row * splits + k) * " + N(c_.num_states()) + " + " + N(s) + "]; ";
      take += "s" + N(s) + " = t" + N(s) + "; ";
    }
    // Where indices count, the states that begin a part are no part's: the first replaces them.
    const std::string join = c_.by_index ? "if (k == MEMBER) { " + take + "} else " + Combine(p) : Combine(p);
    return Open("rest") + "  const INDEX row = ROW_NUMBER;\n  if (row >= rows) return;\n" +
           "  const INDEX piece = " + Piece() + ", parts = (length + piece - 1) / piece;\n" + Row() +
           Numbers(0) + "{ " + p.init + "}\n" +
           (c_.by_index ? "  const INDEX members = min((INDEX)TEAM, parts);\n" : "") +
           "  for (INDEX k = MEMBER; k < parts; k += TEAM) { " + get + join + " }\n" + Team(p) +
           "  if (MEMBER == 0) { " + Results(p.finish, "base_") + "}\n}\n";
  }

  const ReduceCall& c_;
  const Device& device_;
  std::vector<ProgramText> texts_;  // of the stages
};

// The text. Entries: "whole"; and, for splits, "part" and "rest".
inline std::string ReduceSource(const ReduceCall& c, const Device& device) {
  return Writer(c, device).Write();
}

}  // namespace reduce
}  // namespace kit
}  // namespace mica
