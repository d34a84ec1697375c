#include "proto/iscsi_name.h"

#include <cstddef>

#include "proto/utf8.h"

namespace mariner {
namespace {

constexpr std::size_t kNameBytesMax = 223;  // 4.2.7.1

}  // namespace

std::optional<std::string> normalized_iscsi_name(std::string_view name) {
  if (name.empty() || name.size() > kNameBytesMax) return std::nullopt;
  std::string normalized;
  normalized.reserve(name.size());
  while (!name.empty()) {
    const std::size_t bytes = utf8_length(name);
    const char first = name.front();
    const bool blank = bytes == 1 && (first <= ' ' || first == 0x7f);
    if (bytes == 0 || blank) return std::nullopt;
    const bool upper = first >= 'A' && first <= 'Z';
    normalized.push_back(upper ? static_cast<char>(first - 'A' + 'a') : first);
    normalized += name.substr(1, bytes - 1);
    name.remove_prefix(bytes);
  }
  return normalized;
}

}  // namespace mariner
