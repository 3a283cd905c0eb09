// The plan compiler; see plan.h. Two passes: the bytecode becomes a graph of
// nodes (Reader), simplified as it is read; live nodes become steps (Emitter).
#include "mica/plugins/cpu/engine/plan.h"

#include <algorithm>
#include <cstring>

namespace mica::cpu {
namespace {

constexpr int kMaxNodes = 256;
constexpr int kResultLane = 0, kResultMask = 1, kResultNone = 2;

struct OpcodeInfo {
  int8_t arity;
  int8_t result;
};
#define L kResultLane
#define M kResultMask
#define N kResultNone
#define MICA_INFO(name, arity, result) {arity, result},
constexpr OpcodeInfo kInfo[] = {MICA_FORALL_OPCODES(MICA_INFO){1, L}, {3, L}, {1, L}, {1, L}, {1, L}};
#undef MICA_INFO
#undef L
#undef M
#undef N

struct Node {
  int16_t opcode;
  int16_t operand[3] = {-1, -1, -1};
  int16_t aux = 0;
  bool mask = false;
  bool live = false;
  int16_t uses = 0;
  int16_t slot = -1;
};

bool IsMaskOperand(int opcode, int position) {
  switch (opcode) {
    case MICA_OP_SELECT:
      return position == 0;
    case MICA_OP_TO_LANE:
    case MICA_OP_MASK_AND:
    case MICA_OP_MASK_OR:
    case MICA_OP_MASK_XOR:
    case MICA_OP_MASK_NOT:
    case MICA_OP_MASK_SELECT:
      return true;
    default:
      return false;
  }
}

bool IsConstant(const Node& node) {
  return node.opcode == MICA_OP_CONST || node.opcode == MICA_OP_SCALAR || node.opcode == MICA_OP_COUNT ||
         node.opcode == MICA_OP_SIZE;
}

bool IsVarying(const Node& node) {
  return node.opcode == MICA_OP_LOAD || node.opcode == MICA_OP_ELEMENT || node.opcode == MICA_OP_STATE ||
         node.opcode == MICA_OP_INDEX || node.opcode == MICA_OP_COORD;
}

struct Graph {
  Node nodes[kMaxNodes];
  int count = 0;
  int stores[kMaxResults];
  int16_t store_node[kMaxResults];
  Role store_role[kMaxResults];
  int num_stores = 0;
};

class Reader {
 public:
  Reader(const PlanRequest& request, Graph* graph) : request_(request), graph_(graph) {}

  // False when the program is too long for a plan.
  bool Read() {
    std::fill_n(value_, 256, int16_t{-1});
    for (int64_t i = 0; i < request_.code_size; ++i) {
      if (graph_->count + 4 > kMaxNodes || graph_->num_stores == kMaxResults) return false;
      ReadOne(request_.code[i]);
    }
    for (int i = 0; i < graph_->num_stores; ++i) Mark(graph_->store_node[i]);
    FuseProducts();
    return true;
  }

 private:
  int Add(int opcode, int a = -1, int b = -1, int c = -1, int aux = 0) {
    Node& node = graph_->nodes[graph_->count];
    node = Node{};
    node.opcode = static_cast<int16_t>(opcode);
    node.operand[0] = static_cast<int16_t>(a);
    node.operand[1] = static_cast<int16_t>(b);
    node.operand[2] = static_cast<int16_t>(c);
    node.aux = static_cast<int16_t>(aux);
    node.mask = kInfo[opcode].result == kResultMask;
    return graph_->count++;
  }

  // The node as a lane or as a mask, whichever the reader of it needs.
  int As(int index, bool mask) {
    if (graph_->nodes[index].mask == mask) return index;
    return Add(mask ? MICA_OP_TO_MASK : MICA_OP_TO_LANE, index);
  }

  bool IsScalarIn(int index, uint32_t set) const {
    const Node& node = graph_->nodes[index];
    return node.opcode == MICA_OP_SCALAR && node.aux < 32 && (set >> node.aux & 1) != 0;
  }
  bool IsNumber(int index, int64_t number) const {
    const Node& node = graph_->nodes[index];
    if (node.opcode != MICA_OP_CONST) {
      return IsScalarIn(index, number == 1 ? request_.ones : number == 2 ? request_.twos : 0);
    }
    const MicaConstant& constant = request_.program->constants[node.aux];
    return constant.is_integer ? constant.i == number : constant.f == static_cast<double>(number);
  }

