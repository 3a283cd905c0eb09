// The plan compiler; see plan.h. Two passes: the bytecode becomes a graph of
// nodes, simplified as it is read (plan_graph.h); live nodes become steps (Emitter).
#include "plugins/cpu/engine/plans/plan.h"

#include <algorithm>

#include "plugins/cpu/engine/plans/plan_graph.h"

namespace mica::cpu {
namespace {

class Emitter {
 public:
  Emitter(const PlanRequest& request, Graph* graph, Plan* plan, const PrimitiveTable* table)
      : request_(request), graph_(*graph), plan_(*plan), lane_(plan->lane), table_(table) {}

  bool Emit() {
    if (table_ == nullptr) return Fail("its compute dtype is no lane of the CPU engine", -1);
    plan_.splat = table_->at[kOpSplat];
    CountLastUses();
    FindFixed();
    if (!EmitFixed() || !EmitVaryingNodes()) return false;
    // A result written before the last step may alias an input still to be read; what
    // follows a hot loop reads its results alone.
    plan_.reads_after_result = plan_.num_results > 1 && plan_.hot == nullptr;
    plan_.direct = IsDirect();
    return true;
  }

 private:
  bool IsDirect() const {
    const int n = request_.num_inputs;
    bool direct = plan_.num_slots == n + 1 && plan_.num_varying == n && plan_.num_results == 1 &&
                  plan_.results[0].slot == n;
    for (int v = 0; v < n; ++v) {
      const Binding& input = plan_.varying[v];
      direct = direct && input.role == Role::kInput && input.index == v && input.slot == v;
    }
    return direct;
  }

  bool Fail(const char* reason, int opcode) {
    plan_.error = reason;
    plan_.error_opcode = static_cast<int16_t>(opcode);
    return false;
  }

  // What is the same for all elements, in slots of its own.
  bool EmitFixed() {
    keeps_slots_ = true;
    for (int i = 0; i < graph_.count; ++i)
      if (graph_.nodes[i].live && fixed_[i] && !EmitNode(i)) return false;
    keeps_slots_ = false;
    plan_.num_fixed = plan_.num_steps;
    return true;
  }

  // The other nodes, and all stores.
  bool EmitVaryingNodes() {
    for (int i = 0; i < graph_.count; ++i) {
      if (graph_.nodes[i].live && !fixed_[i] && !EmitNode(i)) return false;
      for (int s = 0; s < graph_.num_stores; ++s) {
        if (graph_.store_node[s] == i && !EmitStore(s)) return false;
      }
      ReleaseAfter(i);
    }
    return true;
  }

  // Constants, and what is computed of them alone. A node whose result would be written
  // where it is stored is computed with the others.
  void FindFixed() {
    for (int i = 0; i < graph_.count; ++i) {
      const Node& node = graph_.nodes[i];
      fixed_[i] = IsConstant(node) || node.operand[0] >= 0;
      for (const int16_t operand : node.operand) fixed_[i] &= operand < 0 || fixed_[operand];
      for (int s = 0; s < graph_.num_stores; ++s) fixed_[i] &= IsConstant(node) || graph_.store_node[s] != i;
    }
  }

  // last_[n]: the node after which n's slot may be used again.
  void CountLastUses() {
    for (int i = 0; i < graph_.count; ++i) last_[i] = i;
    for (int i = 0; i < graph_.count; ++i) {
      if (!graph_.nodes[i].live) continue;
      if (graph_.nodes[i].opcode == kOpHot) std::fill_n(last_, i, i);
      for (const int16_t operand : graph_.nodes[i].operand) {
        if (operand >= 0) last_[operand] = i;
      }
    }
  }

  int NewSlot() { return plan_.num_slots < kMaxSlots ? plan_.num_slots++ : -1; }
  int Temporary() {
    if (keeps_slots_) return NewSlot();
    if (num_free_ > 0) return free_[--num_free_];
    const int slot = NewSlot();
    if (slot >= 0) temporary_[slot] = true;
    return slot;
  }
  void Release(int slot) {
    if (slot >= 0 && temporary_[slot]) free_[num_free_++] = static_cast<uint8_t>(slot);
  }
  void ReleaseAfter(int i) {
    for (int k = 0; k <= i; ++k) {
      Node& node = graph_.nodes[k];
      if (node.live && last_[k] == i && node.slot >= 0 && !released_[k]) {
        released_[k] = true;
        Release(node.slot);
      }
    }
  }

