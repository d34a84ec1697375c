#include "uvfs/logged_transaction.h"

#include <span>
#include <utility>

#include "proto/check.h"

namespace mariner::uvfs {
namespace {

using ifsck::FsBlock;
using ifsck::JournalBlock;
using ifsck::JournalCommit;
using ifsck::JournalHead;
using ifsck::JournalTag;
using Super = ifsck::JournalSuperblock;

class Look {
 public:
  Look(JournalRing& ring, const Super& super, const LogLook::Place& place, std::size_t block_bytes)
      : ring_(ring), super_(super), place_(place), bytes_(block_bytes) {
    begin();
  }

  Result<LogLook> run() {
    while (!ended_ && !look_.whole && position_ < place_.room) {
      if (const Result<void> done = step(); !done) return done.error();
    }
    look_.blocks = position_;
    return std::move(look_);
  }

 private:
  // A descriptor, and the copies that are behind it: [first, end).
  struct Section {
    JournalBlock descriptor = 0;
    std::size_t first = 0;
    std::size_t end = 0;
  };

  void begin() {
    transaction_ = {.first = at(position_), .sequence = place_.sequence};
    sections_.clear();
    checksums_.clear();
  }

  [[nodiscard]] JournalBlock at(std::uint32_t position) const {
    const std::uint64_t from = place_.first - super_.first + std::uint64_t{position};
    return super_.first + static_cast<JournalBlock>(from % (super_.log_end - super_.first));
  }

  Result<void> step() {
    const JournalBlock block = at(position_++);
    look_.heads.push_back(block);
    if (const auto read = ring_.read(block, bytes_); !read) return read;
    const JournalHead head = JournalHead::of(bytes_);
    ended_ = !head.is_one() || head.sequence != place_.sequence;
    if (ended_) return {};
    switch (head.kind) {
      case JournalHead::Kind::kDescriptor: take_descriptor(block); return {};
      case JournalHead::Kind::kRevoke: take_revocation(); return {};
      case JournalHead::Kind::kCommit: return take_commit();
      default: break;
    }
    ended_ = true;
    return {};
  }

  void take_descriptor(JournalBlock block) {
    doubtful_ = doubtful_ || !tail_is_right(super_, bytes_);
    const std::size_t first = transaction_.copies.size();
    for_each_tag(super_, bytes_, [&](const JournalTag& tag) {
      if (position_ == place_.room) return;
      transaction_.copies.push_back({tag.block, at(position_++), tag.escaped});
      checksums_.push_back(tag.checksum);
    });
    sections_.push_back({block, first, transaction_.copies.size()});
  }

  void take_revocation() {
    doubtful_ = doubtful_ || !tail_is_right(super_, bytes_);
    const bool good = for_each_revoked(
        super_, bytes_, [&](FsBlock block) { transaction_.revoked.push_back(block); });
    transaction_.damaged = transaction_.damaged || !good;
  }

  Result<void> take_commit() {
    const JournalCommit commit = JournalCommit::of(bytes_);
    const bool stale = commit.time_s < place_.last_time_s;
    if (doubtful_ || cut_) {
      look_.refused = doubtful_ && !stale;
      ended_ = true;
      return {};
    }
    const auto right = is_right(commit);
    if (!right) return right.error();
    if (*right) return finish(commit.time_s);
    look_.weighed = true;
    // Where commits do not wait for their data one more is looked for, which may be refused.
    cut_ = true;
    ended_ = stale || !super_.has(Super::kAsyncCommit);
    place_.last_time_s = commit.time_s;
    ++place_.sequence;
    begin();
    return {};
  }

  Result<bool> is_right(const JournalCommit& commit) {
    if (!commit_is_right(super_, bytes_)) return false;
    if ((super_.compatible & Super::kCompatChecksum) == 0) return true;
    std::uint32_t crc = ~0u;
    for (const Section& each : sections_) {
      if (const auto added = add_to(crc, each.descriptor); !added) return added.error();
      for (std::size_t i = each.first; i < each.end; ++i) {
        if (const auto added = add_to(crc, transaction_.copies[i].from); !added) {
          return added.error();
        }
      }
    }
    return transaction_is_right(commit, crc);
  }

  Result<void> add_to(std::uint32_t& crc, JournalBlock block) {
    if (const auto read = ring_.read(block, bytes_); !read) return read;
    crc = ifsck::crc32_be(crc, bytes_);
    return {};
  }

  Result<void> finish(std::uint64_t time_s) {
    for (std::size_t i = 0; super_.has_checksums() && i < checksums_.size(); ++i) {
      LoggedTransaction::Copy& copy = transaction_.copies[i];
      if (const auto read = ring_.read(copy.from, bytes_); !read) return read;
      copy.bad = !data_is_right(super_, transaction_.sequence, checksums_[i], bytes_);
    }
    transaction_.blocks = position_;
    transaction_.time_s = time_s;
    look_.whole = std::move(transaction_);
    return {};
  }

  JournalRing& ring_;
  const Super& super_;
  LogLook::Place place_;
  std::uint32_t position_ = 0;  // blocks behind the place
  std::vector<std::byte> bytes_;
  bool doubtful_ = false;  // a block of the transaction has a wrong checksum
  bool cut_ = false;       // a commit had one
  bool ended_ = false;
  LoggedTransaction transaction_;
  std::vector<Section> sections_;
  std::vector<std::uint32_t> checksums_;  // of its copies
  LogLook look_;
};

}  // namespace

Result<LogLook> LogLook::at(JournalRing& ring, const Super& super, const Place& place) {
  CHECK(place.first >= super.first && place.first < super.log_end);
  return Look(ring, super, place, ring.block_bytes()).run();
}

}  // namespace mariner::uvfs
