// The allocation list of a log disk: which track each allocation number took or will take.
// FORMAT.md section 2.
//
// Allocations count up for ever; tracks come round again. The list knows the allocations
// [oldest, end): those up to the youngest hold records, those behind it are planned. Only a planned
// track is written to, and a track is planned only by a page that is durable, so that recovery
// finds the tracks in their order whatever their places, by a binary search over it.
//
// A value: it does no I/O. The owner writes each page that release() makes, in order, durably,
// before it calls committed().
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "logging/track.h"
#include "proto/error.h"

namespace mariner::logging {

// One block of the list: the tracks of the allocations [first_allocation, + tracks.size()).
struct ListPage {
  std::uint64_t generation = 0;        // counts up with each page written: the higher is the newer
  std::uint64_t first_allocation = 0;  // of `tracks`
  std::uint64_t oldest = 0;            // allocations below it are free
  std::vector<std::uint64_t> tracks;
  friend bool operator==(const ListPage&, const ListPage&) = default;
};

inline constexpr std::uint32_t kListPageTracks = 500;

void pack_list_page(const ListPage& page, const LogId& log, std::span<std::byte, kBlockBytes> to);
// Nothing if it is no whole page of this log.
std::optional<ListPage> unpack_list_page(std::span<const std::byte, kBlockBytes> from,
                                         const LogId& log);

// Stands in the last slot while the whole list is written anew: where it is found, no page counts.
void pack_rewrite_notice(const LogId& log, std::span<std::byte, kBlockBytes> to);
[[nodiscard]] bool is_rewrite_notice(std::span<const std::byte, kBlockBytes> from,
                                     const LogId& log);

class TrackList {
 public:
  // Of a new log: every track is planned, in the order of their places.
  explicit TrackList(const Superblock& superblock);
  // From the pages found in the slots of the list; an empty one where none is whole. kCorrupt when
  // they do not say where every live allocation is.
  static Result<TrackList> from_pages(const Superblock& superblock,
                                      const std::vector<std::optional<ListPage>>& slots);
  // From what the tracks say of themselves, when pages are lost; `slots` as above. A track that is
  // missing between others is a hole; the tracks that say nothing are planned. To be written by
  // all_pages() before it is used.
  static TrackList from_headers(const Superblock& superblock,
                                const std::vector<TrackHeader>& headers,
                                const std::vector<std::optional<ListPage>>& slots);

  [[nodiscard]] std::uint64_t oldest() const { return oldest_; }
  // The same, but without what is being given up: that may read as zeros already.
  [[nodiscard]] std::uint64_t kept_from() const { return next_ ? next_->oldest : oldest_; }
  [[nodiscard]] std::uint64_t end() const { return oldest_ + tracks_.size(); }
  // Of an allocation in [oldest, end); nothing for a hole.
  [[nodiscard]] std::optional<std::uint64_t> track(std::uint64_t allocation) const;

  // A page to write, and the block where it goes. One without tracks stands for zeros.
  struct Write {
    std::uint64_t block = 0;
    ListPage page;
  };
  // Frees the allocations below `oldest` (at least the present one, at most end()) and plans their
  // tracks again; at most kListPageTracks of them, so that oldest() may stay below what was asked
  // for. The list changes when committed() is called; until then no other release.
  [[nodiscard]] std::vector<Write> release(std::uint64_t oldest);
  void committed();
  // The tracks that the release under way frees: neither live nor planned until it is committed.
  [[nodiscard]] const std::vector<std::uint64_t>& released() const;
  // The writes failed: as if release() had not been called.
  void abandoned() { next_.reset(); }
  // The whole list, for one that is written for the first time: every block of it, first the pages,
  // then zeros, at least one block of them. Takes effect at once, without committed().
  [[nodiscard]] std::vector<Write> all_pages();

 private:
  struct Next {
    std::uint64_t oldest = 0;
    std::deque<std::uint64_t> tracks;
    std::map<std::uint64_t, std::uint32_t> slots;
    std::vector<std::uint64_t> freed{};
  };
  static constexpr std::uint64_t kHole = UINT64_MAX;
  static constexpr std::size_t kHolesMax = kListPageTracks;

  TrackList(std::uint64_t track_count, std::uint32_t slot_count)
      : track_count_(track_count), slot_count_(slot_count) {}
  [[nodiscard]] static std::uint64_t page_of(std::uint64_t allocation) {
    return (allocation - 1) / kListPageTracks;
  }
  void find_free_tracks();
  Write make_page(const Next& next, std::uint64_t page);
  static std::uint32_t free_slot(const std::map<std::uint64_t, std::uint32_t>& a,
                                 const std::map<std::uint64_t, std::uint32_t>& b,
                                 std::uint32_t slot_count);

  std::uint64_t track_count_;
  std::uint32_t slot_count_;
  std::uint64_t generation_ = 0;
  std::uint64_t oldest_ = 1;
  std::deque<std::uint64_t> tracks_;              // of the allocations from oldest_ on
  std::vector<std::uint64_t> free_;               // neither live nor planned
  std::map<std::uint64_t, std::uint32_t> slots_;  // where the newest of each page is
  std::optional<Next> next_;
};

}  // namespace mariner::logging
