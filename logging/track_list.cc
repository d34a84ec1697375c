#include "logging/track_list.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "logging/block_frame.h"
#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::logging {
namespace {

constexpr BlockKind kListPage{0x5453494c4e52414d, 1};       // "MARNLIST"
constexpr BlockKind kRewriteNotice{0x57454e4c4e52414d, 1};  // "MARNLNEW"
constexpr std::size_t kEntriesAt = 64;
static_assert(kEntriesAt + std::size_t{kListPageTracks} * 8 <= kBlockBytes);

}  // namespace

void pack_list_page(const ListPage& page, const LogId& log, std::span<std::byte, kBlockBytes> to) {
  CHECK(page.tracks.size() <= kListPageTracks);
  std::memset(to.data(), 0, to.size());
  std::byte* p = to.data();
  std::memcpy(p + 16, log.data(), log.size());
  store_le(p + 32, page.generation);
  store_le(p + 40, page.first_allocation);
  store_le(p + 48, page.oldest);
  store_le(p + 56, static_cast<std::uint32_t>(page.tracks.size()));
  for (std::size_t i = 0; i < page.tracks.size(); ++i) {
    store_le(p + kEntriesAt + 8 * i, page.tracks[i]);
  }
  seal_block(to, kListPage);
}

std::optional<ListPage> unpack_list_page(std::span<const std::byte, kBlockBytes> from,
                                         const LogId& log) {
  if (!is_sealed(from, kListPage)) return std::nullopt;
  const std::byte* p = from.data();
  if (std::memcmp(p + 16, log.data(), log.size()) != 0) return std::nullopt;
  ListPage page;
  page.generation = load_le<std::uint64_t>(p + 32);
  page.first_allocation = load_le<std::uint64_t>(p + 40);
  page.oldest = load_le<std::uint64_t>(p + 48);
  const auto count = load_le<std::uint32_t>(p + 56);
  if (page.generation == 0 || page.first_allocation == 0 || page.oldest == 0 || count == 0 ||
      count > kListPageTracks || page.first_allocation > UINT64_MAX - kListPageTracks) {
    return std::nullopt;
  }
  page.tracks.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    page.tracks.push_back(load_le<std::uint64_t>(p + kEntriesAt + 8 * i));
  }
  return page;
}

void pack_rewrite_notice(const LogId& log, std::span<std::byte, kBlockBytes> to) {
  std::memset(to.data(), 0, to.size());
  std::memcpy(to.data() + 16, log.data(), log.size());
  seal_block(to, kRewriteNotice);
}

bool is_rewrite_notice(std::span<const std::byte, kBlockBytes> from, const LogId& log) {
  return is_sealed(from, kRewriteNotice) &&
         std::memcmp(from.data() + 16, log.data(), log.size()) == 0;
}

TrackList::TrackList(const Superblock& superblock)
    : TrackList(superblock.track_count, superblock.list_blocks) {
  for (std::uint64_t track = 0; track < track_count_; ++track) tracks_.push_back(track);
}

Result<TrackList> TrackList::from_pages(const Superblock& superblock,
                                        const std::vector<std::optional<ListPage>>& slots) {
  TrackList list(superblock.track_count, superblock.list_blocks);
  const auto damaged = [](const std::string& what) {
    return Error{ErrorCode::kCorrupt, "the log's allocation list: " + what};
  };
  // Of each page the newest copy; of all the highest `oldest`.
  std::uint64_t oldest = 0;
  for (std::uint32_t slot = 0; slot < slots.size(); ++slot) {
    if (!slots[slot]) continue;
    const ListPage& page = *slots[slot];
    const std::uint64_t number = page_of(page.first_allocation);
    if (page_of(page.first_allocation + page.tracks.size() - 1) != number) {
      return damaged("a page holds more than its allocations");
    }
    oldest = std::max(oldest, page.oldest);
    list.generation_ = std::max(list.generation_, page.generation);
    const auto [known, fresh] = list.slots_.try_emplace(number, slot);
    if (!fresh && slots[known->second]->generation < page.generation) known->second = slot;
  }
  if (oldest == 0) return damaged("no page is whole");
  list.oldest_ = oldest;
  std::vector<bool> seen(list.track_count_, false);
  for (auto it = list.slots_.begin(); it != list.slots_.end();) {
    const ListPage& page = *slots[it->second];
    const std::uint64_t page_end = page.first_allocation + page.tracks.size();
    if (page_end <= oldest) {
      it = list.slots_.erase(it);
      continue;
    }
    for (std::uint64_t a = std::max(page.first_allocation, oldest); a < page_end; ++a) {
      if (a != list.end()) return damaged("a page is missing");
      const std::uint64_t track = page.tracks[a - page.first_allocation];
      if (track != kHole) {
        if (track >= list.track_count_ || seen[track]) return damaged("a track stands there twice");
        seen[track] = true;
      }
      list.tracks_.push_back(track);
    }
    ++it;
  }
  list.find_free_tracks();
  return list;
}

