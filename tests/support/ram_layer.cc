#include "tests/support/ram_layer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace mariner::test {

using volume::Allocation;

RamLayer::RamLayer(const Options& options)
    : size_bytes_(options.size_bytes), read_only_(options.read_only) {
  CHECK(size_bytes_ % 512 == 0);
}

RamLayer::~RamLayer() = default;

void RamLayer::check(ByteRange range) const {
  CHECK(range.length != 0 && (range.offset | range.length) % 512 == 0);
  CHECK(range.end() > range.offset && range.end() <= size_bytes_);
}

void RamLayer::record(const char* what, ByteRange range) {
  if (!recording_) return;
  calls_.push_back(std::string(what) + " " + std::to_string(range.offset) + "+" +
                   std::to_string(range.length));
}

void RamLayer::complete(UniqueFunction<void()> completion) {
  if (holding_) {
    held_.push_back(std::move(completion));
  } else {
    completion();
  }
}

void RamLayer::release() {
  holding_ = false;
  while (!held_.empty()) {
    auto completion = std::move(held_.front());
    held_.pop_front();
    completion();
  }
}

std::optional<Error> RamLayer::take_error() { return std::exchange(next_error_, std::nullopt); }

void RamLayer::prefetch(ByteRange range) {
  check(range);
  record("prefetch", range);
}

void RamLayer::read(ByteRange range, volume::ReadDone done) {
  check(range);
  record("read", range);
  if (auto error = take_error()) {
    return complete(
        [error = *std::move(error), done = std::move(done)]() mutable { done(std::move(error)); });
  }
  Payload payload = Payload::allocate(range.length);
  copy_out(range.offset, payload.bytes());
  PayloadSlice slice{std::move(payload), 0, range.length};
  if (!holding_) return done(std::move(slice));
  complete(
      [slice = std::move(slice), done = std::move(done)]() mutable { done(std::move(slice)); });
}

void RamLayer::finish(volume::Done done) {
  if (!holding_) return done(Result<void>());
  complete([done = std::move(done)]() mutable { done(Result<void>()); });
}

void RamLayer::fail(Error error, volume::Done done) {
  complete(
      [error = std::move(error), done = std::move(done)]() mutable { done(std::move(error)); });
}

void RamLayer::write(ByteRange range, PayloadSlice data, volume::Done done) {
  check(range);
  CHECK(!read_only_ && data.length == range.length);
  record("write", range);
  if (auto error = take_error()) return fail(*std::move(error), std::move(done));
  copy_in(range.offset, data.bytes());
  finish(std::move(done));
}

void RamLayer::write_same(ByteRange range, PayloadSlice pattern, volume::Done done) {
  check(range);
  CHECK(!read_only_ && (pattern.length == 512 || pattern.length == kBlockBytes));
  record("write_same", range);
  if (auto error = take_error()) return fail(*std::move(error), std::move(done));
  for (std::uint64_t at = range.offset; at < range.end(); at += pattern.length) {
    copy_in(at, pattern.bytes());
  }
  finish(std::move(done));
}

void RamLayer::update(ByteRange range, volume::Change change, volume::Done done) {
  check(range);
  CHECK(!read_only_);
  record("update", range);
  if (auto error = take_error()) return fail(*std::move(error), std::move(done));
  Payload current = Payload::allocate(range.length);
  copy_out(range.offset, {current.data(), current.size()});
  const std::optional<PayloadSlice> changed = change({current, 0, range.length});
  if (changed) copy_in(range.offset, changed->bytes());
  finish(std::move(done));
}

