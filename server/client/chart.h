// A bar chart of unicode blocks.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace mariner::client {

// Vertical bars, one column each, `rows` lines high, in eighths of a line; the largest value fills
// the height, and one that is not zero shows at least an eighth. Lines end with a newline.
[[nodiscard]] std::string bar_chart(std::span<const std::uint64_t> values, std::size_t rows);

}  // namespace mariner::client
