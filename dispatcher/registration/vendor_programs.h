// What a plugin's operator that runs from data may say: its record and programs come
// from another compiler's run, perhaps of a later SDK, and are checked before any
// engine reads them.
#pragma once

#include <string>

#include <mica/operators.h>

namespace mica {

// Throws where the record's numbers name no dtype rule, no dtype or no argument, and
// where an instruction is unknown or reads what its program does not have.
void CheckOperatorData(const MicaOperatorRecord& record, const std::string& name, int num_args,
                       int num_outputs);

}  // namespace mica
