// A section of bytecode as a graph of operations, simplified: the plan compiler's first
// pass. Used by plan.cc alone.
//
// Nodes stand in an order in which they can run. Operands that must be masks are, and
// the others are lanes; what no result needs is not `live`.
#ifndef MICA_PLUGINS_CPU_ENGINE_PLAN_GRAPH_H_
#define MICA_PLUGINS_CPU_ENGINE_PLAN_GRAPH_H_

#include "plugins/cpu/engine/plans/plan.h"

namespace mica::cpu {

inline constexpr int kMaxNodes = 256;

struct Node {
  int16_t opcode;
  int16_t operand[3] = {-1, -1, -1};
  int16_t aux = 0;
  bool mask = false;
  bool live = false;
  int16_t uses = 0;
  int16_t slot = -1;
};

inline bool IsConstant(const Node& node) {
  return node.opcode == MICA_OP_CONST || node.opcode == MICA_OP_SCALAR || node.opcode == MICA_OP_COUNT ||
         node.opcode == MICA_OP_SIZE;
}

inline bool IsVarying(const Node& node) {
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

// Reads the request's code into `graph`; false when it is too long for a plan.
bool ReadGraph(const PlanRequest& request, Graph* graph);

// Inputs (of a factory: the coordinate), numbers and a node over all of them for each result, for
// a program that has a hot loop.
void HotGraph(const PlanRequest& request, Graph* graph);

// The table of a program that is one operation on memory of a half type, or NULL.
const PrimitiveTable* NarrowTableFor(const PlanRequest& request, const Graph& graph);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ENGINE_PLAN_GRAPH_H_
