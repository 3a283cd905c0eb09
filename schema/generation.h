// Generations of a schema: an operator keeps its name while its arguments grow.
//
// A kernel that was built for an earlier schema serves the present one where only
// arguments with defaults were added: it is called without them as long as they
// hold those defaults. mica-gen checks what `earlier:` of an entry says with this,
// and the dispatcher makes its calls by it.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "schema/schema.h"

namespace mica::schema {

// For each argument of `earlier`, its number in `now`. An error, a sentence that
// names what differs, where a kernel of `earlier` cannot serve `now`: another name
// or other results, an argument that is gone, moved, or of another type, or a new
// one without a default.
absl::StatusOr<std::vector<int>> KeptArguments(const FunctionSchema& earlier, const FunctionSchema& now);

}  // namespace mica::schema
