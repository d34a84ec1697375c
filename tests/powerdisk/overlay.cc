#include "tests/powerdisk/overlay.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/check.h"

namespace mariner::powerdisk {
namespace {

constexpr std::array<std::byte, kSectorBytes> kZeroSector{};

constexpr bool whole_sectors(std::uint64_t offset, std::uint64_t length) {
  return ((offset | length) & (kSectorBytes - 1)) == 0;
}

// The sectors of page `page` that `range` covers, as a bit mask.
std::uint8_t mask_in_page(std::uint64_t page, ByteRange range) {
  const std::uint64_t page_offset = page * kPageBytes;
  const std::uint64_t begin = std::max(range.offset, page_offset);
  const std::uint64_t end = std::min(range.end(), page_offset + kPageBytes);
  std::uint8_t mask = 0;
  for (std::uint64_t at = begin; at < end; at += kSectorBytes) {
    mask = static_cast<std::uint8_t>(mask | (1u << ((at - page_offset) / kSectorBytes)));
  }
  return mask;
}

constexpr bool has(std::uint8_t mask, std::uint32_t sector) { return (mask >> sector) & 1u; }

// The finalizer of splitmix64: a good hash of 64 bits.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

struct Mood {
  std::uint32_t kept_percent;
  std::uint32_t torn_percent;
};
constexpr std::array<Mood, 5> kMoods{{{0, 0}, {10, 30}, {40, 20}, {60, 30}, {90, 5}}};

}  // namespace

Fates::Fates(std::uint64_t seed) : seed_(mix(seed)) {
  const Mood& mood = kMoods[seed_ % kMoods.size()];
  kept_percent_ = mood.kept_percent;
  torn_percent_ = mood.torn_percent;
}

Fates Fates::nothing_kept() {
  Fates fates(0);
  fates.kept_percent_ = 0;
  fates.torn_percent_ = 0;
  return fates;
}

Fate Fates::of(WriteId write) const {
  const std::uint64_t draw = mix(seed_ ^ mix(write.value)) % 100;
  if (draw < kept_percent_) return Fate::kKept;
  return draw < kept_percent_ + torn_percent_ ? Fate::kTorn : Fate::kLost;
}

bool Fates::sector_kept(WriteId write, std::uint64_t offset) const {
  return (mix(seed_ ^ mix(write.value + mix(offset))) & 1u) != 0;
}

std::span<const std::byte> Overlay::Version::sector(std::uint32_t index) const {
  if (bytes == nullptr) return kZeroSector;
  return std::span(*bytes).subspan(std::size_t{index} * kSectorBytes, kSectorBytes);
}

void Overlay::write(std::uint64_t offset, std::span<const std::byte> data, WriteId id) {
  CHECK(whole_sectors(offset, data.size()));
  while (!data.empty()) {
    const std::uint64_t page = offset / kPageBytes;
    const std::uint64_t in_page = offset % kPageBytes;
    const std::size_t length = std::min<std::uint64_t>(data.size(), kPageBytes - in_page);
    auto bytes = std::make_unique<Page>();
    std::memcpy(bytes->data() + in_page, data.data(), length);
    add(page, mask_in_page(page, {offset, length}), std::move(bytes), id);
    offset += length;
    data = data.subspan(length);
  }
}

void Overlay::write_zeros(ByteRange sectors, WriteId id) {
  CHECK(whole_sectors(sectors.offset, sectors.length));
  for (std::uint64_t page = sectors.offset / kPageBytes; page * kPageBytes < sectors.end();
       ++page) {
    add(page, mask_in_page(page, sectors), nullptr, id);
  }
}

void Overlay::add(std::uint64_t page, std::uint8_t mask, std::unique_ptr<Page> bytes, WriteId id) {
  Versions& versions = pages_[page];
  CHECK(versions.empty() || versions.back().id < id);
  if (versions.size() == kVersionsMax) {
    fold_oldest(versions);
    --page_versions_;
  }
  versions.push_back({id, mask, std::move(bytes)});
  ++page_versions_;
}

void Overlay::fold_oldest(Versions& versions) {
  Version& newer = versions[1];
  const Version& older = versions[0];
  if (newer.bytes == nullptr) newer.bytes = std::make_unique<Page>();
  for (std::uint32_t s = 0; s < kPageSectors; ++s) {
    if (!has(older.mask, s) || has(newer.mask, s)) continue;
    const auto from = older.sector(s);
    std::memcpy(newer.bytes->data() + s * kSectorBytes, from.data(), from.size());
  }
  newer.mask = static_cast<std::uint8_t>(newer.mask | older.mask);
  versions.erase(versions.begin());
}

void Overlay::drop_empty(Versions& versions) {
  const auto removed = std::erase_if(versions, [](const Version& v) { return v.mask == 0; });
  page_versions_ -= removed;
}

void Overlay::read_over(std::uint64_t offset, std::span<std::byte> bytes) const {
  const std::uint64_t end = offset + bytes.size();
  for (auto it = pages_.lower_bound(offset / kPageBytes);
       it != pages_.end() && it->first * kPageBytes < end; ++it) {
    for (const Version& version : it->second) {
      for (std::uint32_t s = 0; s < kPageSectors; ++s) {
        const std::uint64_t sector_offset = it->first * kPageBytes + s * kSectorBytes;
        const std::uint64_t from = std::max(offset, sector_offset);
        const std::uint64_t to = std::min(end, sector_offset + kSectorBytes);
        if (!has(version.mask, s) || from >= to) continue;
        std::memcpy(bytes.data() + (from - offset),
                    version.sector(s).data() + (from - sector_offset), to - from);
      }
    }
  }
}

void Overlay::flush(const SectorSink& sink) {
  for (const auto& [page, versions] : pages_) {
    for (std::uint32_t s = 0; s < kPageSectors; ++s) {
      for (auto v = versions.rbegin(); v != versions.rend(); ++v) {
        if (!has(v->mask, s)) continue;
        sink(page * kPageBytes + s * kSectorBytes, v->sector(s));
        break;
      }
    }
  }
  pages_.clear();
  page_versions_ = 0;
}

void Overlay::flush_write(ByteRange sectors, WriteId id, const SectorSink& sink) {
  for (auto it = pages_.lower_bound(sectors.offset / kPageBytes);
       it != pages_.end() && it->first * kPageBytes < sectors.end();) {
    Versions& versions = it->second;
    const std::uint8_t wanted = mask_in_page(it->first, sectors);
    for (std::uint32_t s = 0; s < kPageSectors; ++s) {
      if (!has(wanted, s)) continue;
      // Folding may have put the sector under a later id; flushing more than asked is sound.
      const auto found = std::find_if(versions.begin(), versions.end(), [&](const Version& v) {
        return v.id >= id && has(v.mask, s);
      });
      if (found == versions.end()) continue;
      sink(it->first * kPageBytes + s * kSectorBytes, found->sector(s));
      for (auto v = versions.begin(); v <= found; ++v) {
        v->mask = static_cast<std::uint8_t>(v->mask & ~(1u << s));
      }
    }
    drop_empty(versions);
    it = versions.empty() ? pages_.erase(it) : std::next(it);
  }
}

void Overlay::cut(const Fates& fates, const SectorSink& sink) {
  for (const auto& [page, versions] : pages_) {
    for (const Version& version : versions) {
      const Fate fate = fates.of(version.id);
      if (fate == Fate::kLost) continue;
      for (std::uint32_t s = 0; s < kPageSectors; ++s) {
        const std::uint64_t offset = page * kPageBytes + s * kSectorBytes;
        if (!has(version.mask, s)) continue;
        if (fate == Fate::kKept || fates.sector_kept(version.id, offset)) {
          sink(offset, version.sector(s));
        }
      }
    }
  }
  pages_.clear();
  page_versions_ = 0;
}

void Overlay::truncate(std::uint64_t size) {
  for (auto it = pages_.lower_bound(size / kPageBytes); it != pages_.end();) {
    for (Version& version : it->second) {
      for (std::uint32_t s = 0; s < kPageSectors; ++s) {
        if (it->first * kPageBytes + s * kSectorBytes >= size) {
          version.mask = static_cast<std::uint8_t>(version.mask & ~(1u << s));
        }
      }
    }
    drop_empty(it->second);
    it = it->second.empty() ? pages_.erase(it) : std::next(it);
  }
  // The sector that holds the new end keeps its bytes below it; the rest reads as zeros from now
  // on.
  const std::uint32_t tail = static_cast<std::uint32_t>(size % kSectorBytes);
  const auto page = pages_.find(size / kPageBytes);
  if (tail == 0 || page == pages_.end()) return;
  const auto sector = static_cast<std::uint32_t>(size % kPageBytes) / kSectorBytes;
  for (Version& version : page->second) {
    if (!has(version.mask, sector) || version.bytes == nullptr) continue;
    std::memset(version.bytes->data() + sector * kSectorBytes + tail, 0, kSectorBytes - tail);
  }
}

}  // namespace mariner::powerdisk
