#include "ifsck/journal_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ifsck/journal_block.h"
#include "proto/check.h"

namespace mariner::ifsck {
namespace {

using Super = JournalSuperblock;

constexpr std::uint32_t kAheadBytesMin = 256u << 10;
constexpr std::uint32_t kAheadBytesMax = 8u << 20;

class Scan {
 public:
  Scan(View& view, const JournalFile& file, const Super& super)
      : view_(view),
        file_(file),
        super_(super),
        ring_(super.log_end - super.first),
        sums_transactions_((super.compatible & Super::kCompatChecksum) != 0),
        ahead_bytes_(kAheadBytesMin),
        bytes_(file.block_bytes()) {}

  Result<JournalLog> run() {
    while (!ended_ && taken_ < ring_) {
      if (const Result<void> done = step(); !done) return done.error();
    }
    log_.transactions = end_.value_or(transaction_);
    log_.cut = end_.has_value();
    std::erase_if(log_.writes, [this](const auto& each) { return !is_whole(each.transaction); });
    std::erase_if(revocations_, [this](const auto& each) { return !is_whole(each.transaction); });
    if (const Result<void> done = revoke(); !done) return done.error();
    return std::move(log_);
  }

 private:
  struct Revocations {
    JournalBlock at = 0;
    std::uint32_t transaction = 0;
  };

  [[nodiscard]] std::uint32_t sequence() const { return super_.sequence + transaction_; }
  [[nodiscard]] bool is_whole(std::uint32_t transaction) const {
    return transaction < log_.transactions;
  }
  [[nodiscard]] Error corrupt(std::uint32_t transaction, std::string_view what) const {
    return {ErrorCode::kCorrupt,
            fmt::format("the journal, transaction {}: {}", super_.sequence + transaction, what)};
  }

  // The block that is so many behind the log's first.
  [[nodiscard]] JournalBlock at(std::uint32_t position) const {
    const std::uint64_t from = super_.start - super_.first + std::uint64_t{position};
    return super_.first + static_cast<JournalBlock>(from % ring_);
  }

  Result<void> read_ahead() {
    if (taken_ < ahead_) return {};
    const std::uint32_t count = std::min(ahead_bytes_ / file_.block_bytes(), ring_ - taken_);
    ahead_ = taken_ + std::max(count, 1u);
    ahead_bytes_ = std::min(ahead_bytes_ * 2, kAheadBytesMax);
    std::vector<Lbn> blocks;
    for (std::uint32_t position = taken_; position < ahead_; ++position) {
      const BlockRange range = file_.bytes_of(at(position)).covering_blocks();
      for (Lbn lbn = range.first; lbn < range.end(); lbn = lbn + BlockCount{1}) {
        if (blocks.empty() || blocks.back() != lbn) blocks.push_back(lbn);
      }
    }
    return view_.prefetch(blocks);
  }

  // The next block of the log, into bytes_.
  Result<JournalBlock> take() {
    if (const Result<void> done = read_ahead(); !done) return done.error();
    const JournalBlock block = at(taken_);
    if (const auto read = view_.read(file_.bytes_of(block), bytes_); !read) return read.error();
    ++taken_;
    return block;
  }

  Result<void> step() {
    const auto block = take();
    if (!block) return block.error();
    const JournalHead head = JournalHead::of(bytes_);
    ended_ = !head.is_one() || head.sequence != sequence();
    if (ended_) return {};
    switch (head.kind) {
      case JournalHead::Kind::kDescriptor: return take_descriptor();
      case JournalHead::Kind::kCommit: return take_commit();
      case JournalHead::Kind::kRevoke:
        doubtful_ = doubtful_ || !tail_is_right(super_, bytes_);
        revocations_.push_back({*block, transaction_});
        return {};
      default: break;
    }
    ended_ = true;
    return {};
  }