  void ReadOne(const MicaInstruction& instruction) {
    const int opcode = instruction.opcode;
    if (opcode == MICA_OP_STORE || opcode == MICA_OP_STORE_STATE) {
      const int s = graph_->num_stores++;
      const bool state = opcode == MICA_OP_STORE_STATE;
      const int node = value_[instruction.a];
      graph_->stores[s] = instruction.aux;
      graph_->store_node[s] = static_cast<int16_t>(state ? As(node, false) : node);
      graph_->store_role[s] = state ? Role::kState : Role::kOutput;
      return;
    }
    const uint8_t registers[3] = {instruction.a, instruction.b, instruction.c};
    int operand[3] = {-1, -1, -1};
    for (int k = 0; k < kInfo[opcode].arity; ++k) {
      operand[k] = value_[registers[k]];
      if (opcode == MICA_OP_TO_MASK || opcode == MICA_OP_TO_LANE) continue;
      operand[k] = As(operand[k], IsMaskOperand(opcode, k));
    }
    value_[instruction.dst] = static_cast<int16_t>(Simplify(opcode, operand, instruction.aux));
  }

  int Simplify(int opcode, const int* operand, int aux) {
    switch (opcode) {
      case MICA_OP_TO_MASK:
        return As(operand[0], true);
      case MICA_OP_TO_LANE:
        return As(operand[0], false);
      case MICA_OP_MUL:
        if (request_.lane == MICA_BOOL) break;
        if (IsNumber(operand[1], 1)) return operand[0];
        if (IsNumber(operand[0], 1)) return operand[1];
        break;
      case MICA_OP_POW:
        if (request_.lane == MICA_BOOL) break;
        if (IsNumber(operand[1], 1)) return operand[0];
        if (IsNumber(operand[1], 2)) return Add(MICA_OP_SQUARE, operand[0]);
        break;
      case MICA_OP_LOAD:
      case MICA_OP_ELEMENT:
      case MICA_OP_STATE:
      case MICA_OP_INDEX:
      case MICA_OP_SCALAR:
      case MICA_OP_CONST:
        for (int i = 0; i < graph_->count; ++i) {
          if (graph_->nodes[i].opcode == opcode && graph_->nodes[i].aux == aux) return i;
        }
        break;
      default:
        break;
    }
    return Add(opcode, operand[0], operand[1], operand[2], aux);
  }

  void Mark(int index) {
    Node& node = graph_->nodes[index];
    ++node.uses;
    if (node.live) return;
    node.live = true;
    for (const int16_t operand : node.operand) {
      if (operand >= 0) Mark(operand);
    }
  }

  // a + b * c in one step, where nothing else reads the product.
  void FuseProducts() {
    if (IsComplex(request_.lane)) return;
    for (int i = 0; i < graph_->count; ++i) {
      Node& sum = graph_->nodes[i];
      if (!sum.live || sum.opcode != MICA_OP_ADD) continue;
      for (const int side : {1, 0}) {
        Node& product = graph_->nodes[sum.operand[side]];
        if (product.opcode != MICA_OP_MUL || product.uses != 1) continue;
        product.live = false;
        const int16_t other = sum.operand[1 - side];
        sum.opcode = kOpMulAdd;
        sum.operand[0] = other;
        sum.operand[1] = product.operand[0];
        sum.operand[2] = product.operand[1];
        break;
      }
    }
  }

  const PlanRequest& request_;
  Graph* graph_;
  int16_t value_[256];
};

class Emitter {
 public:
  Emitter(const PlanRequest& request, Graph* graph, Plan* plan, const PrimitiveTable* table)
      : request_(request), graph_(*graph), plan_(*plan), lane_(plan->lane), table_(table) {}

  bool Emit() {
    if (table_ == nullptr) return Fail("its compute dtype is no lane of the CPU engine", -1);
    plan_.splat = table_->at[kOpSplat];
    CountLastUses();
    for (int i = 0; i < graph_.count; ++i) {
      if (graph_.nodes[i].live && !EmitNode(i)) return false;
      for (int s = 0; s < graph_.num_stores; ++s) {
        if (graph_.store_node[s] == i && !EmitStore(s)) return false;
      }
      ReleaseAfter(i);
    }
    // A result written before the last step may alias an input still to be read.
    plan_.reads_after_result = plan_.num_results > 1;
    return true;
  }

