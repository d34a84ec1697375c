// How far an image has got with its backlog, as the next start is to find it: without it, what a
// rollback changed would be restored from the beginning after each crash.
//
// It is one statement: below `through`, the image durably holds of every block what that held at
// `as_of` or at a moment behind it, but for those that are `left`. At and behind `through` it says
// nothing. A statement that was true stays true while the image is only written to; so it may be
// kept late, or be lost in favour of one that was kept before: that costs work, and nothing else.
//
// What is kept changes with what changes here, not with what there is to fetch: `through` goes as
// far as somebody is about to fetch, and pages of which nothing is left are not kept. Owner's
// thread only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "proto/units.h"
#include "server/volume/base_map.h"
#include "server/volume/block_set.h"

namespace mariner::volume {

class Headway {
 public:
  // With something left: 8 MiB in all. Where there would be more, `through` stays behind.
  static constexpr std::size_t kPagesMax = 16384;
  using Page = BaseMap::Page;  // of blocks that are left

  struct Statement {
    SequenceNumber as_of;  // 0: nothing is said
    Lbn through;
    std::uint64_t restored_bytes_all = 0;  // what rollbacks changed: done and left
  };
  struct Kept {
    Statement statement;
    std::vector<Page> left;
  };
  // What is to be kept from now on, in one step.
  struct Change {
    Statement statement;
    std::vector<Page> pages;  // that are another by now; one without bits goes
    bool anew = false;        // first all that was kept goes
  };

  Headway() = default;
  // What was kept; each page has its length.
  explicit Headway(const Kept& kept);

  // What an image lacks, when writes and rollbacks behind its frontier may have changed
  // `since_frontier`, and those behind as_of() `since_then`.
  [[nodiscard]] std::vector<BlockRange> lacking(const std::vector<BlockRange>& since_frontier,
                                                const std::vector<BlockRange>& since_then) const;

  [[nodiscard]] SequenceNumber as_of() const { return statement_.as_of; }
  [[nodiscard]] Lbn through() const { return statement_.through; }
  [[nodiscard]] std::uint64_t restored_bytes_all() const { return statement_.restored_bytes_all; }

  // As many pages have something left as may.
  [[nodiscard]] bool full() const { return left_.size() >= kPagesMax; }

  // Never back. Whoever calls it says right behind it what is left of what that adds.
  void reach(Lbn through);
  void lacks(BlockRange range);
  // The image durably has it, as of what the next statement will be of.
  void has(BlockRange range);
  // Nothing is said any more.
  void forget();

  // What it takes to keep the statement as of `as_of`, or of a later moment if that was kept
  // before; nothing: it is kept.
  [[nodiscard]] std::optional<Change> take_change(SequenceNumber as_of,
                                                  std::uint64_t restored_bytes_all);
  // The last one was not kept.
  void keep_anew() { anew_ = true; }

 private:
  void shrink();

  Statement statement_;
  std::map<std::uint64_t, BlockSet::Bits> left_;  // below `through`; none is empty
  Statement kept_;
  std::set<std::uint64_t> changed_;  // pages, since then
  bool anew_ = false;
};

}  // namespace mariner::volume
