#include "server/volume/headway.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "index/version_index.h"
#include "proto/check.h"

namespace mariner::volume {
namespace {

using Bits = BlockSet::Bits;
constexpr std::uint64_t kPageBlocks = BlockSet::kPageBlocks;

bool has_bit(const Bits& bits, std::uint64_t block) {
  return (bits[block % kPageBlocks / 8] & (1u << (block % 8))) != 0;
}

// Blocks [first, end) of one page.
void set_bits(Bits& bits, std::uint64_t first, std::uint64_t end, bool to) {
  for (std::uint64_t at = first; at < end; ++at) {
    std::uint8_t& byte = bits[at % kPageBlocks / 8];
    const auto mask = static_cast<std::uint8_t>(1u << (at % 8));
    byte = static_cast<std::uint8_t>(to ? byte | mask : byte & ~mask);
  }
}

bool none(const Bits& bits) {
  return std::ranges::all_of(bits, [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace

Headway::Headway(const Kept& kept) : statement_(kept.statement), kept_(kept.statement) {
  for (const Page& page : kept.left) {
    Bits bits;
    CHECK(page.bits.size() == bits.size());
    std::memcpy(bits.data(), page.bits.data(), bits.size());
    left_[page.number] = bits;
  }
}

std::vector<BlockRange> Headway::lacking(const std::vector<BlockRange>& since_frontier,
                                         const std::vector<BlockRange>& since_then) const {
  std::vector<BlockRange> out = since_then;
  for (const BlockRange& range : since_frontier) {
    const BlockRange said = range.intersect({Lbn{0}, {through().value}});
    out.push_back(BlockRange::between(std::max(range.first, through()), range.end()));
    if (said.empty()) continue;
    for (auto page = left_.lower_bound(said.first.value / kPageBlocks);
         page != left_.end() && page->first * kPageBlocks < said.end().value; ++page) {
      const std::uint64_t end = std::min(said.end().value, (page->first + 1) * kPageBlocks);
      for (std::uint64_t at = std::max(said.first.value, page->first * kPageBlocks); at < end;) {
        const std::uint64_t first = at;
        while (at < end && has_bit(page->second, at)) ++at;
        if (at > first) out.push_back(BlockRange::between({first}, {at}));
        while (at < end && !has_bit(page->second, at)) ++at;
      }
    }
  }
  return index::merge_extents(std::move(out));
}

void Headway::reach(Lbn through) { statement_.through = std::max(statement_.through, through); }

void Headway::lacks(BlockRange range) {
  for (std::uint64_t at = range.first.value;
       at < std::min(range.end().value, statement_.through.value);) {
    const std::uint64_t page = at / kPageBlocks;
    const std::uint64_t end =
        std::min({range.end().value, statement_.through.value, (page + 1) * kPageBlocks});
    set_bits(left_[page], at, end, true);
    changed_.insert(page);
    if (left_.size() > kPagesMax) shrink();
    at = end;
  }
}

// Nothing is said of the last page that has something left, or of what is behind it.
void Headway::shrink() {
  const auto last = std::prev(left_.end());
  statement_.through = Lbn{last->first * kPageBlocks};
  changed_.insert(last->first);
  left_.erase(last);
}

void Headway::has(BlockRange range) {
  for (auto page = left_.lower_bound(range.first.value / kPageBlocks);
       page != left_.end() && page->first * kPageBlocks < range.end().value;) {
    set_bits(page->second, std::max(range.first.value, page->first * kPageBlocks),
             std::min(range.end().value, (page->first + 1) * kPageBlocks), false);
    changed_.insert(page->first);
    page = none(page->second) ? left_.erase(page) : std::next(page);
  }
}

void Headway::forget() {
  anew_ = anew_ || kept_.as_of.value != 0;
  statement_ = {};
  left_.clear();
}

std::optional<Headway::Change> Headway::take_change(SequenceNumber as_of,
                                                    std::uint64_t restored_bytes_all) {
  Change change;
  if (statement_.through.value == 0) {
    changed_.clear();
    if (!anew_) return std::nullopt;
    change.anew = true;
  } else {
    statement_.as_of = std::max(statement_.as_of, as_of);
    statement_.restored_bytes_all = restored_bytes_all;
    change.anew = anew_;
    if (anew_) {
      for (const auto& [number, bits] : left_) changed_.insert(number);
    } else if (changed_.empty() && statement_.through == kept_.through &&
               statement_.as_of == kept_.as_of) {
      return std::nullopt;
    }
    for (const std::uint64_t number : changed_) {
      const auto page = left_.find(number);
      change.pages.push_back({number, {}});
      if (page == left_.end()) continue;
      const Bits& bits = page->second;
      change.pages.back().bits.assign(reinterpret_cast<const char*>(bits.data()), bits.size());
    }
    changed_.clear();
    change.statement = statement_;
  }
  anew_ = false;
  kept_ = statement_;
  return change;
}

}  // namespace mariner::volume
