// Counts for `mica-gen --stats`: how much of the operators is data.
#pragma once

#include <string>

#include "codegen/model.h"

namespace mica::codegen {

// How an entry is made: one of kWayNames.
enum class Way { kData, kYaml, kCpp, kHand };
inline constexpr int kWayCount = 4;
inline constexpr const char* kWayNames[] = {"generated from data", "composed in YAML", "composed in C++",
                                            "by hand"};
Way WayOf(const Entry& entry);

// Where an entry's batch rule comes from. `batch_rule: refused` and `batch_rule: kernel` name no function.
enum class BatchWay { kClass, kParts, kHand, kLoop, kRefused };
inline constexpr int kBatchWayCount = 5;
inline constexpr const char* kBatchRefused = "refused";
inline constexpr const char* kBatchKernel = "kernel";
BatchWay BatchWayOf(const Entry& entry);

// A table, one line a number, ended by a line of the totals.
std::string StatsText(const Model& model);

}  // namespace mica::codegen