void RamLayer::trim(ByteRange range, volume::TrimMode mode, volume::Done done) {
  check(range);
  CHECK(!read_only_);
  record(mode == volume::TrimMode::kZero ? "zero" : "unmap", range);
  if (auto error = take_error()) return fail(*std::move(error), std::move(done));
  const BlockRange inner = range.inner_blocks();
  if (inner.count.value < blocks_.size()) {
    for (Lbn lbn = inner.first; lbn < inner.end(); lbn.value += 1) blocks_.erase(lbn.value);
  } else {
    std::erase_if(blocks_, [&](const auto& entry) { return inner.contains(Lbn{entry.first}); });
  }
  if (mode == volume::TrimMode::kZero) {
    // The edges, which may be one piece within one block.
    for (const Lbn lbn :
         {Lbn{range.offset >> kBlockShift}, Lbn{(range.end() - 1) >> kBlockShift}}) {
      const auto block = blocks_.find(lbn.value);
      if (block == blocks_.end()) continue;
      const std::uint64_t from = std::max(range.offset, lbn.byte_offset());
      const std::uint64_t to = std::min(range.end(), lbn.byte_offset() + kBlockBytes);
      std::memset(block->second.get() + (from - lbn.byte_offset()), 0, to - from);
    }
  }
  finish(std::move(done));
}

void RamLayer::flush(volume::Done done) {
  record("flush", {});
  if (auto error = take_error()) return fail(*std::move(error), std::move(done));
  finish(std::move(done));
}

void RamLayer::snapshot(volume::SnapshotDone done) {
  record("snapshot", {});
  if (auto error = take_error()) {
    return complete(
        [error = *std::move(error), done = std::move(done)]() mutable { done(std::move(error)); });
  }
  auto copy = std::make_shared<RamLayer>(Options{.size_bytes = size_bytes_, .read_only = true});
  for (const auto& [lbn, bytes] : blocks_) {
    copy->copy_in(lbn << kBlockShift, {bytes.get(), kBlockBytes});
  }
  last_snapshot_ = copy;
  complete([copy = std::move(copy), done = std::move(done)]() mutable {
    done(std::shared_ptr<volume::Layer>(std::move(copy)));
  });
}

void RamLayer::settle(volume::Done done) { finish(std::move(done)); }

void RamLayer::allocation(ByteRange range, volume::AllocationDone done) {
  check(range);
  record("allocation", range);
  if (auto error = take_error()) {
    return complete(
        [error = *std::move(error), done = std::move(done)]() mutable { done(std::move(error)); });
  }
  std::vector<Allocation> pieces;
  for (std::uint64_t at = range.offset; at < range.end();) {
    const std::uint64_t block_end = (at / kBlockBytes + 1) * kBlockBytes;
    const std::uint64_t end = std::min(range.end(), block_end);
    const bool mapped = blocks_.contains(at >> kBlockShift);
    if (!pieces.empty() && pieces.back().mapped == mapped) {
      pieces.back().range.length += end - at;
    } else {
      pieces.push_back({{at, end - at}, mapped});
    }
    at = end;
  }
  complete(
      [pieces = std::move(pieces), done = std::move(done)]() mutable { done(std::move(pieces)); });
}

std::string RamLayer::text(ByteRange range) const {
  std::string bytes(range.length, '\0');
  copy_out(range.offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

void RamLayer::copy_in(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t within = offset % kBlockBytes;
    const std::size_t piece = std::min<std::size_t>(bytes.size(), kBlockBytes - within);
    auto& block = blocks_[offset >> kBlockShift];
    if (!block) block = std::make_unique<std::byte[]>(kBlockBytes);
    std::memcpy(block.get() + within, bytes.data(), piece);
    bytes = bytes.subspan(piece);
    offset += piece;
  }
}

void RamLayer::copy_out(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const std::size_t within = offset % kBlockBytes;
    const std::size_t piece = std::min<std::size_t>(bytes.size(), kBlockBytes - within);
    const auto block = blocks_.find(offset >> kBlockShift);
    if (block == blocks_.end()) {
      std::memset(bytes.data(), 0, piece);
    } else {
      std::memcpy(bytes.data(), block->second.get() + within, piece);
    }
    bytes = bytes.subspan(piece);
    offset += piece;
  }
}

}  // namespace mariner::test
