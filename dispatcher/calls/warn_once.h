// Warnings that a process gives once, as torch's do: of a use that goes on for every step of a program.
//
// HostWarn (host.h) warns each time. Use this where the caller would otherwise be told again and again;
// WarnAlways(true) makes every call of WarnOnce speak, which torch.set_warn_always(True) asks for.
#pragma once

#include <string_view>

namespace mica {

// Warns by HostWarn where no call before had this `key`, or where WarnAlways is on. Any thread may call it.
void WarnOnce(std::string_view key, std::string_view message);

void WarnAlways(bool always);
bool IsWarnAlways();

}  // namespace mica
