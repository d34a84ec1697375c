#include "server/node/names.h"

#include <fmt/format.h>

#include <algorithm>

namespace mariner {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || is_digit(c); }

Error wrong(std::string_view what, std::string_view name, std::string_view rule) {
  return Error{ErrorCode::kInvalidArgument, fmt::format("\"{}\" is not {}: {}", name, what, rule)};
}

// "iqn.YYYY-MM." at the front.
bool has_iqn_date(std::string_view name) {
  if (name.size() < 12 || !name.starts_with("iqn.")) return false;
  const auto date = name.substr(4, 8);
  const bool shape = std::all_of(date.begin(), date.begin() + 4, is_digit) && date[4] == '-' &&
                     is_digit(date[5]) && is_digit(date[6]) && date[7] == '.';
  const int month = (date[5] - '0') * 10 + (date[6] - '0');
  return shape && month >= 1 && month <= 12;
}

}  // namespace

Result<void> check_volume_name(std::string_view name) {
  constexpr std::string_view kRule =
      "expected 1 to 63 characters of a-z, 0-9, '.', '_' and '-', with a letter or digit first and "
      "last";
  const bool characters = std::all_of(name.begin(), name.end(), [](char c) {
    return is_alphanumeric(c) || c == '.' || c == '_' || c == '-';
  });
  if (name.empty() || name.size() > kVolumeNameBytesMax || !characters ||
      !is_alphanumeric(name.front()) || !is_alphanumeric(name.back())) {
    return wrong("a volume's name", name.substr(0, kVolumeNameBytesMax + 1), kRule);
  }
  return {};
}

Result<void> check_iqn_base(std::string_view name) {
  constexpr std::string_view kRule =
      "expected iqn.YYYY-MM. and a reversed domain name in lower case, at most 80 characters, as "
      "in "
      "\"iqn.2026-11.org.example\"";
  const bool characters = std::all_of(name.begin(), name.end(), [](char c) {
    return is_alphanumeric(c) || c == '.' || c == ':' || c == '-';
  });
  if (name.size() > kIqnBaseBytesMax || !has_iqn_date(name) || name.size() == 12 || !characters ||
      !is_alphanumeric(name[12]) || !is_alphanumeric(name.back())) {
    return wrong("a base for target names", name.substr(0, kIqnBaseBytesMax + 1), kRule);
  }
  return {};
}

Result<void> check_initiator_name(std::string_view name) {
  constexpr std::string_view kRule =
      "expected iqn.YYYY-MM.domain:host, eui.XXXXXXXXXXXXXXXX or naa.XXXXXXXXXXXXXXXX, as the "
      "initiator "
      "shows it (Linux: /etc/iscsi/initiatorname.iscsi; Windows: iSCSI Initiator, Configuration)";
  const bool prefix =
      name.starts_with("iqn.") || name.starts_with("eui.") || name.starts_with("naa.");
  const bool characters =
      std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~' && c != ','; });
  if (!prefix || name.size() == 4 || name.size() > kIscsiNameBytesMax || !characters) {
    return wrong("an initiator's name", name.substr(0, kIscsiNameBytesMax + 1), kRule);
  }
  return {};
}

}  // namespace mariner
