// The text of Login and Text PDUs: "key=value" pairs, each ended by a zero byte (RFC 7143, 6.1).
//
// A text may arrive in several PDUs (the C bit), cut anywhere; TextCollector joins them within a
// bound. parse_text() checks the form of the whole; what the pairs mean is for others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/error.h"

namespace mariner::iscsi {

inline constexpr std::size_t kTextBytesMax = 64 * 1024;  // of one whole text, all PDUs together
inline constexpr std::size_t kKeyBytesMax = 63;          // 6.1
inline constexpr std::size_t kTextPairsMax = 256;

struct TextPair {
  std::string_view key;
  std::string_view value;
};

// The pairs of `text`, in order, pointing into it. Errors (kProtocol): no '=', an empty, too long
// or ill-formed key, a missing final zero byte, too many pairs.
[[nodiscard]] Result<std::vector<TextPair>> parse_text(std::string_view text);

// Values (6.1): a decimal or 0x-hexadecimal constant; "Yes" or "No"; a comma-separated list.
[[nodiscard]] std::optional<std::uint64_t> parse_number(std::string_view value);
[[nodiscard]] std::optional<bool> parse_boolean(std::string_view value);
[[nodiscard]] std::vector<std::string_view> split_list(std::string_view value);
// A large binary value: "0x" and hexadecimal digits, or "0b" and base64, of at most so many bytes.
[[nodiscard]] std::optional<std::vector<std::uint8_t>> parse_binary(std::string_view value,
                                                                    std::size_t bytes_max);
// What a stranger sent, for a log: other characters than printable ASCII become '?'.
[[nodiscard]] std::string printable(std::string_view text);

// Builds a text.
class TextWriter {
 public:
  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, std::uint64_t value);
  void add_binary(std::string_view key, std::span<const std::uint8_t> bytes);  // hexadecimal
  void add_boolean(std::string_view key, bool value) { add(key, value ? "Yes" : "No"); }

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

// Joins the data segments of continued PDUs.
class TextCollector {
 public:
  // kLimit past kTextBytesMax; the collector is empty then.
  [[nodiscard]] Result<void> append(std::span<const std::byte> segment);

  [[nodiscard]] bool empty() const { return text_.empty(); }
  // The whole text; the collector starts anew.
  [[nodiscard]] std::string take();

 private:
  std::string text_;
};

}  // namespace mariner::iscsi
