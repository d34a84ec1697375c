#include "proto/endpoint.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace mariner {
namespace {

bool parse_port(std::string_view text, std::uint16_t& port) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc{} && end == text.data() + text.size();
}

using AddressBytes = std::array<std::uint8_t, sizeof(in6_addr)>;

struct Network {
  std::array<std::uint8_t, 2> prefix;
  int bits;  // at most 16

  [[nodiscard]] bool contains(const AddressBytes& address) const {
    const int shift = 16 - bits;
    const int here = (prefix[0] << 8 | prefix[1]) >> shift;
    return (address[0] << 8 | address[1]) >> shift == here;
  }
};

constexpr Network kPrivateV4[] = {{{10, 0}, 8},     {{100, 64}, 10}, {{127, 0}, 8},
                                  {{169, 254}, 16}, {{172, 16}, 12}, {{192, 168}, 16}};
constexpr Network kPrivateV6[] = {{{0xfc, 0}, 7}, {{0xfe, 0x80}, 10}};

}  // namespace

bool Endpoint::loopback() const { return v6 ? address == "::1" : address.starts_with("127."); }

bool Endpoint::on_private_network() const {
  if (loopback()) return true;
  AddressBytes bytes{};
  if (inet_pton(v6 ? AF_INET6 : AF_INET, address.c_str(), bytes.data()) != 1) return false;
  const auto within = [&bytes](const Network& network) { return network.contains(bytes); };
  return v6 ? std::ranges::any_of(kPrivateV6, within) : std::ranges::any_of(kPrivateV4, within);
}

Result<Endpoint> parse_endpoint(std::string_view text) {
  const auto wrong = [text](std::string_view why) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("\"{}\" is not an address with a port: {}; expected an IP address and a "
                    "port, as in \"0.0.0.0:3260\" or \"[::]:3260\"",
                    text, why)};
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong("there is no port");
  auto host = text.substr(0, colon);
  Endpoint endpoint;
  if (!parse_port(text.substr(colon + 1), endpoint.port))
    return wrong("the port is not a number below 65536");
  endpoint.v6 = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (endpoint.v6) host = host.substr(1, host.size() - 2);
  // inet_pton reads a C string: a zero byte inside would end it early.
  if (host.find('\0') != std::string_view::npos) return wrong("it contains a zero byte");

  const int family = endpoint.v6 ? AF_INET6 : AF_INET;
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  std::array<char, INET6_ADDRSTRLEN> canonical{};
  if (inet_pton(family, std::string(host).c_str(), bytes.data()) != 1) {
    return wrong(host.find(':') != std::string_view::npos && !endpoint.v6
                     ? "an IPv6 address stands in brackets"
                     : "the host is not an IP address");
  }
  endpoint.address = inet_ntop(family, bytes.data(), canonical.data(), canonical.size());
  return endpoint;
}

Result<Endpoint> parse_target_address(std::string_view text) {
  const auto wrong = [text](std::string_view why) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\" is not where a target can be reached: {}; expected an address "
                             "and a port, as in \"192.0.2.1:3260\" or \"[2001:db8::1]:3260\"",
                             text, why)};
  };
  const auto comma = text.find(',');
  if (comma != std::string_view::npos) {
    std::uint16_t tag = 0;
    if (!parse_port(text.substr(comma + 1), tag)) {
      return wrong("the portal group's tag is not a number below 65536");
    }
  }
  auto endpoint = parse_endpoint(text.substr(0, comma));
  if (!endpoint) return endpoint;
  if (endpoint->port == 0) return wrong("the port is 0");
  if (endpoint->address == (endpoint->v6 ? "::" : "0.0.0.0")) return wrong("it is every address");
  return endpoint;
}

std::string to_string(const Endpoint& endpoint) {
  return endpoint.v6 ? fmt::format("[{}]:{}", endpoint.address, endpoint.port)
                     : fmt::format("{}:{}", endpoint.address, endpoint.port);
}

}  // namespace mariner
