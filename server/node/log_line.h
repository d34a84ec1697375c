// One line of a daemon's log: a message and its fields, as text or as JSON.
//
// Fields may hold bytes of a peer: whatever they contain, the result is one line of valid UTF-8.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "proto/units.h"

namespace mariner {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kText, kJson };

struct LogField {
  using Value = std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool>;

  LogField(std::string_view name, std::string_view text) : key(name), value(text) {}
  LogField(std::string_view name, const char* text) : key(name), value(std::string_view(text)) {}
  LogField(std::string_view name, const std::string& text)
      : key(name), value(std::string_view(text)) {}
  LogField(std::string_view name, bool truth) : key(name), value(truth) {}
  template <typename Number>
    requires std::is_arithmetic_v<Number>
  LogField(std::string_view name, Number number) : key(name) {
    if constexpr (std::is_floating_point_v<Number>) {
      value = static_cast<double>(number);
    } else if constexpr (std::is_signed_v<Number>) {
      value = static_cast<std::int64_t>(number);
    } else {
      value = static_cast<std::uint64_t>(number);
    }
  }

  std::string_view key;  // an identifier of ours
  Value value;
};

struct LogLine {
  LogLevel level = LogLevel::kInfo;
  VersionTime time;
  std::string_view message;
  std::span<const LogField> fields;
};

struct LogStyle {
  LogFormat format = LogFormat::kText;
  bool journal =
      false;  // begins with "<N>", sd-daemon(3), and leaves the text's time to the journal
};

// Without the newline at the end.
//   2026-11-20T13:32:05.123456789Z WARNING login failed key=AuthMethod offered="CHAP,None"
//   {"time":"2026-11-20T13:32:05.123456789Z","level":"warning","message":"login failed","key":...}
[[nodiscard]] std::string render(const LogLine& line, LogStyle style);

}  // namespace mariner
