// Distributions over contiguous CPU memory, drawn as torch 2.13's CPU kernels
// (without MKL) draw them: the same words in the same order, so that the same
// seed gives the same numbers.
//
// Bit for bit: uniform, bernoulli, randint, randperm, normal in float64. Normal
// in float32 is within 2 ULP. Each Fill locks the generator once. `data` holds
// `n` elements of `dtype`. Unsupported dtypes throw kNotImplemented.
#pragma once

#include "tensor/dtype.h"
#include "tensor/generator.h"

namespace mica {

// [from, to) for floating dtypes: 53 bits for float64, 24 for the others, which
// are then rounded; a value that rounds to `to` becomes `from`.
void FillUniform(Generator& g, void* data, int64_t n, DType dtype, double from, double to);
// mean + std * N(0, 1) for floating dtypes. From 16 elements on, in blocks of 16
// (8 cosines, then 8 sines; the last 16 are redrawn when n % 16 != 0); below,
// pair by pair in float64 with the second value kept in the generator.
void FillNormal(Generator& g, void* data, int64_t n, DType dtype, double mean, double std);
// 1 with probability `p`, else 0, in any dtype; each draw takes 53 bits.
void FillBernoulli(Generator& g, void* data, int64_t n, DType dtype, double p);
// The same with a probability for each element: 53 bits when `p_dtype` is
// float64, otherwise 24. Throws kRuntime for a p outside [0, 1].
void FillBernoulliTensor(Generator& g, void* data, int64_t n, DType dtype, const void* p, DType p_dtype);
// Integers in [low, high), in any real dtype: one word each, two when the range
// reaches 2^28. The smallest int64_t as `high` stands for 2^63.
void FillRandint(Generator& g, void* data, int64_t n, DType dtype, int64_t low, int64_t high);
// A permutation of 0..n-1, in any real dtype that holds n - 1.
// Calls `pause` now and then, without the lock; what it throws ends the fill.
void FillRandperm(Generator& g, void* data, int64_t n, DType dtype, void (*pause)() = nullptr);

// One draw; the generator's mutex must be held. For layouts other than
// contiguous, where torch draws one by one.
double DrawUniform53(Generator& g);                        // [0, 1)
float DrawUniform24(Generator& g);                         // [0, 1)
double DrawNormal(Generator& g, double mean, double std);  // keeps the second of a pair

}  // namespace mica
