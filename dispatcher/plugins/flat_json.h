// A flat JSON object, read as from a stranger: what a plugin's manifest and the
// description beside it are written in. Use it for these alone: a nested value, an
// escape, a control character, a text that is not UTF-8 or a key that stands twice
// is refused, so that what is read needs no second look.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica {

// (key, value) in the text's order; a number's value is its digits.
using FlatJsonMembers = std::vector<std::pair<std::string, std::string>>;

// Reads all of `text`; false on anything but a flat object of strings and of whole
// numbers of at most nine digits.
bool ParseFlatJson(std::string_view text, FlatJsonMembers* members);

}  // namespace mica