  bool Push(Primitive run, int dst, int a, int b, int c, int opcode) {
    if (run == nullptr) return Fail("the operation has no meaning in its compute dtype", opcode);
    if (plan_.num_steps == kMaxSteps || dst < 0)
      return Fail("the program is too long for the CPU engine", opcode);
    const auto byte = [](int slot) { return static_cast<uint8_t>(slot < 0 ? 0 : slot); };
    plan_.steps[plan_.num_steps++] = {run, byte(dst), byte(a), byte(b), byte(c)};
    return true;
  }

  // Real dtype to real dtype, over float32 where no direct step exists.
  bool PushCast(int from, int to, int dst, int a) {
    if (Primitive direct = DirectCast(from, to)) return Push(direct, dst, a, -1, -1, MICA_OP_CAST);
    const int middle = Temporary();
    const bool done = Push(DirectCast(from, MICA_F32), middle, a, -1, -1, MICA_OP_CAST) &&
                      Push(DirectCast(MICA_F32, to), dst, middle, -1, -1, MICA_OP_CAST);
    Release(middle);
    return done;
  }

  bool EmitNode(int i) {
    Node& node = graph_.nodes[i];
    if (IsConstant(node)) return EmitConstant(node);
    if (IsVarying(node)) return EmitVarying(i);
    if (node.opcode == MICA_OP_CAST) return EmitRounding(node);
    if (node.opcode == kOpHot) return EmitHot(i);
    if (node.opcode == kOpHotResult) return true;
    const int a = node.operand[0] < 0 ? -1 : graph_.nodes[node.operand[0]].slot;
    const int b = node.operand[1] < 0 ? -1 : graph_.nodes[node.operand[1]].slot;
    const int c = node.operand[2] < 0 ? -1 : graph_.nodes[node.operand[2]].slot;
    const bool of_masks = node.opcode >= MICA_OP_MASK_AND && node.opcode <= MICA_OP_MASK_NOT;
    const PrimitiveTable* table = of_masks || node.opcode == MICA_OP_MASK_SELECT ? MaskTable() : table_;
    // A test of a bool input is the input.
    if (node.opcode == MICA_OP_TO_MASK) {
      const Node& source = graph_.nodes[node.operand[0]];
      if (IsBoolInput(source)) {
        node.slot = static_cast<int16_t>(InputSlot(source));
        return true;
      }
    }
    node.slot = static_cast<int16_t>(ResultSlot(i));
    return Push(table->at[node.opcode], node.slot, a, b, c, node.opcode);
  }

  // One step that reads all nodes before it and writes itself and those that follow.
  bool EmitHot(int i) {
    if (plan_.num_steps == kMaxSteps) return Fail("the program is too long for the CPU engine", -1);
    for (int k = 0; k < graph_.count; ++k) {
      if (k >= i) graph_.nodes[k].slot = static_cast<int16_t>(ResultSlot(k));
      plan_.hot_slots[k] = static_cast<uint8_t>(graph_.nodes[k].slot);
    }
    plan_.num_hot = static_cast<int8_t>(graph_.count);
    plan_.steps[plan_.num_steps++] = {};
    return true;
  }

  bool IsBoolInput(const Node& node) const {
    return (node.opcode == MICA_OP_LOAD || node.opcode == MICA_OP_ELEMENT) &&
           request_.input_dtypes[node.opcode == MICA_OP_LOAD ? node.aux : 0] == MICA_BOOL;
  }

  // Where node i is written: straight to the output that stores it, if it can be.
  int ResultSlot(int i) {
    const Node& node = graph_.nodes[i];
    for (int s = 0; s < graph_.num_stores; ++s) {
      if (graph_.store_node[s] != i || plan_.planes) continue;
      const bool state = graph_.store_role[s] == Role::kState;
      const int dtype = state ? lane_ : request_.output_dtypes[graph_.stores[s]];
      // A mask is a byte, 0 or 1.
      if (node.mask ? dtype != MICA_BOOL && dtype != MICA_U8 && dtype != MICA_I8 : dtype != lane_) continue;
      written_[s] = true;
      return StoreSlot(s);
    }
    return Temporary();
  }

  int StoreSlot(int s) {
    const int slot = NewSlot();
    plan_.results[plan_.num_results++] = {graph_.store_role[s], static_cast<uint8_t>(slot < 0 ? 0 : slot),
                                          static_cast<int16_t>(graph_.stores[s])};
    return slot;
  }

