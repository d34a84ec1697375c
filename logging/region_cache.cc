#include "logging/region_cache.h"

namespace mariner::logging {

RegionBytes RegionCache::find(std::uint64_t pack_id, std::uint32_t region) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find({pack_id, region});
  if (place == places_.end()) return {};
  entries_.splice(entries_.begin(), entries_, place->second);
  return place->second->bytes;
}

void RegionCache::insert(std::uint64_t pack_id, std::uint32_t region, const RegionBytes& bytes) {
  const std::size_t size = bytes.bytes().size();
  if (size > bytes_max_) return;
  const std::lock_guard lock(mutex_);
  const Key key{pack_id, region};
  if (places_.contains(key)) return;
  while (bytes_ + size > bytes_max_) drop_oldest();
  entries_.push_front({key, bytes});
  places_.emplace(key, entries_.begin());
  bytes_ += size;
}

void RegionCache::forget(std::uint64_t pack_id) {
  const std::lock_guard lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (entry->key.pack_id != pack_id) {
      ++entry;
      continue;
    }
    bytes_ -= entry->bytes.bytes().size();
    places_.erase(entry->key);
    entry = entries_.erase(entry);
  }
}

std::size_t RegionCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void RegionCache::drop_oldest() {
  bytes_ -= entries_.back().bytes.bytes().size();
  places_.erase(entries_.back().key);
  entries_.pop_back();
}

}  // namespace mariner::logging
