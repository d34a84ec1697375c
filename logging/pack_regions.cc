#include "logging/pack_regions.h"

#include "proto/check.h"
#include "proto/crc32c.h"

namespace mariner::logging {

PackRegions::PackRegions(PackSink& sink, int level)
    : sink_(sink), compressor_(level), compressed_(kPackRegionBytes) {
  for (Open& region : open_) region.bytes.reserve(kPackRegionBytes);
}

Result<PackRegions::Place> PackRegions::add(Stream stream, std::span<const std::byte> bytes) {
  CHECK(!bytes.empty() && bytes.size() <= kPackRegionBytes);
  Open& to = open(stream);
  if (to.bytes.size() + bytes.size() > kPackRegionBytes) {
    if (const Result<void> closed = close(stream); !closed) return closed.error();
  }
  if (to.region == kClosed) {
    to.region = static_cast<std::uint32_t>(regions_.size());
    regions_.emplace_back();
  }
  const Place place{to.region, static_cast<std::uint32_t>(to.bytes.size())};
  to.bytes.insert(to.bytes.end(), bytes.begin(), bytes.end());
  return place;
}

Result<PackRegions::Place> PackRegions::add_delta(std::span<const std::byte> delta) {
  const Result<Place> place = add(Stream::kPayloads, delta);
  if (place) open(Stream::kPayloads).delta_bytes += delta.size();
  return place;
}

std::uint32_t PackRegions::payload_region() const {
  const std::uint32_t region = open_[static_cast<std::size_t>(Stream::kPayloads)].region;
  return region == kClosed ? static_cast<std::uint32_t>(regions_.size()) : region;
}

Result<std::vector<PackRegion>> PackRegions::finish() {
  for (const Stream stream : {Stream::kHeaders, Stream::kPayloads}) {
    if (const Result<void> closed = close(stream); !closed) return closed.error();
  }
  return std::move(regions_);
}

Result<void> PackRegions::close(Stream stream) {
  Open& from = open(stream);
  if (from.region == kClosed) return {};
  std::span<const std::byte> stored = from.bytes;
  const std::size_t bytes =
      compressor_.compress(from.bytes, std::span(compressed_).first(from.bytes.size() - 1));
  if (bytes > 0) stored = std::span(compressed_).first(bytes);
  if (stream == Stream::kPayloads) learn_cost(from, stored.size());
  regions_[from.region] = {.at = end_,
                           .stored_bytes = static_cast<std::uint32_t>(stored.size()),
                           .plain_bytes = static_cast<std::uint32_t>(from.bytes.size()),
                           .crc32c = crc32c(stored)};
  end_ += stored.size();
  const Result<void> appended = sink_.append(stored);
  from.region = kClosed;
  from.bytes.clear();
  from.delta_bytes = 0;
  return appended;
}

// Deltas do not compress again: a region with many of them tells nothing about blocks.
void PackRegions::learn_cost(const Open& region, std::size_t stored_bytes) {
  if (region.delta_bytes > region.bytes.size() / 8) return;
  const auto cost = static_cast<std::uint32_t>(stored_bytes * kBlockBytes / region.bytes.size());
  block_cost_ = (3 * block_cost_ + cost) / 4;
}

}  // namespace mariner::logging
