// Folding of lanes; see fold.h.
#include "plugins/cpu/reduce/fold.h"

#include <algorithm>
#include <cstring>

#include <mica/plugin.h>

namespace mica::cpu {
namespace {

// Steps a level takes before it is added to the next.
constexpr int64_t kCascade = 32;

bool IsPlainSum(const MicaCode& combine) {
  int sums = 0;
  for (int64_t i = 0; i < combine.size; ++i) {
    const int opcode = combine.data[i].opcode;
    if (opcode == MICA_OP_ADD) ++sums;
    if (opcode != MICA_OP_ADD && opcode != MICA_OP_STATE && opcode != MICA_OP_STORE_STATE) return false;
  }
  return sums == 1;
}

}  // namespace

StagePlans::StagePlans(const ReduceCall& call, const MicaProgram& p)
    : program(&p),
      init(SectionPlan(call, p, p.init)),
      main(SectionPlan(call, p, p.main)),
      combine(SectionPlan(call, p, p.combine)),
      first_state(p.first_state),
      num_own(p.num_states - p.first_state) {
  MICA_PLUGIN_CHECK(num_own <= Fold::kMaxOwn, MICA_ERROR_NOT_IMPLEMENTED,
                    "The CPU engine runs reductions of at most 8 states.");
  state_bytes = kBlock * main->lane_size + 64;
  const int32_t lane = main->lane;
  cascades = num_own == 1 && (IsFloat(lane) || IsComplex(lane)) && IsPlainSum(p.combine);
}

int64_t StagePlans::Memory() const {
  return Runner::MemoryOf(*init) + Runner::MemoryOf(*main) + Runner::MemoryOf(*combine) +
         (3 * Fold::kMaxOwn + Fold::kLevels) * (state_bytes + 64);
}

Fold::Fold(const StagePlans& plans, const ReduceCall& call, const int8_t* operands, int64_t count,
           Arena* arena)
    : plans_(plans) {
  Runner init;
  init.Bind(plans.init, *plans.program, call, operands, count, arena);
  main_.Bind(plans.main, *plans.program, call, operands, count, arena);
  combine_.Bind(plans.combine, *plans.program, call, operands, count, arena);
  complex_ = IsComplex(plans.main->lane);
  lane_bytes_ = complex_ ? plans.main->lane_size / 2 : plans.main->lane_size;
  in_place_ = plans.num_own == 1 && plans.combine->num_steps == 1;
  for (int s = 0; s < plans.num_own; ++s) {
    initial_[s] = arena->Take(plans.state_bytes);
    current_[s] = arena->Take(plans.state_bytes);
    next_[s] = arena->Take(plans.state_bytes);
    init.WriteState(plans.first_state + s, initial_[s]);
  }
  for (int level = 0; plans.cascades && level < kLevels; ++level)
    levels_[level] = arena->Take(plans.state_bytes);
  init.Run(plans.init->block);
}

void Fold::CopyLanes(char* dst, const char* src, int64_t n) const {
  std::memcpy(dst, src, static_cast<size_t>(n * lane_bytes_));
  if (complex_)
    std::memcpy(dst + kBlock * lane_bytes_, src + kBlock * lane_bytes_, static_cast<size_t>(n * lane_bytes_));
}

void Fold::Reset(int64_t n) {
  for (int s = 0; s < plans_.num_own; ++s) {
    CopyLanes(current_[s], initial_[s], n);
    CopyLanes(next_[s], initial_[s], n);
  }
  touched_ = 0;
}

// One step of n lanes. Lanes from `touched_` on hold the initial state in both
// buffers, so the buffers may change places when all touched lanes were written.
int Fold::RunMain(int64_t n) {
  for (int s = 0; s < plans_.num_own; ++s) {
    main_.ReadState(plans_.first_state + s, current_[s]);
    main_.WriteState(plans_.first_state + s, next_[s]);
  }
  const int flags = main_.Run(n);
  for (int s = 0; s < plans_.num_own; ++s) {
    if (n >= touched_) {
      std::swap(current_[s], next_[s]);
    } else {
      CopyLanes(current_[s], next_[s], n);
    }
  }
  touched_ = std::max(touched_, n);
  return flags;
}

// Adds `lanes` lanes of `from` to `level`. All of them, also those that no step has touched: they hold the
// initial state, and a later carry adds to whatever stands in the level.
int Fold::Carry(int level, char* from, int64_t lanes) {
  if (!level_used_[level]) {
    CopyLanes(levels_[level], from, lanes);
    level_used_[level] = true;
    return 0;
  }
  const int state = plans_.first_state;
  combine_.ReadState(state, levels_[level]);
  combine_.ReadState(plans_.program->num_states + state, from);
  combine_.WriteState(state, levels_[level]);
  return combine_.Run(lanes);
}

void Fold::Start(int64_t lanes) {
  Reset(lanes);
  steps_ = 0;
  std::fill_n(level_used_, kLevels, false);
}

int Fold::Ascend(int64_t lanes) {
  int flags = 0;
  char* from = current_[0];
  int64_t steps = ++steps_;
  for (int level = 0; level < kLevels && steps % kCascade == 0; ++level) {
    flags |= Carry(level, from, lanes);
    if (level > 0) level_used_[level - 1] = false;
    from = levels_[level];
    steps /= kCascade;
  }
  if (from != current_[0]) Reset(lanes);
  return flags;
}

int Fold::Settle(int64_t lanes) {
  int flags = 0;
  for (int level = 0; level < kLevels; ++level) {
    if (!level_used_[level]) continue;
    flags |= Carry(level, current_[0], lanes);
    CopyLanes(current_[0], levels_[level], lanes);
    touched_ = lanes;
  }
  return flags;
}

int Fold::FoldLanes(int64_t n) {
  int flags = 0;
  while (n > 1) {
    const int64_t half = (n + 1) / 2;
    const int64_t rest = n - half;
    for (int s = 0; s < plans_.num_own; ++s) {
      const int state = plans_.first_state + s;
      combine_.ReadState(state, current_[s]);
      combine_.ReadState(plans_.program->num_states + state, current_[s] + half * lane_bytes_);
      combine_.WriteState(state, in_place_ ? current_[s] : next_[s]);
    }
    flags |= combine_.Run(rest);
    for (int s = 0; s < plans_.num_own && !in_place_; ++s) CopyLanes(current_[s], next_[s], rest);
    n = half;
  }
  return flags;
}

int Fold::Row(const Iteration& inner, const int64_t* shifts, int64_t begin, int64_t end) {
  const int64_t width = std::max<int64_t>(1, std::min(block(), end - begin));
  const bool cascades = plans_.cascades && end - begin > kCascade * width;
  int flags = 0;
  Start(width);
  for (int64_t position = begin; position < end;) {
    const int64_t n = inner.PieceLength(position, end, width);
    main_.Load(inner, shifts, position, n);
    main_.SetIndex(position, 1);
    flags |= RunMain(n);
    position += n;
    if (cascades) flags |= Ascend(width);
    if (patience_.Ends(n)) break;
  }
  flags |= Settle(width);
  return flags | FoldLanes(touched_);
}

int Fold::Step(const Space& space, const int64_t* shifts, int64_t position, int64_t n, int64_t index) {
  main_.Load(space.outer, shifts, position, n);
  main_.SetIndex(index, 0);
  return RunMain(n);
}

int Fold::Lanes(const Space& space, int64_t position, int64_t n) {
  const int64_t count = space.inner.numel;
  const bool cascades = plans_.cascades && count > kCascade;
  int flags = 0;
  Start(n);
  int64_t shifts[kMaxOperands];
  for (int64_t r = 0; r < count; ++r) {
    for (int k = 0; k < space.num_inputs; ++k) shifts[k] = space.inner.Offset(k, r);
    flags |= Step(space, shifts, position, n, r);
    if (cascades) flags |= Ascend(n);
    if (patience_.Ends(n)) break;
  }
  return flags | Settle(n);
}

}  // namespace mica::cpu
