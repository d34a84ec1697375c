#include "server/scsi/rod_token.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <string>

#include "proto/bytes.h"
#include "proto/check.h"
#include "proto/units.h"

namespace mariner::scsi {
namespace {

constexpr std::uint16_t kLengthField = 512 - 8;
constexpr std::size_t kIdentifierAt = 8;
constexpr std::size_t kCreatorAt = 16;
constexpr std::size_t kRepresentedAt = 48;  // 16 bytes
constexpr std::size_t kDeviceTypeAt = 96;
constexpr std::size_t kTargetAt = 128;
constexpr std::size_t kExtendedAt = 256;
constexpr std::uint8_t kIdentificationDescriptor = 0xE4;
constexpr std::uint8_t kBinary = 1;
constexpr std::uint8_t kUtf8 = 3;
constexpr std::uint8_t kNaa = 3;
constexpr std::uint8_t kScsiName = 8;
constexpr std::uint8_t kOfTargetDevice = 0x20;
constexpr std::uint8_t kProtocolValid = 0x80;
constexpr std::uint8_t kIscsi = 0x50;

}  // namespace

void system_random(std::span<std::uint8_t> bytes) {
  CHECK(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
}

RodTokenBytes make_rod_token(std::uint64_t identifier, const Identity& unit,
                             std::uint32_t block_bytes, std::uint64_t represented,
                             const SecureRandom& random) {
  RodTokenBytes token{};
  store_be(&token[0], static_cast<std::uint32_t>(RodType::kPointInTimeDefault));
  store_be(&token[6], kLengthField);
  store_be(&token[kIdentifierAt], identifier);

  // SPC-4 6.4.5.6: the unit, by its NAA designator.
  std::uint8_t* creator = &token[kCreatorAt];
  creator[0] = kIdentificationDescriptor;
  creator[4] = kBinary;
  creator[5] = kNaa;
  creator[7] = static_cast<std::uint8_t>(unit.naa.size());
  std::ranges::copy(unit.naa, creator + 8);
  store_be24(creator + 29, block_bytes);

  store_be(&token[kRepresentedAt + 8], represented);
  store_be(&token[kDeviceTypeAt], block_bytes);  // SBC-4 4.28.3
  token[kDeviceTypeAt + 5] = static_cast<std::uint8_t>(std::countr_zero(kBlockBytes / block_bytes));

  // The target device, by its name if there is room for that.
  std::uint8_t* target = &token[kTargetAt];
  const std::size_t name_bytes = (unit.target_name.size() / 4 + 1) * 4;  // ends in NULs
  if (name_bytes <= kExtendedAt - kTargetAt - 4) {
    target[0] = kIscsi | kUtf8;
    target[1] = kProtocolValid | kOfTargetDevice | kScsiName;
    target[3] = static_cast<std::uint8_t>(name_bytes);
    std::ranges::copy(unit.target_name, target + 4);
  } else {
    target[0] = kBinary;
    target[1] = kOfTargetDevice | kNaa;
    target[3] = static_cast<std::uint8_t>(unit.naa.size());
    std::ranges::copy(unit.naa, target + 4);
  }
  random(std::span(token).subspan(kExtendedAt));
  return token;
}

RodType rod_type_of(std::span<const std::uint8_t, 512> token) {
  return static_cast<RodType>(load_be<std::uint32_t>(&token[0]));
}

bool has_rod_length(std::span<const std::uint8_t, 512> token) {
  return load_be<std::uint16_t>(&token[6]) == kLengthField;
}

std::uint64_t rod_identifier_of(std::span<const std::uint8_t, 512> token) {
  return load_be<std::uint64_t>(&token[kIdentifierAt]);
}

bool well_formed_rod(std::span<const std::uint8_t, 512> token) {
  const auto zero = [](std::uint8_t byte) { return byte == 0; };
  return token[4] == 0 && token[5] == 0 && token[kCreatorAt] == kIdentificationDescriptor &&
         std::ranges::all_of(token.subspan(64, kDeviceTypeAt - 64), zero);
}

bool same_rod(std::span<const std::uint8_t, 512> a, std::span<const std::uint8_t, 512> b) {
  volatile std::uint8_t difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<std::uint8_t>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

}  // namespace mariner::scsi
