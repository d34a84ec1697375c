// UTF-8 (RFC 3629): what foreign bytes must be before they go into a message, a log or a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mariner {

// The length in bytes of the character at the front of `text`, which is not empty; 0 if there is
// none: a stray or missing continuation, an overlong form, a surrogate, beyond U+10FFFF.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

[[nodiscard]] bool is_utf8(std::string_view text);

// `text` with U+FFFD for every byte that is no part of a character.
[[nodiscard]] std::string to_utf8(std::string_view text);

}  // namespace mariner
