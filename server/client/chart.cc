#include "server/client/chart.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace mariner::client {
namespace {

constexpr std::size_t kEighths = 8;
constexpr std::array<std::string_view, kEighths + 1> kBlocks{" ", "▁", "▂", "▃", "▄",
                                                             "▅", "▆", "▇", "█"};

}  // namespace

std::string bar_chart(std::span<const std::uint64_t> values, std::size_t rows) {
  const auto largest = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  std::string text;
  for (std::size_t row = rows; row-- > 0;) {
    std::string line;
    for (const auto value : values) {
      std::size_t height = 0;
      if (value > 0) {
        // In floating point: the product of a byte count and the height may not fit 64 bits.
        const double share = static_cast<double>(value) / static_cast<double>(largest);
        height = std::max<std::size_t>(
            1, static_cast<std::size_t>(share * static_cast<double>(rows * kEighths) + 0.5));
      }
      const auto below = row * kEighths;
      line += kBlocks[std::min(kEighths, height > below ? height - below : 0)];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace mariner::client
