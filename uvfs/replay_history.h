// Which blocks of a file system a journal's replay would write, and from where, at every moment of
// a stretch of history.
//
// It is told, moment by moment, which transactions come to the log and leave it; afterwards it is
// asked. What a log says of a block is the newest copy in it, if no revocation is in the same
// transaction or a later one. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "ifsck/ext_layout.h"
#include "ifsck/journal_superblock.h"
#include "proto/units.h"
#include "uvfs/logged_transaction.h"

namespace mariner::uvfs {

class ReplayHistory {
 public:
  struct Copy {
    ifsck::JournalBlock from = 0;
    bool escaped = false;
    friend bool operator==(const Copy&, const Copy&) = default;
  };
  // A write of the volume.
  struct Moment {
    SequenceNumber at;
    VersionTime time;
    friend bool operator==(const Moment&, const Moment&) = default;
  };
  // The place of a transaction among those that were ever in the log: from the front to the back of
  // the log one after another.
  using Ordinal = std::uint64_t;

  // What is told, of ascending moments; the first one is where the stretch begins.
  void move_to(const Moment& moment);
  Ordinal push_back(const LoggedTransaction& transaction);
  void pop_front(const LoggedTransaction& transaction);
  // The last that was pushed and is there.
  void pop_back(const LoggedTransaction& transaction);
  // Whether a replay would write what the log says; and from now on, not before.
  void set_active(bool active);
  // All copies in the log may have other bytes.
  void touch_all();
  [[nodiscard]] bool is_revoked(ifsck::FsBlock block, Ordinal transaction) const;
  // No more is told: what only that needs is thrown away.
  void finish();
  // Times that a block has got another copy, or none.
  [[nodiscard]] std::uint64_t changes() const { return order_.size(); }

  // What is asked, of moments from the first one on. Nothing: the block is as it stands.
  [[nodiscard]] std::optional<Copy> copy_of(ifsck::FsBlock block, SequenceNumber at) const;
  // When, in (from, to], a block may have changed by what the log says: ascending, each once.
  [[nodiscard]] std::vector<Moment> changes_of(ifsck::FsBlock block, SequenceNumber from,
                                               SequenceNumber to) const;
  // Which may have: in any order, maybe repeated.
  [[nodiscard]] std::vector<ifsck::FsBlock> changed(SequenceNumber from, SequenceNumber to) const;

 private:
  using MomentIndex = std::uint32_t;
  // From a moment on.
  struct Change {
    MomentIndex moment = 0;
    ifsck::JournalBlock from = 0;  // 0, the journal's superblock: there is no copy
    bool escaped = false;
  };
  struct Logged {
    Ordinal transaction = 0;
    Copy copy;
  };
  struct Block {
    std::vector<Change> changes;
    // In the log, or older than its front.
    std::vector<Logged> copies;
    std::vector<Ordinal> revoked;
  };
  struct Switch {
    MomentIndex moment = 0;
    bool active = false;
  };

  MomentIndex now();
  // Of the first moment behind `at`.
  [[nodiscard]] MomentIndex index_behind(SequenceNumber at) const;
  void note(ifsck::FsBlock number, Block& block);
  void note_all(const LoggedTransaction& transaction);
  [[nodiscard]] const Change* change_before(const Block& block, MomentIndex end) const;
  [[nodiscard]] bool is_active(MomentIndex end) const;
  // Indexes of [begin, end).
  [[nodiscard]] std::span<const Switch> switches(MomentIndex begin, MomentIndex end) const;

  std::vector<Moment> moments_;  // at which something has changed
  std::unordered_map<ifsck::FsBlock, Block> blocks_;
  std::vector<std::pair<MomentIndex, ifsck::FsBlock>> order_;  // all changes
  std::vector<Switch> switches_;

  Moment now_;
  bool now_is_kept_ = false;  // in moments_
  Ordinal front_ = 0;         // of the log
  Ordinal next_ = 0;
};

}  // namespace mariner::uvfs
