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

namespace {

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

// An odd number of digits has a leading zero (RFC 7143 6.1).
std::optional<std::vector<std::uint8_t>> parse_hex(std::string_view digits) {
  std::vector<std::uint8_t> bytes((digits.size() + 1) / 2);
  std::size_t at = digits.size() % 2;
  for (const char c : digits) {
    const auto digit = hex_digit(c);
    if (!digit) return std::nullopt;
    bytes[at / 2] = static_cast<std::uint8_t>(bytes[at / 2] << 4 | *digit);
    ++at;
  }
  return bytes;
}

// RFC 4648, with its padding.
std::optional<std::vector<std::uint8_t>> parse_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  text.remove_suffix(padding);
  std::vector<std::uint8_t> bytes;
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<std::uint8_t>(bits >> count));
    }
  }
  return bytes;
}

}  // namespace

std::optional<std::vector<std::uint8_t>> parse_binary(std::string_view value,
                                                      std::size_t bytes_max) {
  if (value.size() < 2 || value.size() > 2 + 2 * bytes_max || value[0] != '0') return std::nullopt;
  const std::string_view digits = value.substr(2);
  std::optional<std::vector<std::uint8_t>> bytes;
  if (value[1] == 'x' || value[1] == 'X') bytes = parse_hex(digits);
  if (value[1] == 'b' || value[1] == 'B') bytes = parse_base64(digits);
  if (bytes && bytes->size() > bytes_max) return std::nullopt;
  return bytes;
}

std::string printable(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return out;
}

void TextWriter::add_binary(std::string_view key, std::span<const std::uint8_t> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string value = "0x";
  for (const std::uint8_t byte : bytes) {
    value += kDigits[byte >> 4];
    value += kDigits[byte & 15];
  }
  add(key, value);
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