  Result<void> take_descriptor() {
    doubtful_ = doubtful_ || !tail_is_right(super_, bytes_);
    const std::size_t before = log_.writes.size();
    std::uint32_t position = taken_;
    for_each_tag(super_, bytes_, [&](const JournalTag& tag) {
      if (position == ring_) return;
      log_.writes.push_back({tag.block, at(position++), transaction_, tag.checksum, tag.escaped});
    });
    if (!sums_transactions_ || end_) {
      taken_ = position;
      return {};
    }
    crc_ = crc32_be(crc_, bytes_);
    for (std::size_t i = before; i < log_.writes.size(); ++i) {
      if (const auto block = take(); !block) return block.error();
      crc_ = crc32_be(crc_, bytes_);
    }
    return {};
  }

  Result<void> take_commit() {
    const JournalCommit commit = JournalCommit::of(bytes_);
    // Left over from an earlier time: what was written before the log came round to it.
    const bool stale = commit.time_s < last_time_s_;
    if (doubtful_ && !stale) {
      return corrupt(transaction_, "a descriptor or a revocation has a wrong checksum");
    }
    if (doubtful_) {
      ended_ = true;
      return {};
    }
    // Only where commits need not wait for their data there can be one behind one that is wrong.
    if (end_) {
      ended_ = log_.damaged = true;
      return {};
    }
    const bool right = (!sums_transactions_ || transaction_is_right(commit, crc_)) &&
                       commit_is_right(super_, bytes_);
    if (!right && stale) {
      ended_ = true;
      return {};
    }
    if (!right) {
      end_ = transaction_;
      ended_ = log_.damaged = !super_.has(Super::kAsyncCommit);
    }
    crc_ = ~0u;
    last_time_s_ = commit.time_s;
    ++transaction_;
    return {};
  }

  // A revocation is of the writes to a block in its own transaction and in those before.
  Result<void> revoke() {
    if (revocations_.empty()) return {};
    struct Target {
      FsBlock block = 0;
      std::uint32_t until = 0;  // is revoked in transactions below
    };
    std::vector<Target> targets;
    for (const JournalLog::Write& each : log_.writes) targets.push_back({each.to});
    std::ranges::sort(targets, {}, &Target::block);
    const auto repeated = std::ranges::unique(targets, {}, &Target::block);
    targets.erase(repeated.begin(), repeated.end());
    const auto find = [&](FsBlock block) {
      return std::ranges::lower_bound(targets, block, {}, &Target::block);
    };
    for (const Revocations& each : revocations_) {
      if (const auto read = view_.read(file_.bytes_of(each.at), bytes_); !read) return read;
      const bool good = for_each_revoked(super_, bytes_, [&](FsBlock block) {
        const auto found = find(block);
        if (found != targets.end() && found->block == block) found->until = each.transaction + 1;
      });
      if (!good)
        return corrupt(each.transaction, "a revocation names more blocks than it has room for");
    }
    log_.revoked = std::erase_if(log_.writes, [&](const JournalLog::Write& each) {
      return each.transaction < find(each.to)->until;
    });
    return {};
  }

  View& view_;
  const JournalFile& file_;
  const Super& super_;
  const std::uint32_t ring_;  // blocks of the log
  const bool sums_transactions_;
  std::uint32_t ahead_bytes_;
  std::uint32_t taken_ = 0;  // blocks of the log, from its first one on
  std::uint32_t ahead_ = 0;  // ... that were asked for
  std::vector<std::byte> bytes_;

  std::uint32_t transaction_ = 0;  // whose end has not been seen
  bool doubtful_ = false;          // a block of it has a wrong checksum
  std::uint32_t crc_ = ~0u;
  std::uint64_t last_time_s_ = 0;
  std::optional<std::uint32_t> end_;  // the first with a wrong checksum
  bool ended_ = false;
  std::vector<Revocations> revocations_;
  JournalLog log_;
};

}  // namespace

Result<JournalLog> JournalLog::read(View& view, const JournalFile& file, const Super& super) {
  CHECK(super.start != 0 && super.blocks <= file.blocks());
  return Scan(view, file, super).run();
}

}  // namespace mariner::ifsck
