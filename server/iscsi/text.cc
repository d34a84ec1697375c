#include "server/iscsi/text.h"

#include <charconv>
#include <utility>

namespace mariner::iscsi {
namespace {

// 6.1: letters, digits, '.', '-', '+', '@', '_', starting with a capital letter. Also '#', which
// the X# keys use, and a small first letter, which costs nothing to answer with NotUnderstood.
bool key_character(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '+' || c == '@' || c == '_' || c == '#' || c == '/';
}

bool well_formed_key(std::string_view key) {
  if (key.empty() || key.size() > kKeyBytesMax) return false;
  for (const char c : key) {
    if (!key_character(c)) return false;
  }
  return true;
}

Error text_error(std::string what) { return Error{ErrorCode::kProtocol, std::move(what)}; }

}  // namespace

Result<std::vector<TextPair>> parse_text(std::string_view text) {
  std::vector<TextPair> pairs;
  while (!text.empty()) {
    const std::size_t end = text.find('\0');
    if (end == std::string_view::npos) return text_error("text does not end with a zero byte");
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(end + 1);
    // Some initiators count the padding of the data segment as data.
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) return text_error("text has a key without '='");
    const std::string_view key = pair.substr(0, equals);
    if (!well_formed_key(key)) return text_error("text has an ill-formed key");
    if (pairs.size() == kTextPairsMax) {
      return text_error("text has more than " + std::to_string(kTextPairsMax) + " keys");
    }
    pairs.push_back({.key = key, .value = pair.substr(equals + 1)});
  }
  return pairs;
}

std::optional<std::uint64_t> parse_number(std::string_view value) {
  int base = 10;
  if (value.starts_with("0x") || value.starts_with("0X")) {
    value.remove_prefix(2);
    base = 16;
  }
  std::uint64_t number = 0;
  const char* const end = value.data() + value.size();
  const auto [stopped, error] = std::from_chars(value.data(), end, number, base);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return number;
}

std::optional<bool> parse_boolean(std::string_view value) {
  if (value == "Yes") return true;
  if (value == "No") return false;
  return std::nullopt;
}

std::vector<std::string_view> split_list(std::string_view value) {
  std::vector<std::string_view> items;
  while (true) {
    const std::size_t comma = value.find(',');
    items.push_back(value.substr(0, comma));
    if (comma == std::string_view::npos) return items;
    value.remove_prefix(comma + 1);
  }
}

void TextWriter::add(std::string_view key, std::string_view value) {
  text_.append(key).append(1, '=').append(value).append(1, '\0');
}

void TextWriter::add(std::string_view key, std::uint64_t value) { add(key, std::to_string(value)); }

Result<void> TextCollector::append(std::span<const std::byte> segment) {
  if (text_.size() + segment.size() > kTextBytesMax) {
    text_.clear();
    return Error{ErrorCode::kLimit,
                 "text is longer than " + std::to_string(kTextBytesMax) + " bytes"};
  }
  text_.append(reinterpret_cast<const char*>(segment.data()), segment.size());
  return {};
}

std::string TextCollector::take() { return std::exchange(text_, {}); }

}  // namespace mariner::iscsi
