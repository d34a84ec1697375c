#include "server/peer/openssl.h"

#include <fmt/format.h>
#include <openssl/err.h>

namespace mariner::peer {

std::string openssl_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "no reason given";
  if (const char* const reason = ERR_reason_error_string(code)) return reason;
  return fmt::format("OpenSSL's error {:#x}", code);
}

Error openssl_error(ErrorCode code, std::string_view what) {
  return {code, fmt::format("{}: {}", what, openssl_reason())};
}

}  // namespace mariner::peer