  bool EmitConstant(Node& node) {
    if (plan_.num_constants == 32) return Fail("the program has too many constants", node.opcode);
    const ConstantSource source = node.opcode == MICA_OP_CONST    ? ConstantSource::kConstant
                                  : node.opcode == MICA_OP_SCALAR ? ConstantSource::kScalar
                                  : node.opcode == MICA_OP_COUNT  ? ConstantSource::kCount
                                                                  : ConstantSource::kSize;
    node.slot = static_cast<int16_t>(NewSlot());
    if (node.slot < 0) return Fail("the program is too long for the CPU engine", node.opcode);
    plan_.constants[plan_.num_constants++] = {source, static_cast<uint8_t>(node.slot), Wraps(node), node.aux};
    return true;
  }

  // Whether the low bits of a number decide those of all that is made of it, as in x + 1000 of uint8.
  bool Wraps(const Node& number) const {
    const auto index = static_cast<int16_t>(&number - graph_.nodes);
    for (int s = 0; s < graph_.num_stores; ++s) {
      if (graph_.store_node[s] == index) return false;
    }
    for (int i = 0; i < graph_.count; ++i) {
      const Node& node = graph_.nodes[i];
      if (!node.live || std::find(node.operand, node.operand + 3, index) == node.operand + 3) continue;
      switch (node.opcode) {
        case MICA_OP_ADD:
        case MICA_OP_SUB:
        case MICA_OP_MUL:
        case MICA_OP_AND:
        case MICA_OP_OR:
        case MICA_OP_XOR:
          continue;
        default:
          return false;
      }
    }
    return true;
  }

  int VaryingSlot(Role role, int index) {
    for (int v = 0; v < plan_.num_varying; ++v) {
      if (plan_.varying[v].role == role && plan_.varying[v].index == index) return plan_.varying[v].slot;
    }
    if (plan_.num_varying == kMaxInputs + kMaxResults) return -1;
    const int slot = NewSlot();
    if (slot >= 0)
      plan_.varying[plan_.num_varying++] = {role, static_cast<uint8_t>(slot), static_cast<int16_t>(index)};
    return slot;
  }
  int InputSlot(const Node& node) {
    return VaryingSlot(Role::kInput, node.opcode == MICA_OP_LOAD ? node.aux : 0);
  }

  bool EmitVarying(int i) {
    Node& node = graph_.nodes[i];
    if (node.opcode == MICA_OP_STATE) {
      node.slot = static_cast<int16_t>(VaryingSlot(Role::kState, node.aux));
      return node.slot >= 0 || Fail("the program has too many states", node.opcode);
    }
    if (node.opcode == MICA_OP_INDEX || node.opcode == MICA_OP_COORD) {
      const Role role = node.opcode == MICA_OP_INDEX ? Role::kIndex : Role::kCoord;
      const int first = VaryingSlot(role, node.aux);
      node.slot = static_cast<int16_t>(Temporary());
      return Push(table_->at[kOpIota], node.slot, first, -1, -1, node.opcode);
    }
    const int dtype = request_.input_dtypes[node.opcode == MICA_OP_LOAD ? node.aux : 0];
    const int raw = InputSlot(node);
    if (raw < 0) return Fail("the program has too many inputs", node.opcode);
    if (dtype == lane_ && !plan_.planes) {
      node.slot = static_cast<int16_t>(raw);
      return true;
    }
    if (OnlyTested(i) && dtype == MICA_BOOL) return true;
    node.slot = static_cast<int16_t>(Temporary());
    if (!plan_.planes) {
      return PushCast(IsComplex(dtype) ? RealOf(dtype) : dtype, lane_, node.slot, raw);
    }
    if (!IsComplex(dtype)) {
      return PushCast(dtype, RealOf(lane_), node.slot, raw) &&
             Push(table_->at[kOpZeroImaginary], node.slot, -1, -1, -1, node.opcode);
    }
    if (dtype == lane_) return Push(Deinterleave(dtype), node.slot, raw, -1, -1, node.opcode);
    const int middle = Temporary();
    const bool done = Push(Deinterleave(dtype), middle, raw, -1, -1, node.opcode) &&
                      Push(CastPlanes(lane_ == MICA_C128), node.slot, middle, -1, -1, node.opcode);
    Release(middle);
    return done;
  }

  // Whether every reader of input node i is a test, which takes a bool as it is.
  bool OnlyTested(int i) const {
    for (int k = 0; k < graph_.count; ++k) {
      const Node& node = graph_.nodes[k];
      if (!node.live || node.opcode == MICA_OP_TO_MASK) continue;
      if (node.opcode == kOpHot) return false;
      for (const int16_t operand : node.operand) {
        if (operand == i) return false;
      }
    }
    for (int s = 0; s < graph_.num_stores; ++s) {
      if (graph_.store_node[s] == i) return false;
    }
    return true;
  }

