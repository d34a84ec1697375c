// SPDX-License-Identifier: GPL-2.0-only
#include "server/tgt/options.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

namespace mariner::tgt {
namespace {

constexpr std::array<std::string_view, 6> kKeys = {"portal",    "target", "iqn-base",
                                                   "initiator", "user",   "password-file"};
constexpr std::string_view kIqnBase = "iqn.2026-11.org.mariner";
constexpr std::size_t kIscsiNameBytesMax = 223;  // RFC 7143 4.2.7.1
constexpr std::size_t kUserBytesMax = 255;       // what libiscsi keeps
constexpr std::size_t kPasswordBytesMax = 255;

using Values = std::map<std::string_view, std::string_view>;

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

std::string wrong(std::string_view key, std::string_view expected, std::string_view found) {
  return std::string(key) + ": expected " + std::string(expected) + ", found " + std::string(found);
}

// How many characters have to be changed, added or left out to make `b` of `a`.
std::size_t distance(std::string_view a, std::string_view b) {
  std::array<std::size_t, 16> row{};
  const std::size_t width = std::min(b.size(), row.size() - 1);
  for (std::size_t j = 0; j <= width; ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < width; ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[width];
}

std::string unknown(std::string_view key) {
  std::string all;
  for (const std::string_view known : kKeys) all += (all.empty() ? "" : ", ") + std::string(known);
  const auto* nearest = std::min_element(kKeys.begin(), kKeys.end(), [&](auto a, auto b) {
    return distance(key, a) < distance(key, b);
  });
  const std::string hint =
      distance(key, *nearest) <= 2 ? "; did you mean " + quoted(*nearest) + "?" : "";
  return wrong("bsopts", "the keys " + all, quoted(key)) + hint;
}

std::string portal_fault(std::string_view portal) {
  const std::size_t colon = portal.rfind(':');
  const std::string expected = wrong("portal",
                                     "ADDRESS:PORT with a numeric address, as in "
                                     "127.0.0.1:3261 or [::1]:3261",
                                     quoted(portal));
  if (colon == std::string_view::npos) return expected;
  std::string address(portal.substr(0, colon));
  const std::string_view port = portal.substr(colon + 1);
  const bool bracketed = address.size() > 2 && address.front() == '[' && address.back() == ']';
  if (bracketed) address = address.substr(1, address.size() - 2);
  in6_addr binary{};
  if (::inet_pton(bracketed ? AF_INET6 : AF_INET, address.c_str(), &binary) != 1) return expected;
  unsigned number = 0;
  const auto read = std::from_chars(port.data(), port.data() + port.size(), number);
  if (read.ec != std::errc() || read.ptr != port.data() + port.size() || number < 1 ||
      number > 65535) {
    return expected;
  }
  return "";
}

std::string name_fault(std::string_view key, std::string_view name) {
  const bool begins =
      name.starts_with("iqn.") || name.starts_with("eui.") || name.starts_with("naa.");
  const bool printable =
      std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 127; });
  if (begins && printable && name.size() <= kIscsiNameBytesMax) return "";
  return wrong(key, "an iSCSI name (iqn., eui. or naa., at most 223 characters, no blanks)",
               quoted(name));
}

std::variant<std::string, Refusal> read_password(const std::string& path) {
  const auto refused = [&](std::string_view expected, std::string_view found) {
    return Refusal{wrong("password-file", expected, path + " " + std::string(found))};
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return refused("a file that can be read", std::string("(") + std::strerror(errno) + ")");
  struct stat status {};
  std::array<char, kPasswordBytesMax + 2> bytes{};
  const bool known = ::fstat(fd, &status) == 0;
  const ssize_t length =
      known && S_ISREG(status.st_mode) ? ::read(fd, bytes.data(), bytes.size()) : -1;
  ::close(fd);
  if (!known || !S_ISREG(status.st_mode)) return refused("a regular file", "which is none");
  if ((status.st_mode & 077) != 0) {
    std::array<char, 8> mode{};
    std::snprintf(mode.data(), mode.size(), "%04o", status.st_mode & 07777u);
    return refused("a file of its owner alone (mode 0600)",
                   std::string("with mode ") + mode.data());
  }
  if (length < 0) return refused("a file that can be read", "which can not");
  std::string_view text(bytes.data(), static_cast<std::size_t>(length));
  text = text.substr(0, text.find('\n'));
  if (text.empty() || text.size() > kPasswordBytesMax) {
    return refused("a line of 1 to 255 characters", "which begins with another one");
  }
  return std::string(text);
}

std::variant<Values, Refusal> split(std::string_view text) {
  Values values;
  while (!text.empty()) {
    const std::size_t end = text.find(';');
    const std::string_view part = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) return Refusal{unknown(key)};
    if (equals == std::string_view::npos || equals + 1 == part.size()) {
      return Refusal{wrong(key, "a value, as in " + std::string(key) + "=VALUE", quoted(part))};
    }
    if (!values.emplace(key, part.substr(equals + 1)).second) {
      return Refusal{wrong(key, "one value", "two")};
    }
  }
  return values;
}

}  // namespace

std::variant<Options, Refusal> parse_options(std::string_view store, std::string_view text) {
  const std::string_view volume = store.substr(store.rfind('/') + 1);  // of none: the whole
  auto found = split(text);
  if (auto* refusal = std::get_if<Refusal>(&found)) return *refusal;
  const Values& values = std::get<Values>(found);
  const auto value = [&](std::string_view key, std::string_view otherwise) {
    const auto place = values.find(key);
    return std::string(place == values.end() ? otherwise : place->second);
  };

  Options options;
  options.portal = value("portal", options.portal);
  if (auto fault = portal_fault(options.portal); !fault.empty()) return Refusal{fault};
  if (values.contains("target") && values.contains("iqn-base")) {
    return Refusal{wrong("iqn-base", "no target beside it, whose name is whole", "both")};
  }
  if (volume.empty() && !values.contains("target")) {
    return Refusal{wrong("--backing-store", "the name of a volume", "''")};
  }
  options.target = value("target", value("iqn-base", kIqnBase) + ":" + std::string(volume));
  const std::string_view named = values.contains("target") ? "target" : "iqn-base:volume";
  if (auto fault = name_fault(named, options.target); !fault.empty()) return Refusal{fault};
  options.initiator = value("initiator", options.initiator);
  if (auto fault = name_fault("initiator", options.initiator); !fault.empty()) {
    return Refusal{fault};
  }

  options.user = value("user", "");
  if (options.user.size() > kUserBytesMax) {
    return Refusal{wrong("user", "at most 255 characters", std::to_string(options.user.size()))};
  }
  if (values.contains("user") != values.contains("password-file")) {
    const bool user = values.contains("user");
    return Refusal{wrong(user ? "password-file" : "user",
                         user ? "one beside user" : "one beside password-file", "none")};
  }
  if (values.contains("password-file")) {
    auto password = read_password(value("password-file", ""));
    if (auto* refusal = std::get_if<Refusal>(&password)) return *refusal;
    options.password = std::get<std::string>(std::move(password));
  }
  return options;
}

}  // namespace mariner::tgt
