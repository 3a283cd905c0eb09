// Memory that nobody wrote, in torch's deterministic mode: empty() and its kin, and resize_() for
// what is new, fill it with NaN, the largest integer or True, so that a program that reads it
// does the same in every run. Off by default; Python sets it.
#pragma once

namespace mica {

// For all threads, from the next call on.
void SetFillUninitialized(bool fill);

}  // namespace mica