 private:
  bool Fail(const char* reason, int opcode) {
    plan_.error = reason;
    plan_.error_opcode = static_cast<int16_t>(opcode);
    return false;
  }

  // last_[n]: the node after which n's slot may be used again.
  void CountLastUses() {
    for (int i = 0; i < graph_.count; ++i) last_[i] = i;
    for (int i = 0; i < graph_.count; ++i) {
      if (!graph_.nodes[i].live) continue;
      for (const int16_t operand : graph_.nodes[i].operand) {
        if (operand >= 0) last_[operand] = i;
      }
    }
  }

  int NewSlot() { return plan_.num_slots < kMaxSlots ? plan_.num_slots++ : -1; }
  int Temporary() {
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

  bool IsBoolInput(const Node& node) const {
    return (node.opcode == MICA_OP_LOAD || node.opcode == MICA_OP_ELEMENT) &&
           request_.input_dtypes[node.opcode == MICA_OP_LOAD ? node.aux : 0] == MICA_BOOL;
  }

  // Where node i is written: straight to the output that stores it, if it can be.
  int ResultSlot(int i) {
    const Node& node = graph_.nodes[i];
    for (int s = 0; s < graph_.num_stores; ++s) {
      if (graph_.store_node[s] != i || IsComplex(lane_)) continue;
      const bool state = graph_.store_role[s] == Role::kState;
      const int dtype = state ? lane_ : request_.output_dtypes[graph_.stores[s]];
      if (dtype != (node.mask ? MICA_BOOL : lane_)) continue;
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
    plan_.constants[plan_.num_constants++] = {source, static_cast<uint8_t>(node.slot), node.aux};
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
    if (dtype == lane_ && !IsComplex(lane_)) {
      node.slot = static_cast<int16_t>(raw);
      return true;
    }
    if (OnlyTested(i) && dtype == MICA_BOOL) return true;
    node.slot = static_cast<int16_t>(Temporary());
    if (!IsComplex(lane_)) {
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
    if (node.aux == lane_ || IsComplex(node.aux) || IsComplex(lane_)) {
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
    if (node.mask) {
      if (!IsComplex(dtype)) return PushCast(MICA_BOOL, dtype, slot, node.slot);
      return Fail("a truth value cannot be stored in a complex output", MICA_OP_STORE);
    }
    if (state) return Push(table_->at[kOpCopy], slot, node.slot, -1, -1, MICA_OP_STORE_STATE);
    if (!IsComplex(lane_)) {
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

  const PlanRequest& request_;
  Graph& graph_;
  Plan& plan_;
  const int lane_;
  const PrimitiveTable* table_;
  int last_[kMaxNodes];
  bool released_[kMaxNodes] = {};
  bool written_[kMaxResults] = {};
  bool temporary_[kMaxSlots] = {};
  uint8_t free_[kMaxSlots];
  int num_free_ = 0;
};

// The table of a program that is one operation on memory of a half type, or NULL.
const PrimitiveTable* NarrowTableFor(const PlanRequest& request, const Graph& graph) {
  if (request.lane != MICA_F32 || graph.num_stores != 1 || graph.store_role[0] != Role::kOutput)
    return nullptr;
  const int dtype = request.output_dtypes[graph.stores[0]];
  const PrimitiveTable* table = NarrowTable(dtype);
  int operations = 0;
  for (int i = 0; table != nullptr && i < graph.count; ++i) {
    const Node& node = graph.nodes[i];
    if (!node.live) continue;
    const bool input = node.opcode == MICA_OP_LOAD && request.input_dtypes[node.aux] == dtype;
    if (!input && (table->at[node.opcode] == nullptr || ++operations > 1)) return nullptr;
  }
  return operations == 1 ? table : nullptr;
}

}  // namespace

void Compile(const PlanRequest& request, Plan* plan) {
  Graph graph;
  Reader reader(request, &graph);
  const bool read = reader.Read();
  const PrimitiveTable* narrow = read ? NarrowTableFor(request, graph) : nullptr;
  plan->lane = narrow != nullptr ? request.output_dtypes[graph.stores[0]] : request.lane;
  plan->lane_size = static_cast<int32_t>(DtypeSize(plan->lane));
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
