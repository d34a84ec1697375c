#include "tests/bench/session_stamp.h"

#include <fmt/format.h>

#include <cstring>
#include <random>

namespace mariner::bench {
namespace {

// What a sector begins with, in the order of this machine's bytes.
struct SectorHead {
  std::uint64_t magic;
  std::uint64_t block;
  std::uint32_t session;
  std::uint32_t generation;
  std::uint64_t sector;  // within the block
};
static_assert(sizeof(SectorHead) == 32);

constexpr std::uint64_t kMagic = 0x736f616b'73746d70;

SectorHead head_of(const SessionStamp& stamp, std::size_t sector) {
  return {.magic = kMagic,
          .block = stamp.block,
          .session = stamp.session,
          .generation = stamp.generation,
          .sector = sector};
}

}  // namespace

StampedContents::StampedContents(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::byte& byte : noise_) byte = static_cast<std::byte>(random());
}

const std::byte* StampedContents::noise_of(const SessionStamp& stamp) const {
  // Knuth's multiplicative hash: neighbours and successors begin far from each other.
  const std::uint64_t mixed =
      (stamp.block + (std::uint64_t{stamp.session} << 40)) * 0x9e3779b97f4a7c15 +
      std::uint64_t{stamp.generation} * 0xbf58476d1ce4e5b9;
  return &noise_[(mixed >> 32) % (kNoiseBytes - kBlockBytes)];
}

void StampedContents::fill(Block out, const SessionStamp& stamp) const {
  std::memcpy(out.data(), noise_of(stamp), kBlockBytes);
  for (std::size_t sector = 0; sector < kBlockBytes / kSectorBytes; ++sector) {
    const SectorHead head = head_of(stamp, sector);
    std::memcpy(&out[sector * kSectorBytes], &head, sizeof head);
  }
}

std::size_t StampedContents::first_difference(ConstBlock bytes, const SessionStamp& stamp) const {
  const std::byte* noise = noise_of(stamp);
  for (std::size_t at = 0; at < kBlockBytes; at += kSectorBytes) {
    const SectorHead head = head_of(stamp, at / kSectorBytes);
    if (std::memcmp(&bytes[at], &head, sizeof head) != 0 ||
        std::memcmp(&bytes[at + sizeof head], noise + at + sizeof head,
                    kSectorBytes - sizeof head) != 0) {
      return at;
    }
  }
  return kBlockBytes;
}

bool StampedContents::holds(ConstBlock bytes, const SessionStamp& stamp) const {
  return first_difference(bytes, stamp) == kBlockBytes;
}

std::optional<std::string> StampedContents::difference(ConstBlock bytes,
                                                       const SessionStamp& stamp) const {
  const std::size_t at = first_difference(bytes, stamp);
  if (at == kBlockBytes) return std::nullopt;
  SectorHead found{};
  std::memcpy(&found, &bytes[at], sizeof found);
  if (found.magic != kMagic) return fmt::format("at byte {} no stamp", at);
  const SectorHead expected = head_of(stamp, at / kSectorBytes);
  if (std::memcmp(&found, &expected, sizeof found) == 0) {
    return fmt::format("at byte {} the right stamp before damaged bytes", at);
  }
  return fmt::format("at byte {} generation {} of block {} of session {}", at, found.generation,
                     found.block, found.session);
}

}  // namespace mariner::bench