TrackList TrackList::from_headers(const Superblock& superblock,
                                  const std::vector<TrackHeader>& headers,
                                  const std::vector<std::optional<ListPage>>& slots) {
  TrackList list(superblock.track_count, superblock.list_blocks);
  for (const std::optional<ListPage>& page : slots) {
    if (page) list.generation_ = std::max(list.generation_, page->generation);
  }
  std::map<std::uint64_t, std::uint64_t> by_allocation;
  for (const TrackHeader& header : headers) by_allocation[header.allocation] = header.track;
  // Backwards from the youngest, over a few holes: what lies further back is no part of this log.
  std::size_t holes = 0;
  std::uint64_t next = 0;
  for (auto it = by_allocation.rbegin(); it != by_allocation.rend(); ++it) {
    if (next != 0) {
      const std::uint64_t missing = next - it->first - 1;
      if (missing > kHolesMax - holes) break;
      holes += missing;
      list.tracks_.insert(list.tracks_.begin(), missing, kHole);
    }
    list.tracks_.push_front(it->second);
    list.oldest_ = next = it->first;
  }
  list.find_free_tracks();
  return list;
}

void TrackList::find_free_tracks() {
  std::vector<bool> listed(track_count_, false);
  for (const std::uint64_t track : tracks_) {
    if (track != kHole) listed[track] = true;
  }
  free_.clear();
  for (std::uint64_t track = 0; track < track_count_; ++track) {
    if (!listed[track]) free_.push_back(track);
  }
}

std::optional<std::uint64_t> TrackList::track(std::uint64_t allocation) const {
  CHECK(allocation >= oldest_ && allocation < end());
  const std::uint64_t track = tracks_[allocation - oldest_];
  if (track == kHole) return std::nullopt;
  return track;
}

// A slot that neither the list as it is nor the list to come needs. FORMAT.md section 2 says why
// there is one.
std::uint32_t TrackList::free_slot(const std::map<std::uint64_t, std::uint32_t>& a,
                                   const std::map<std::uint64_t, std::uint32_t>& b,
                                   std::uint32_t slot_count) {
  std::vector<bool> used(slot_count, false);
  for (const auto* slots : {&a, &b}) {
    for (const auto& [page, slot] : *slots) used[slot] = true;
  }
  const auto found = std::find(used.begin(), used.end(), false);
  CHECK_MSG(found != used.end(), "the allocation list has no free slot");
  return static_cast<std::uint32_t>(found - used.begin());
}

TrackList::Write TrackList::make_page(const Next& next, std::uint64_t page) {
  const std::uint64_t next_end = next.oldest + next.tracks.size();
  const std::uint64_t first = std::max(next.oldest, page * kListPageTracks + 1);
  const std::uint64_t last = std::min(next_end, (page + 1) * kListPageTracks + 1);
  Write write;
  write.page = {.generation = ++generation_,
                .first_allocation = first,
                .oldest = next.oldest,
                .tracks = {next.tracks.begin() + static_cast<std::ptrdiff_t>(first - next.oldest),
                           next.tracks.begin() + static_cast<std::ptrdiff_t>(last - next.oldest)}};
  return write;
}

std::vector<TrackList::Write> TrackList::release(std::uint64_t oldest) {
  CHECK(!next_);
  CHECK(oldest >= oldest_ && oldest <= end());
  const std::uint64_t room =
      kListPageTracks - std::min<std::uint64_t>(kListPageTracks, free_.size());
  oldest = std::min(oldest, oldest_ + room);
  Next next{oldest, tracks_, slots_};
  std::vector<std::uint64_t> freed = free_;  // not on any page since a crash
  for (std::uint64_t a = oldest_; a < oldest; ++a) {
    if (next.tracks.front() != kHole) freed.push_back(next.tracks.front());
    next.tracks.pop_front();
  }
  if (freed.empty()) {
    next_ = std::move(next);
    return {};
  }
  const std::uint64_t first_changed = end();
  next.tracks.insert(next.tracks.end(), freed.begin(), freed.end());
  const std::uint64_t next_end = oldest + next.tracks.size();
  for (auto it = next.slots.begin(); it != next.slots.end() && it->first < page_of(oldest);) {
    it = next.slots.erase(it);
  }
  std::vector<Write> writes;
  for (std::uint64_t page = page_of(first_changed); page <= page_of(next_end - 1); ++page) {
    Write write = make_page(next, page);
    const std::uint32_t slot = free_slot(slots_, next.slots, slot_count_);
    next.slots[page] = slot;
    write.block = kListFirstBlock + slot;
    writes.push_back(std::move(write));
  }
  next.freed = std::move(freed);
  next_ = std::move(next);
  return writes;
}

const std::vector<std::uint64_t>& TrackList::released() const {
  CHECK(next_.has_value());
  return next_->freed;
}

void TrackList::committed() {
  CHECK(next_.has_value());
  oldest_ = next_->oldest;
  tracks_ = std::move(next_->tracks);
  slots_ = std::move(next_->slots);
  free_.clear();
  next_.reset();
}

std::vector<TrackList::Write> TrackList::all_pages() {
  CHECK(!next_);
  tracks_.insert(tracks_.end(), free_.begin(), free_.end());
  free_.clear();
  slots_.clear();
  const Next whole{oldest_, tracks_, {}};
  std::vector<Write> writes;
  for (std::uint64_t page = page_of(oldest_); page <= page_of(end() - 1); ++page) {
    Write write = make_page(whole, page);
    const std::uint32_t slot = free_slot(slots_, slots_, slot_count_);
    slots_[page] = slot;
    write.block = kListFirstBlock + slot;
    writes.push_back(std::move(write));
  }
  CHECK(writes.size() < slot_count_);
  // Older pages elsewhere must not be found beside these.
  for (std::uint64_t slot = writes.size(); slot < slot_count_; ++slot) {
    writes.push_back({kListFirstBlock + slot, {}});
  }
  return writes;
}

}  // namespace mariner::logging