  bool EmitRounding(Node& node) {
    const int a = graph_.nodes[node.operand[0]].slot;
    node.slot = static_cast<int16_t>(Temporary());
    if (node.aux == lane_ || IsComplex(node.aux) || plan_.planes) {
      return Push(table_->at[kOpCopy], node.slot, a, -1, -1, node.opcode);
    }
    const int middle = Temporary();
    const bool done = PushCast(lane_, node.aux, middle, a) && PushCast(node.aux, lane_, node.slot, middle);
    Release(middle);
    return done;
  }

  bool EmitStore(int s) {
    if (written_[s]) return true;
    const Node& node = graph_.nodes[graph_.store_node[s]];
    const bool state = graph_.store_role[s] == Role::kState;
    const int dtype = state ? lane_ : request_.output_dtypes[graph_.stores[s]];
    const int slot = StoreSlot(s);
    if (node.mask && !IsComplex(dtype)) return PushCast(MICA_BOOL, dtype, slot, node.slot);
    if (node.mask) return EmitTruthAsComplex(dtype, slot, node.slot);
    if (state) return Push(table_->at[kOpCopy], slot, node.slot, -1, -1, MICA_OP_STORE_STATE);
    if (!plan_.planes) {
      if (IsComplex(dtype)) return Fail("a real program has a complex output", MICA_OP_STORE);
      return PushCast(lane_, dtype, slot, node.slot);
    }
    if (!IsComplex(dtype)) return PushCast(RealOf(lane_), dtype, slot, node.slot);
    if (dtype == lane_) return Push(Interleave(dtype), slot, node.slot, -1, -1, MICA_OP_STORE);
    const int middle = Temporary();
    const bool done = Push(CastPlanes(dtype == MICA_C128), middle, node.slot, -1, -1, MICA_OP_STORE) &&
                      Push(Interleave(dtype), slot, middle, -1, -1, MICA_OP_STORE);
    Release(middle);
    return done;
  }

  // Of comparisons of complex numbers, written into one of them.
  bool EmitTruthAsComplex(int dtype, int slot, int mask) {
    if (dtype != lane_) return Fail("a truth value cannot be stored in this complex output", MICA_OP_STORE);
    const int number = Temporary();
    const bool done = PushCast(MICA_BOOL, RealOf(lane_), number, mask) &&
                      Push(table_->at[kOpZeroImaginary], number, -1, -1, -1, MICA_OP_STORE) &&
                      Push(Interleave(dtype), slot, number, -1, -1, MICA_OP_STORE);
    Release(number);
    return done;
  }

  const PlanRequest& request_;
  Graph& graph_;
  Plan& plan_;
  const int lane_;
  const PrimitiveTable* table_;
  int last_[kMaxNodes];
  bool released_[kMaxNodes] = {};
  bool fixed_[kMaxNodes] = {};
  bool keeps_slots_ = false;
  bool written_[kMaxResults] = {};
  bool temporary_[kMaxSlots] = {};
  uint8_t free_[kMaxSlots];
  int num_free_ = 0;
};

}  // namespace

void Compile(const PlanRequest& request, Plan* plan) {
  Graph graph;
  plan->hot = request.whole ? FindHotLoop(*request.program, request.lane) : nullptr;
  if (plan->hot != nullptr) HotGraph(request, &graph);
  const bool read = plan->hot != nullptr || ReadGraph(request, &graph);
  const PrimitiveTable* narrow = read && plan->hot == nullptr ? NarrowTableFor(request, graph) : nullptr;
  plan->lane = narrow != nullptr ? request.output_dtypes[graph.stores[0]] : request.lane;
  plan->lane_size = static_cast<int32_t>(DtypeSize(plan->lane));
  plan->planes = IsComplex(plan->lane) && narrow == nullptr;
  int64_t widest = plan->lane_size;
  for (int i = 0; i < request.num_inputs; ++i) widest = std::max(widest, DtypeSize(request.input_dtypes[i]));
  for (int i = 0; i < request.num_outputs; ++i)
    widest = std::max(widest, DtypeSize(request.output_dtypes[i]));
  plan->block = plan->lane_size >= 8 ? kBlock / 2 : kBlock;
  // The odd line keeps slots from falling on the same sets of the L1 cache.
  plan->slot_bytes = static_cast<int32_t>(kBlock * std::max<int64_t>(widest, 8) + 64);
  if (widest < 8) plan->slot_bytes = static_cast<int32_t>(kBlock * std::max<int64_t>(widest, 4) + 64);
  if (!read) {
    plan->error = "the program is too long for the CPU engine";
    return;
  }
  Emitter(request, &graph, plan, narrow != nullptr ? narrow : LaneTable(request.lane)).Emit();
}

}  // namespace mica::cpu
