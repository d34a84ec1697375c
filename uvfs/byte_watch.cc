#include "uvfs/byte_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/check.h"

namespace mariner::uvfs {

template <typename Visit>
void ByteWatch::for_each_part(std::span<const ByteRange> ranges, Visit visit) {
  for (const ByteRange& each : ranges) {
    for (std::uint64_t at = each.offset; at < each.end();) {
      const std::uint64_t begin = at % kBlockBytes;
      const std::uint64_t end = std::min<std::uint64_t>(kBlockBytes, begin + (each.end() - at));
      visit(Lbn{at / kBlockBytes}, static_cast<std::uint16_t>(begin),
            static_cast<std::uint16_t>(end));
      at += end - begin;
    }
  }
}

Result<void> ByteWatch::set(Watcher watcher, std::vector<ByteRange> ranges) {
  const auto known = watchers_.find(watcher);
  if (known != watchers_.end() && known->second == ranges) return {};
  // (New ones before the old ones go: a block that stays is not new.)
  std::size_t added = 0;
  for_each_part(ranges, [&](Lbn block, std::uint16_t begin, std::uint16_t end) {
    auto& parts = blocks_[block.value];
    if (parts.empty()) new_.push_back(block);
    parts.push_back({watcher, begin, end});
    ++added;
  });
  if (known != watchers_.end()) {
    for_each_part(known->second, [&](Lbn block, std::uint16_t begin, std::uint16_t end) {
      const auto found = blocks_.find(block.value);
      CHECK(found != blocks_.end());
      auto& parts = found->second;
      const auto part = std::ranges::find_if(parts, [&](const Part& each) {
        return each.watcher == watcher && each.begin == begin && each.end == end;
      });
      CHECK(part != parts.end());
      *part = parts.back();
      parts.pop_back();
      if (parts.empty()) blocks_.erase(found);
      --parts_;
    });
  }
  parts_ += added;
  watchers_.insert_or_assign(watcher, std::move(ranges));
  if (parts_ <= kPartsMax) return {};
  return Error{ErrorCode::kLimit,
               fmt::format("what is looked at has more than {} pieces that say what it is: ask for "
                           "fewer files",
                           kPartsMax)};
}

void ByteWatch::find(Lbn block, std::span<const std::byte> before, std::span<const std::byte> after,
                     std::vector<Watcher>& to) const {
  const auto found = blocks_.find(block.value);
  if (found == blocks_.end()) return;
  const auto first = std::ranges::mismatch(before, after).in1 - before.begin();
  if (first == static_cast<std::ptrdiff_t>(before.size())) return;
  for (const Part& each : found->second) {
    if (each.end <= first) continue;
    if (std::memcmp(before.data() + each.begin, after.data() + each.begin, each.end - each.begin) !=
        0) {
      to.push_back(each.watcher);
    }
  }
}

std::vector<Lbn> ByteWatch::take_new() {
  auto all = std::exchange(new_, {});
  std::erase_if(all, [this](Lbn each) { return !watches(each); });
  return all;
}

}  // namespace mariner::uvfs
