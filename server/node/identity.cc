#include "server/node/identity.h"

#include <sys/random.h>

#include "proto/check.h"

namespace mariner::node {
namespace {

std::string hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

}  // namespace

std::string new_uuid() {
  std::string uuid(kUuidBytes, '\0');
  CHECK(::getrandom(uuid.data(), uuid.size(), 0) == static_cast<ssize_t>(uuid.size()));
  return uuid;
}

std::string volume_iqn(std::string_view base, std::string_view name) {
  return std::string(base) + ":" + std::string(name);
}

std::string view_iqn(std::string_view base, std::string_view name) {
  return std::string(base) + ":view:" + std::string(name);
}

scsi::Identity identity_of(std::string_view uuid, std::string iqn, std::string name,
                           std::string_view product) {
  CHECK(uuid.size() == kUuidBytes);
  scsi::Identity identity;
  identity.target_name = std::move(iqn);
  identity.volume_name = std::move(name);
  identity.serial = hex(uuid);
  // NAA 3h, locally assigned (SPC-4 7.8.6.6.5): 60 random bits after the type.
  identity.naa.assign(uuid.begin(), uuid.begin() + 8);
  identity.naa[0] = static_cast<std::uint8_t>(0x30 | (identity.naa[0] & 0x0f));
  identity.product = std::string(product);
  return identity;
}

std::string naa_text(const scsi::Identity& identity) {
  return hex({reinterpret_cast<const char*>(identity.naa.data()), identity.naa.size()});
}

}  // namespace mariner::node
