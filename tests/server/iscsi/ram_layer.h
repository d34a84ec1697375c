// A volume layer in memory, for trying clients against the iSCSI server alone.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "server/volume/layer.h"

namespace mariner::iscsi {

class RamLayer final : public volume::Layer {
 public:
  explicit RamLayer(std::uint64_t bytes)
      : bytes_(static_cast<std::byte*>(std::calloc(bytes, 1))),
        size_(bytes),
        mapped_(bytes / kBlockBytes) {
    CHECK_MSG(bytes_ != nullptr, "out of memory for a RAM disk");
  }

  [[nodiscard]] std::uint64_t size_bytes() const override { return size_; }
  [[nodiscard]] bool read_only() const override { return false; }

  void read(ByteRange range, volume::ReadDone done) override {
    Payload payload = Payload::copy_of({bytes_.get() + range.offset, range.length});
    done(PayloadSlice{.payload = std::move(payload), .offset = 0, .length = range.length});
  }
  void write(ByteRange range, PayloadSlice data, volume::Done done) override {
    std::memcpy(bytes_.get() + range.offset, data.bytes().data(), range.length);
    map(range, true);
    done({});
  }
  void write_same(ByteRange range, PayloadSlice pattern, volume::Done done) override {
    for (std::uint64_t at = range.offset; at < range.end(); at += pattern.length) {
      std::memcpy(bytes_.get() + at, pattern.bytes().data(), pattern.length);
    }
    map(range, true);
    done({});
  }
  void trim(ByteRange range, volume::TrimMode, volume::Done done) override {
    std::memset(bytes_.get() + range.offset, 0, range.length);
    for (std::uint64_t i = range.inner_blocks().first.value; i < range.inner_blocks().end().value;
         ++i) {
      mapped_[i] = false;
    }
    done({});
  }
  void flush(volume::Done done) override { done({}); }
  [[nodiscard]] std::vector<volume::Allocation> allocation(ByteRange range) override {
    std::vector<volume::Allocation> found;
    for (std::uint64_t at = range.offset; at < range.end();) {
      const bool mapped = mapped_[at / kBlockBytes];
      const std::uint64_t end = std::min(range.end(), (at / kBlockBytes + 1) * kBlockBytes);
      if (!found.empty() && found.back().mapped == mapped) {
        found.back().range.length += end - at;
      } else {
        found.push_back({.range = {.offset = at, .length = end - at}, .mapped = mapped});
      }
      at = end;
    }
    return found;
  }
  void settle(volume::Done done) override { done({}); }

 private:
  void map(ByteRange range, bool mapped) {
    const BlockRange blocks = range.covering_blocks();
    for (std::uint64_t i = blocks.first.value; i < blocks.end().value; ++i) mapped_[i] = mapped;
  }

  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };

  // calloc() gives pages that cost nothing before they are written.
  std::unique_ptr<std::byte[], Free> bytes_;
  std::uint64_t size_;
  std::vector<bool> mapped_;
};

}  // namespace mariner::iscsi
