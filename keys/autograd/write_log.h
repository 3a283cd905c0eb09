// Which operator wrote a storage last: for the error that says so.
//
// A small table of the most recent writes through the autograd layer; an entry
// may be overwritten, then the error does not name the write.
#pragma once

#include <cstdint>

#include "mica/tensor/tensor.h"

namespace mica::autograd {

void LogWrite(const Tensor& written, const char* op);
// The operator that gave the storage that version, or NULL.
const char* FindWrite(const Tensor& t, uint32_t version);

}  // namespace mica::autograd
