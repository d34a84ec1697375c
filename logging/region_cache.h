// The cache of decompressed regions that readers of packs share. Bounded; the region that was used
// longest ago goes first. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

namespace mariner::logging {

// A region's plain bytes, immutable, shared by whoever reads them.
class RegionBytes {
 public:
  RegionBytes() = default;
  // Bytes that nobody has filled yet.
  [[nodiscard]] static RegionBytes allocate(std::size_t bytes) {
    RegionBytes region;
    region.data_ = std::make_shared_for_overwrite<std::byte[]>(bytes);
    region.size_ = bytes;
    return region;
  }

  explicit operator bool() const { return data_ != nullptr; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_.get(), size_}; }
  // For whoever allocated it, until it is shared.
  [[nodiscard]] std::span<std::byte> unshared() { return {data_.get(), size_}; }

 private:
  std::shared_ptr<std::byte[]> data_;
  std::size_t size_ = 0;
};

class RegionCache {
 public:
  // Holds regions of at most so many plain bytes together; readers may hold further ones for as
  // long as they read them. 0: holds none.
  explicit RegionCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  RegionCache(const RegionCache&) = delete;
  RegionCache& operator=(const RegionCache&) = delete;

  // Nothing if it is not there.
  [[nodiscard]] RegionBytes find(std::uint64_t pack_id, std::uint32_t region);
  // Does not replace one that another thread put there.
  void insert(std::uint64_t pack_id, std::uint32_t region, const RegionBytes& bytes);
  // Lets go of the pack's regions. One that a reader is decompressing now may still come: an
  // identity that is used again needs its readers gone first.
  void forget(std::uint64_t pack_id);

  [[nodiscard]] std::size_t bytes() const;

 private:
  struct Key {
    std::uint64_t pack_id = 0;
    std::uint32_t region = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      return (key.pack_id * 0x9e3779b97f4a7c15 + key.region) * 0xff51afd7ed558ccd >> 7;
    }
  };
  struct Entry {
    Key key;
    RegionBytes bytes;
  };
  using Entries = std::list<Entry>;

  void drop_oldest();

  const std::size_t bytes_max_;
  mutable std::mutex mutex_;  // guards all below
  Entries entries_;           // used last first
  std::unordered_map<Key, Entries::iterator, KeyHash> places_;
  std::size_t bytes_ = 0;
};

}  // namespace mariner::logging
