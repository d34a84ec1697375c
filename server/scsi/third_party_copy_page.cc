#include "server/scsi/third_party_copy_page.h"

#include <algorithm>

#include "proto/bytes.h"
#include "proto/units.h"
#include "server/scsi/extended_copy.h"
#include "server/scsi/rod_tokens.h"
#include "server/scsi/token_lists.h"

namespace mariner::scsi {
namespace {

using Bytes = std::vector<std::uint8_t>;

// A descriptor, padded to words.
void append(Bytes& page, std::uint16_t type, Bytes body) {
  while (body.size() % 4 != 0) body.push_back(0);
  const std::size_t from = page.size();
  page.resize(from + 4);
  store_be(&page[from], type);
  store_be(&page[from + 2], static_cast<std::uint16_t>(body.size()));
  page.insert(page.end(), body.begin(), body.end());
}

std::uint32_t seconds(std::chrono::seconds time) {
  return static_cast<std::uint32_t>(time.count());
}

// Block device ROD token limits, which POPULATE TOKEN and WRITE USING TOKEN are checked against
// (token_lists.h).
Bytes token_limits(const Geometry& geometry) {
  Bytes body(32);
  store_be(&body[6], static_cast<std::uint16_t>(kTokenRangesMax));
  store_be(&body[8], seconds(RodTokens::kInactivityMax));
  store_be(&body[12], seconds(RodTokens::kInactivityDefault));
  store_be(&body[16], std::uint64_t{kTokenBytesMax / geometry.block_bytes});
  store_be(&body[24], std::uint64_t{kTokenBytesOptimal / geometry.block_bytes});
  return body;
}

// The operation codes with the service actions that are in the table of commands.
Bytes commands() {
  Bytes body(1);
  constexpr std::uint8_t kOpcodes[] = {0x83, 0x84};
  for (const std::uint8_t opcode : kOpcodes) {
    const auto entries = entries_of(opcode);
    body.push_back(opcode);
    body.push_back(static_cast<std::uint8_t>(entries.size()));
    for (const OpcodeInfo& entry : entries) body.push_back(entry.service_action.value_or(0));
  }
  body[0] = static_cast<std::uint8_t>(body.size() - 1);
  return body;
}

Bytes parameters() {
  Bytes body(28);
  store_be(&body[4], static_cast<std::uint16_t>(kCopyTargetsMax));
  store_be(&body[6], static_cast<std::uint16_t>(kCopySegmentsMax));
  store_be(&body[8], kCopyListBytesMax);
  return body;
}

// MAXIMUM BYTES IN BLOCK ROD is not reported: MAXIMUM TRANSFER LENGTH bounds a range then.
Bytes token_features(const Geometry& geometry) {
  constexpr std::uint8_t kTokensOfOtherTargets = 4;
  constexpr std::size_t kBlockFeaturesAt = 44;
  constexpr std::size_t kBlockFeaturesBytes = 48;
  Bytes body(kBlockFeaturesAt + kBlockFeaturesBytes);
  body[0] = kTokensOfOtherTargets;
  store_be(&body[12], std::uint32_t{1});
  store_be(&body[16], seconds(RodTokens::kLifetimeMax));
  store_be(&body[20], seconds(RodTokens::kInactivityMax));
  store_be(&body[42], static_cast<std::uint16_t>(kBlockFeaturesBytes));
  std::uint8_t* block = &body[kBlockFeaturesAt];
  store_be(block + 2, static_cast<std::uint16_t>(kBlockFeaturesBytes - 4));
  store_be(block + 6, static_cast<std::uint16_t>(kBlockBytes / geometry.block_bytes));
  store_be(block + 16, std::uint64_t{kTokenBytesOptimal});
  const std::uint64_t range = std::uint64_t{geometry.transfer_blocks_max} * geometry.block_bytes;
  store_be(block + 24, range);
  store_be(block + 32, range);
  return body;
}

Bytes token_types() {
  struct Type {
    RodType type;
    std::uint8_t directions;
  };
  constexpr std::uint8_t kIn = 0x02;
  constexpr std::uint8_t kOut = 0x01;
  constexpr Type kTypes[] = {{RodType::kPointInTimeDefault, kIn | kOut},
                             {RodType::kBlockDeviceZero, kIn}};
  constexpr std::size_t kDescriptorBytes = 64;
  Bytes body(4 + std::size(kTypes) * kDescriptorBytes);
  store_be(&body[2], static_cast<std::uint16_t>(body.size() - 4));
  for (std::size_t i = 0; i < std::size(kTypes); ++i) {
    std::uint8_t* p = &body[4 + i * kDescriptorBytes];
    store_be(p, static_cast<std::uint32_t>(kTypes[i].type));
    p[4] = kTypes[i].directions;
  }
  return body;
}

Bytes general() {
  Bytes body(32);
  store_be(&body[0], std::uint32_t{255});
  store_be(&body[4], std::uint32_t{255});
  store_be(&body[8], kCopySegmentBytesMax);
  body[12] = 9;  // segments count in 512 bytes at least
  return body;
}

}  // namespace

std::vector<std::uint8_t> third_party_copy_page(const Geometry& geometry) {
  Bytes page(4);
  page[1] = 0x8F;
  append(page, 0x0000, token_limits(geometry));
  append(page, 0x0001, commands());
  append(page, 0x0004, parameters());
  append(page, 0x0008, {2, kCopySegmentCode, kCopyTargetCode});
  append(page, 0x000C, {0, 0});  // no identifiers of targets but the lists' own
  append(page, 0x0106, token_features(geometry));
  append(page, 0x0108, token_types());
  append(page, 0x8001, general());
  store_be(&page[2], static_cast<std::uint16_t>(page.size() - 4));
  return page;
}

}  // namespace mariner::scsi
