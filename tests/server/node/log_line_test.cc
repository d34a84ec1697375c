#include "server/node/log_line.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>
#include <vector>

namespace mariner {
namespace {

constexpr VersionTime kTime{1795181525'123456789};

std::string line(LogStyle style, const std::string& message, const std::vector<LogField>& fields,
                 LogLevel level = LogLevel::kWarning) {
  return render({level, kTime, message, fields}, style);
}

TEST(LogLine, Text) {
  EXPECT_EQ(line({}, "login failed",
                 {{"key", "AuthMethod"}, {"offered", "CHAP,None"}, {"tries", 3}, {"final", true}}),
            "2026-11-20T13:32:05.123456789Z WARNING login failed key=AuthMethod "
            "offered=\"CHAP,None\" tries=3 final=true");
}

TEST(LogLine, TheJournalGetsAPriorityAndNoTime) {
  const LogStyle style{LogFormat::kText, true};
  EXPECT_EQ(line(style, "m", {}, LogLevel::kDebug), "<7>m");
  EXPECT_EQ(line(style, "m", {}, LogLevel::kInfo), "<6>m");
  EXPECT_EQ(line(style, "m", {}, LogLevel::kWarning), "<4>m");
  EXPECT_EQ(line(style, "m", {{"a", "b c"}}, LogLevel::kError), "<3>m a=\"b c\"");
}

TEST(LogLine, Json) {
  EXPECT_EQ(
      line({LogFormat::kJson, false}, "a \"b\"",
           {{"n", -1}, {"u", 18446744073709551615u}, {"d", 0.5}, {"b", false}, {"s", "x\ny"}}),
      "{\"time\":\"2026-11-20T13:32:05.123456789Z\",\"level\":\"warning\",\"message\":\"a "
      "\\\"b\\\"\","
      "\"n\":-1,\"u\":18446744073709551615,\"d\":0.5,\"b\":false,\"s\":\"x\\ny\"}");
  EXPECT_EQ(line({LogFormat::kJson, false}, "", {{"d", std::numeric_limits<double>::infinity()}}),
            "{\"time\":\"2026-11-20T13:32:05.123456789Z\",\"level\":\"warning\",\"message\":\"\","
            "\"d\":null}");
}

TEST(LogLine, ForeignBytesStayOnOneValidLine) {
  EXPECT_EQ(line({LogFormat::kText, true}, "m", {{"k", "a\nb\x1b[31m"}}),
            "<4>m k=\"a\\nb\\u001b[31m\"");
  EXPECT_EQ(line({LogFormat::kText, true}, "m\nx", {}), "<4>m\\nx");
  // Invalid UTF-8: a lone continuation, an overlong slash, a surrogate, beyond U+10FFFF, cut off.
  for (const auto& bytes :
       {std::string("\x80"), std::string("\xC0\xAF"), std::string("\xED\xA0\x80"),
        std::string("\xF4\x90\x80\x80"), std::string("\xE2\x82")}) {
    std::string expected = "<4>m k=\"";
    for (std::size_t i = 0; i < bytes.size(); ++i) expected += "\xEF\xBF\xBD";
    EXPECT_EQ(line({LogFormat::kText, true}, "m", {{"k", bytes}}), expected + "\"");
  }
  EXPECT_EQ(line({LogFormat::kText, true}, "m", {{"k", "gr\xC3\xBC\xC3\x9F"}}),
            "<4>m k=\"gr\xC3\xBC\xC3\x9F\"");
}

TEST(LogLine, NoBytesMakeASecondLine) {
  EXPECT_TRUE(rc::check([](const std::string& message, const std::string& value) {
    for (const auto format : {LogFormat::kText, LogFormat::kJson}) {
      const auto text = line({format, false}, message, {{"k", value}});
      for (const char c : text) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20);
    }
  }));
}

}  // namespace
}  // namespace mariner
