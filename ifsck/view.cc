#include "ifsck/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <tuple>

#include "ifsck/each_once.h"
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
  std::vector<Wanted> wanted;
  want(blocks, wanted);
  return fetch(std::move(wanted));
}

Result<void> View::prefetch_all(std::span<const Wish> wishes) {
  std::vector<Wanted> wanted;
  for (const Wish& each : wishes) each.view->want(each.blocks, wanted);
  return fetch(std::move(wanted));
}

void View::want(std::span<const Lbn> blocks, std::vector<Wanted>& wanted) {
  const std::uint64_t end = size_bytes() >> kBlockShift;
  std::vector<Lbn> missing;
  std::vector<Lbn> shared;
  for (const Lbn each : blocks) {
    if (each.value >= end || overlay_.find(each) != nullptr) continue;
    if (is_shared(each)) {
      shared.push_back(each);
    } else if (!cache_.contains(each.value)) {
      missing.push_back(each);
    }
  }
  if (!shared.empty()) other_->want(shared, wanted);
  sort_each_once(missing);
  missing.resize(std::min(missing.size(), options_.cached_blocks_max));
  make_room(missing.size());
  for (const Lbn each : missing) wanted.push_back({this, each});
}

void View::make_room(std::size_t blocks) {
  if (cache_.size() + blocks <= options_.cached_blocks_max) return;
  cache_.clear();
  pieces_.clear();
}

// Each once, as many at a time as are asked of one past.
Result<void> View::fetch(std::vector<Wanted> all) {
  std::ranges::sort(all, {}, [](const Wanted& each) {
    return std::tuple(each.view->at_, each.view, each.block);
  });
  const auto repeated = std::ranges::unique(all);
  all.erase(repeated.begin(), repeated.end());
  std::span<const Wanted> wanted = all;
  std::vector<Past::Question> questions;
  while (!wanted.empty()) {
    View& first = *wanted.front().view;
    const auto others = std::ranges::find_if(
        wanted, [&](const Wanted& each) { return &each.view->past_ != &first.past_; });
    const auto some = wanted.first(
        std::min(first.options_.questions_max, static_cast<std::size_t>(others - wanted.begin())));
    wanted = wanted.subspan(some.size());
    questions.clear();
    for (const Wanted& each : some) questions.push_back({each.block, each.view->at_});
    auto piece = std::make_shared_for_overwrite<Overlay::Block[]>(some.size());
    const auto bytes = std::as_writable_bytes(std::span(piece.get(), some.size()));
    if (const Result<void> read = first.past_.read(questions, bytes); !read) return read;
    ++first.counters_.questions;
    const View* keeper = nullptr;
    for (std::size_t i = 0; i < some.size(); ++i) {
      View& view = *some[i].view;
      ++view.counters_.blocks_read;
      view.cache_[some[i].block.value] = &piece[i];
      if (keeper != &view) view.pieces_.push_back(piece);
      keeper = &view;
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
  return found->second;
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
    std::memcpy(to.data() + (begin - range.offset), (*found)->data() + (begin - each.byte_offset()),
                end - begin);
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
    std::memcpy(bytes.data() + (begin - each.byte_offset()), from.data() + (begin - range.offset),
                end - begin);
    overlay_.put(each, bytes);
  }
  return {};
}

}  // namespace mariner::ifsck
