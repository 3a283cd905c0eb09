// Counts for `mica-gen --stats`: how much of the operators is data.
#pragma once

#include <string>

#include "mica/codegen/model.h"

namespace mica::codegen {

// A table, one line a number, ended by a line of the totals.
std::string StatsText(const Model& model);

}  // namespace mica::codegen
