// Bytecode to graph; see plan_graph.h.
#include "plugins/cpu/engine/plans/plan_graph.h"

#include <algorithm>
#include <cstring>

namespace mica::cpu {
namespace {

constexpr int kResultLane = 0, kResultMask = 1, kResultNone = 2;

struct OpcodeInfo {
  int8_t arity;
  int8_t result;
};
#define L kResultLane
#define M kResultMask
#define N kResultNone
#define MICA_INFO(name, arity, result) {arity, result},
constexpr OpcodeInfo kInfo[] = {MICA_FORALL_OPCODES(MICA_INFO){1, L}, {3, L}, {1, L}, {1, L}, {1, L}, {0, L}};
#undef MICA_INFO
#undef L
#undef M
#undef N

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

}  // namespace

void HotGraph(const PlanRequest& request, Graph* graph) {
  const auto add = [graph](int opcode, int aux) {
    Node& node = graph->nodes[graph->count++];
    node.opcode = static_cast<int16_t>(opcode);
    node.aux = static_cast<int16_t>(aux);
    node.live = true;
  };
  for (int i = 0; i < request.program->num_inputs; ++i) add(MICA_OP_LOAD, i);
  if (std::strcmp(request.program->class_name, "factory") == 0) add(MICA_OP_COORD, 0);
  for (int i = 0; i < request.program->num_scalars; ++i) add(MICA_OP_SCALAR, i);
  graph->num_stores = request.num_outputs;
  for (int r = 0; r < request.num_outputs; ++r) {
    add(r == 0 ? kOpHot : kOpHotResult, r);
    graph->stores[r] = r;
    graph->store_node[r] = static_cast<int16_t>(graph->count - 1);
    graph->store_role[r] = Role::kOutput;
  }
}

bool ReadGraph(const PlanRequest& request, Graph* graph) { return Reader(request, graph).Read(); }

const PrimitiveTable* NarrowTableFor(const PlanRequest& request, const Graph& graph) {
  if (graph.num_stores != 1 || graph.store_role[0] != Role::kOutput) return nullptr;
  const int dtype = request.output_dtypes[graph.stores[0]];
  if (request.lane != LaneOf(dtype)) return nullptr;
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

}  // namespace mica::cpu
