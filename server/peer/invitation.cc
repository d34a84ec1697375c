#include "server/peer/invitation.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace mariner::peer {
namespace {

constexpr std::string_view kPrefix = "mariner-join/1/";
constexpr std::string_view kDigits = "0123456789abcdef";
constexpr std::size_t kFingerprintDigits = 64;
constexpr std::string_view kBlanks = " \t\r\n";

bool is_hexadecimal(std::string_view text) {
  return std::ranges::all_of(text,
                             [](char c) { return kDigits.find(c) != std::string_view::npos; });
}

std::string to_hexadecimal(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

// Of an even number of digits that have been checked.
std::string from_hexadecimal(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    bytes += static_cast<char>(kDigits.find(text[i]) * 16 + kDigits.find(text[i + 1]));
  }
  return bytes;
}

// What stands before the last slash, and behind it.
std::optional<std::string_view> take_last(std::string_view& text) {
  const auto slash = text.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view last = text.substr(slash + 1);
  text = text.substr(0, slash);
  return last;
}

}  // namespace

std::string to_token(const Invitation& invitation) {
  return fmt::format("{}{}/{}/{}", kPrefix, to_string(invitation.address), invitation.fingerprint,
                     to_hexadecimal(invitation.secret));
}

Result<Invitation> parse_token(std::string_view token) {
  const auto wrong = [](std::string_view why) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("this is no invitation: {}; expected the whole line that \"mariner "
                             "node invite\" has printed, which begins with {}",
                             why, kPrefix)};
  };
  const auto first = token.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return wrong("it is empty");
  std::string_view rest = token.substr(first, token.find_last_not_of(kBlanks) - first + 1);
  if (!rest.starts_with(kPrefix)) return wrong("its beginning is another");
  rest.remove_prefix(kPrefix.size());
  const auto secret = take_last(rest);
  const auto fingerprint = take_last(rest);
  if (!secret || !fingerprint) return wrong("a part of it is missing");
  if (secret->size() != 2 * kSecretBytes || !is_hexadecimal(*secret)) {
    return wrong(fmt::format("its secret does not have {} hexadecimal digits", 2 * kSecretBytes));
  }
  if (fingerprint->size() != kFingerprintDigits || !is_hexadecimal(*fingerprint)) {
    return wrong(
        fmt::format("its fingerprint does not have {} hexadecimal digits", kFingerprintDigits));
  }
  const auto address = parse_endpoint(rest);
  if (!address) return wrong(address.error().message);
  if (address->port == 0) return wrong("its address has no port");
  return Invitation{.address = *address,
                    .fingerprint = std::string(*fingerprint),
                    .secret = from_hexadecimal(*secret)};
}

}  // namespace mariner::peer
