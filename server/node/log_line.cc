#include "server/node/log_line.h"

#include <fmt/format.h>

#include <cmath>

#include "proto/utf8.h"
#include "server/client/time_text.h"

namespace mariner {
namespace {

std::string_view level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return "debug";
    case LogLevel::kInfo: return "info";
    case LogLevel::kWarning: return "warning";
    case LogLevel::kError: return "error";
  }
  return "error";
}

std::string_view level_name_upper(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return "DEBUG";
    case LogLevel::kInfo: return "INFO";
    case LogLevel::kWarning: return "WARNING";
    case LogLevel::kError: return "ERROR";
  }
  return "ERROR";
}

// syslog(3): LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERR.
int priority(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return 7;
    case LogLevel::kInfo: return 6;
    case LogLevel::kWarning: return 4;
    case LogLevel::kError: return 3;
  }
  return 3;
}

// `text` with everything escaped that may not stand in a JSON string. Also right for text.
void append_escaped(std::string& to, std::string_view text) {
  while (!text.empty()) {
    const auto length = utf8_length(text);
    const char c = text[0];
    if (length == 0) {
      to += "\xEF\xBF\xBD";  // U+FFFD
    } else if (c == '"' || c == '\\') {
      to += '\\';
      to += c;
    } else if (c == '\n') {
      to += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      to += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      to += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

void append_quoted(std::string& to, std::string_view text) {
  to += '"';
  append_escaped(to, text);
  to += '"';
}

struct AppendValue {
  std::string& to;
  LogFormat format;

  void operator()(std::string_view text) const {
    const bool bare =
        format == LogFormat::kText && !text.empty() &&
        text.find_first_not_of(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/@[]+%#") ==
            std::string_view::npos;
    if (bare) {
      to += text;
    } else {
      append_quoted(to, text);
    }
  }
  void operator()(double number) const {
    // JSON has no infinity.
    to += std::isfinite(number) ? fmt::format("{}", number) : std::string("null");
  }
  template <typename T>
  void operator()(T value) const {
    to += fmt::format("{}", value);
  }
};

std::string render_json(const LogLine& line) {
  std::string text =
      fmt::format("{{\"time\":\"{}\",\"level\":\"{}\",\"message\":", format_utc(line.time),
                  level_name(line.level));
  append_quoted(text, line.message);
  for (const auto& field : line.fields) {
    text += ',';
    append_quoted(text, field.key);
    text += ':';
    std::visit(AppendValue{text, LogFormat::kJson}, field.value);
  }
  return text + '}';
}

std::string render_text(const LogLine& line, bool journal) {
  std::string text;
  if (!journal) text = fmt::format("{} {} ", format_utc(line.time), level_name_upper(line.level));
  append_escaped(text, line.message);
  for (const auto& field : line.fields) {
    text += ' ';
    text += field.key;
    text += '=';
    std::visit(AppendValue{text, LogFormat::kText}, field.value);
  }
  return text;
}

}  // namespace

std::string render(const LogLine& line, LogStyle style) {
  const auto prefix = style.journal ? fmt::format("<{}>", priority(line.level)) : std::string();
  return prefix +
         (style.format == LogFormat::kJson ? render_json(line) : render_text(line, style.journal));
}

}  // namespace mariner
