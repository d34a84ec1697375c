#include "ifsck/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "proto/check.h"

namespace mariner::ifsck {

Result<void> View::check(ByteRange range, std::size_t bytes) const {
  CHECK(range.length == bytes);
  if (range.offset <= size_bytes() && range.length <= size_bytes() - range.offset) return {};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("bytes {} to {} of a volume of {} do not exist", range.offset,
                           range.end(), size_bytes())};
}

bool View::is_shared(Lbn lbn) const {
  if (other_ == nullptr) return false;
  const auto after = std::ranges::upper_bound(changed_, lbn, {}, &BlockRange::first);
  return after == changed_.begin() || std::prev(after)->end() <= lbn;
}

Result<void> View::prefetch(std::span<const Lbn> blocks) {
  const std::uint64_t end = size_bytes() >> kBlockShift;
  std::vector<Past::Question> questions;
  std::vector<Lbn> shared;
  for (const Lbn each : blocks) {
    if (each.value >= end || overlay_.find(each) != nullptr) continue;
    if (is_shared(each)) {
      shared.push_back(each);
    } else if (!cache_.contains(each.value)) {
      questions.push_back({each, at_});
    }
  }
  if (!shared.empty()) {
    if (const Result<void> fetched = other_->prefetch(shared); !fetched) return fetched;
  }
  std::ranges::sort(questions, {}, &Past::Question::block);
  const auto repeated = std::ranges::unique(questions);
  questions.erase(repeated.begin(), repeated.end());
  if (cache_.size() + questions.size() > options_.cached_blocks_max) cache_.clear();
  questions.resize(std::min(questions.size(), options_.cached_blocks_max));
  std::vector<std::byte> bytes;
  for (std::size_t from = 0; from < questions.size(); from += options_.questions_max) {
    const auto some = std::span(questions).subspan(
        from, std::min(options_.questions_max, questions.size() - from));
    bytes.resize(some.size() * kBlockBytes);
    if (const Result<void> read = past_.read(some, bytes); !read) return read;
    counters_.blocks_read += some.size();
    ++counters_.questions;
    for (std::size_t i = 0; i < some.size(); ++i) {
      std::ranges::copy(std::span(bytes).subspan(i * kBlockBytes, kBlockBytes),
                        cache_[some[i].block.value].begin());
    }
  }
  return {};
}

Result<const Overlay::Block*> View::block(Lbn lbn) {
  if (const Overlay::Block* const repaired = overlay_.find(lbn)) return repaired;
  if (is_shared(lbn)) return other_->block(lbn);
  auto found = cache_.find(lbn.value);
  if (found == cache_.end()) {
    if (const Result<void> fetched = prefetch(std::span(&lbn, 1)); !fetched) {
      return fetched.error();
    }
    found = cache_.find(lbn.value);
  }
  return &found->second;
}

Result<void> View::read(ByteRange range, std::span<std::byte> to) {
  if (const Result<void> good = check(range, to.size()); !good) return good;
  if (range.length == 0) return {};
  const BlockRange blocks = range.covering_blocks();
  if (blocks.count.value > 1) {
    std::vector<Lbn> all;
    for (Lbn each = blocks.first; each < blocks.end(); each = each + BlockCount{1}) {
      all.push_back(each);
    }
    if (const Result<void> fetched = prefetch(all); !fetched) return fetched;
  }
  for (Lbn each = blocks.first; each < blocks.end(); each = each + BlockCount{1}) {
    const auto found = block(each);
    if (!found) return found.error();
    const std::uint64_t begin = std::max(range.offset, each.byte_offset());
    const std::uint64_t end = std::min(range.end(), each.byte_offset() + kBlockBytes);
    std::ranges::copy(std::span(**found).subspan(begin - each.byte_offset(), end - begin),
                      to.begin() + static_cast<std::ptrdiff_t>(begin - range.offset));
  }
  return {};
}

Result<void> View::write(ByteRange range, std::span<const std::byte> from) {
  if (const Result<void> good = check(range, from.size()); !good) return good;
  if (range.length == 0) return {};
  const BlockRange blocks = range.covering_blocks();
  for (Lbn each = blocks.first; each < blocks.end(); each = each + BlockCount{1}) {
    const std::uint64_t begin = std::max(range.offset, each.byte_offset());
    const std::uint64_t end = std::min(range.end(), each.byte_offset() + kBlockBytes);
    Overlay::Block bytes;
    if (end - begin < kBlockBytes) {
      const auto found = block(each);
      if (!found) return found.error();
      bytes = **found;
    }
    std::ranges::copy(from.subspan(begin - range.offset, end - begin),
                      bytes.begin() + static_cast<std::ptrdiff_t>(begin - each.byte_offset()));
    overlay_.put(each, bytes);
  }
  return {};
}

}  // namespace mariner::ifsck
