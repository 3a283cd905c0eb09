// The general meta functions, one a class, and what portable kernels need of
// them. mica-gen puts them into the specs of entries that name no `meta`.
#pragma once

#include "dispatcher/tables/operator_spec.h"

namespace mica::meta {

void GenericPointwise(const OperatorSpec& spec, const MicaValue* args, MetaResult& result);
void GenericReduction(const OperatorSpec& spec, const MicaValue* args, MetaResult& result);
void GenericScan(const OperatorSpec& spec, const MicaValue* args, MetaResult& result);
void GenericRow(const OperatorSpec& spec, const MicaValue* args, MetaResult& result);
void GenericRandom(const OperatorSpec& spec, const MicaValue* args, MetaResult& result);
void GenericFactory(const OperatorSpec& spec, const MicaValue* args, MetaResult& result);

// The wrapped dimensions that a reduction's arguments name; all where they name
// none and the entry says so.
Dims ReductionDims(const OperatorSpec& spec, const MicaValue* args, int64_t ndim);

}  // namespace mica::meta
