#include "uvfs/journal_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "proto/check.h"

namespace mariner::uvfs {

using ifsck::JournalBlock;
using ifsck::Past;
using Super = ifsck::JournalSuperblock;

namespace {

// Whether a journal that both have is in the same place.
bool has_same_place(const ext2_super_block& one, const ext2_super_block& other) {
  if (one.s_log_block_size != other.s_log_block_size ||
      one.s_journal_inum != other.s_journal_inum) {
    return false;
  }
  // (What the journal's inode says is there, too.)
  if (one.s_jnl_backup_type != EXT3_JNL_BACKUP_BLOCKS ||
      other.s_jnl_backup_type != EXT3_JNL_BACKUP_BLOCKS) {
    return true;
  }
  return std::ranges::equal(one.s_jnl_blocks, other.s_jnl_blocks);
}

// Whether all is the same but where the log begins.
bool is_like(const Super& one, const Super& other) {
  return one.blocks == other.blocks && one.first == other.first && one.log_end == other.log_end &&
         one.compatible == other.compatible && one.incompatible == other.incompatible &&
         one.seed == other.seed;
}

}  // namespace

JournalWalk::JournalWalk(Past& past, const Journal& journal, const Stretch& stretch,
                         const Options& options, CopyStore* copies)
    : past_(past),
      journal_(journal),
      stretch_(stretch),
      options_(options),
      copies_(copies),
      ring_(past, journal.file, stretch.first, options.ring) {}

Result<ReplayHistory> JournalWalk::run(Past& past, const Journal& journal, const Stretch& stretch,
                                       const Options& options, CopyStore* copies) {
  CHECK(stretch.first <= stretch.last);
  if (journal.file.blocks() > options.journal_blocks_max) {
    return Error{ErrorCode::kLimit, fmt::format("the journal has {} blocks, and may have {}: "
                                                "e2fsck may help",
                                                journal.file.blocks(), options.journal_blocks_max)};
  }
  return JournalWalk(past, journal, stretch, options, copies).walk();
}

Error JournalWalk::limit(std::string_view what, std::uint64_t max) const {
  return {ErrorCode::kLimit,
          fmt::format("the journal between the writes {} and {} has more than {} {}: look at a "
                      "shorter stretch of time",
                      stretch_.first.value, stretch_.last.value, max, what)};
}

Result<void> JournalWalk::check_limits() const {
  if (transactions_ > options_.transactions_max) {
    return limit("transactions", options_.transactions_max);
  }
  if (history_.changes() > options_.changes_max) {
    return limit("blocks in transactions", options_.changes_max);
  }
  if (ring_.looks() > options_.looks_max) return limit("blocks to look at", options_.looks_max);
  return {};
}

Result<ReplayHistory> JournalWalk::walk() {
  if (const auto found = find_writes(); !found) return found.error();
  if (const auto found = find_breaks(); !found) return found.error();
  if (const auto begun = begin(); !begun) return begun.error();
  for (auto some = some_writes(0); !some.empty();) {
    if (const auto fetched = ring_.fetch(some); !fetched) return fetched.error();
    const auto next =
        some_writes(static_cast<std::size_t>(some.data() - writes_.data()) + some.size());
    ring_.expect(next);
    if (const auto walked = walk_some(some); !walked) return walked.error();
    some = next;
  }
  if (const auto passed = pass_breaks(stretch_.last.next()); !passed) return passed.error();
  history_.finish();
  if (copies_ != nullptr) copies_->finish();
  return std::move(history_);
}

// As many as are fetched at once; the blocks of one write come together.
std::span<const Past::Version> JournalWalk::some_writes(std::size_t from) const {
  std::size_t end = std::min(from + options_.fetched_at_once, writes_.size());
  while (end > from && end < writes_.size() && writes_[end].sequence == writes_[end - 1].sequence) {
    ++end;
  }
  return std::span(writes_).subspan(from, end - from);
}

// Some moments at a time: all that there are may be more than memory holds, and more than may be.
Result<void> JournalWalk::find_writes() {
  constexpr std::uint64_t kTimesMax = 16;
  std::uint64_t times = 1;
  for (SequenceNumber from = stretch_.first; from < stretch_.last;) {
    const std::uint64_t left = stretch_.last.value - from.value;
    const SequenceNumber to{from.value + std::min(times * options_.moments_at_once, left)};
    const auto writes = past_.versions(ring_.places(), from, to);
    if (!writes) return writes.error();
    if (writes_.size() + writes->size() > options_.writes_max) {
      return limit("writes to it", options_.writes_max);
    }
    writes_.insert(writes_.end(), writes->begin(), writes->end());
    if (writes->size() < options_.writes_max / 16) times = std::min(4 * times, kTimesMax);
    if (writes->size() > options_.writes_max / 4) times = std::max<std::uint64_t>(times / 4, 1);
    from = to;
  }
  std::ranges::sort(writes_, {}, [](const auto& each) {
    return std::pair{each.sequence, each.block};
  });
  return {};
}

Result<void> JournalWalk::find_breaks() {
  for (SequenceNumber from = stretch_.first; from < stretch_.last;) {
    const auto found = past_.first_break(from, stretch_.last);
    if (!found) return found.error();
    if (found->value == 0) return {};
    if (breaks_.size() == options_.breaks_max) return limit("breaks", options_.breaks_max);
    const auto time = past_.time_of(*found);
    if (!time) return time.error();
    breaks_.push_back({*found, *time});
    from = *found;
  }
  return {};
}

Result<void> JournalWalk::walk_some(std::span<const Past::Version> writes) {
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (i > 0 && writes[i].sequence == writes[i - 1].sequence) continue;
    if (const auto passed = pass_breaks(writes[i].sequence); !passed) return passed;
    const ReplayHistory::Moment moment{writes[i].sequence, writes[i].time};
    const bool breaks = broken_ < breaks_.size() && breaks_[broken_].at == moment.at;
    const auto done = breaks ? pass_breaks(moment.at.next()) : write(moment);
    if (!done) return done;
    if (const auto within = check_limits(); !within) return within;
  }
  return {};
}

Result<void> JournalWalk::pass_breaks(SequenceNumber end) {
  for (; broken_ < breaks_.size() && breaks_[broken_].at < end; ++broken_) {
    if (const auto done = break_off(breaks_[broken_]); !done) return done;
    if (const auto within = check_limits(); !within) return within;
  }
  return {};
}

Result<void> JournalWalk::begin() {
  const auto time = past_.time_of(stretch_.first);
  if (!time) return time.error();
  history_.move_to({stretch_.first, *time});
  return restart();
}

Result<void> JournalWalk::break_off(const ReplayHistory::Moment& moment) {
  history_.move_to(moment);
  (void)ring_.move_to(moment.at);
  ring_.forget();
  history_.touch_all();
  return restart();
}

Result<void> JournalWalk::restart() {
  clear();
  const auto file_system = take_file_system();
  if (!file_system) return file_system.error();
  const auto super = take_superblock();
  if (!super) return super.error();
  return extend();
}

Result<void> JournalWalk::write(const ReplayHistory::Moment& moment) {
  history_.move_to(moment);
  const JournalRing::Touched touched = ring_.move_to(moment.at);
  if (touched.file_system) {
    const auto anew = take_file_system();
    if (!anew) return anew.error();
    if (*anew) return restart();
  }
  if (!touched.blocks.empty() && touched.blocks.front() == 0) {
    const auto anew = take_superblock();
    if (!anew) return anew.error();
    if (*anew) return restart();
  }
  return take_blocks(touched.blocks);
}

Result<bool> JournalWalk::take_file_system() {
  std::array<std::byte, sizeof(ext2_super_block)> bytes{};
  if (const auto read = ring_.read_file_system(bytes); !read) return read.error();
  auto super = std::bit_cast<ext2_super_block>(bytes);
  FileSystem next;
  next.replays = super.s_magic == EXT2_SUPER_MAGIC &&
                 ext2fs_has_feature_journal_needs_recovery(&super) &&
                 ext2fs_has_feature_journal(&super) && has_same_place(super, journal_.file_system);
  // (Of what says nothing that can be believed nothing is replayed.)
  next.blocks = next.replays ? ext2fs_blocks_count(&super) : file_system_.blocks;
  const bool anew = next.blocks != file_system_.blocks;
  file_system_ = next;
  return anew;
}

Result<bool> JournalWalk::take_superblock() {
  std::array<std::byte, Super::kBytes> bytes{};
  if (const auto read = ring_.read(0, bytes); !read) return read.error();
  const auto parsed = Super::parse(bytes, journal_.file.block_bytes(), journal_.file.blocks());
  std::optional<Super> next;
  if (parsed) next = *parsed;
  if (next && journal_.seed != 0 && next->seed != 0 && next->seed != journal_.seed) next.reset();
  if (next && super_ && is_like(*next, *super_) && move_tail(*next)) {
    super_ = next;
    return false;
  }
  clear();
  super_ = next;
  if (super_) from_ = super_->start;
  return true;
}

// False: the log is not one that begins there.
bool JournalWalk::move_tail(const Super& next) {
  if (next.start == 0 || super_->start == 0) return false;
  const std::uint32_t offset = offset_of(next.start);
  std::size_t popped = log_.size();
  if (offset < length()) {
    popped = index_of(offset);
    const LoggedTransaction& first = log_[popped].transaction;
    if (first.first != next.start || first.sequence != next.sequence) return false;
  } else if (offset != length() || next.sequence != next_sequence()) {
    return false;
  }
  while (popped-- > 0) pop_front();
  return true;
}

Result<void> JournalWalk::take_blocks(std::span<const JournalBlock> blocks) {
  bool more = !blocks.empty() && blocks.front() == 0;
  if (super_ && super_->start != 0) {
    std::size_t kept = log_.size();
    for (const JournalBlock each : blocks) {
      if (each < super_->first || each >= super_->log_end) continue;
      const std::uint32_t offset = offset_of(each);
      if (offset < length()) {
        kept = std::min(kept, index_of(offset));
      } else {
        more = more || is_awaited(each);
      }
    }
    more = more || kept < log_.size();
    while (log_.size() > kept) pop_back();
  }
  if (more) return extend();
  history_.set_active(is_replayed());
  return {};
}

std::uint32_t JournalWalk::length() const {
  if (log_.empty()) return 0;
  const Entry& last = log_.back();
  return static_cast<std::uint32_t>(last.begin - log_.front().begin) + last.transaction.blocks;
}

std::uint32_t JournalWalk::next_sequence() const {
  return log_.empty() ? super_->sequence : log_.back().transaction.sequence + 1;
}

std::uint32_t JournalWalk::offset_of(JournalBlock block) const {
  const std::uint64_t ring = ring_blocks();
  return static_cast<std::uint32_t>((block + ring - from_) % ring);
}

std::size_t JournalWalk::index_of(std::uint32_t offset) const {
  const std::uint64_t at = log_.front().begin + offset;
  const auto after = std::ranges::upper_bound(log_, at, {}, &Entry::begin);
  return static_cast<std::size_t>(after - log_.begin()) - 1;
}

bool JournalWalk::is_awaited(JournalBlock block) const {
  if (end_.weighed && offset_of(block) - length() < end_.blocks) return true;
  return std::ranges::find(end_.heads, block) != end_.heads.end();
}

void JournalWalk::pop_front() {
  const Entry entry = std::move(log_.front());
  log_.pop_front();
  history_.pop_front(entry.transaction);
  const std::uint64_t next = from_ - super_->first + std::uint64_t{entry.transaction.blocks};
  from_ = super_->first + static_cast<JournalBlock>(next % ring_blocks());
  damaged_ -= entry.transaction.damaged ? 1 : 0;
  std::erase_if(bad_, [&](const Bad& each) { return each.ordinal == entry.ordinal; });
}

void JournalWalk::pop_back() {
  const Entry entry = std::move(log_.back());
  log_.pop_back();
  history_.pop_back(entry.transaction);
  damaged_ -= entry.transaction.damaged ? 1 : 0;
  std::erase_if(bad_, [&](const Bad& each) { return each.ordinal == entry.ordinal; });
}

void JournalWalk::clear() {
  while (!log_.empty()) pop_front();
  end_ = {};
}

Result<void> JournalWalk::extend() {
  end_ = {};
  while (super_ && super_->start != 0) {
    const std::uint32_t room = ring_blocks() - length();
    const std::uint64_t next = from_ - super_->first + std::uint64_t{length()};
    auto look =
        LogLook::at(ring_, *super_,
                    {.first = super_->first + static_cast<JournalBlock>(next % ring_blocks()),
                     .room = room,
                     .sequence = next_sequence(),
                     .last_time_s = log_.empty() ? 0 : log_.back().transaction.time_s});
    if (!look) return look.error();
    if (!look->whole) {
      end_ = std::move(*look);
      break;
    }
    if (const auto pushed = push_back(std::move(*look->whole)); !pushed) return pushed;
    if (const auto within = check_limits(); !within) return within;
  }
  history_.set_active(is_replayed());
  return {};
}

// (They are in memory, mostly: they have come with the writes that made the transaction whole.)
Result<void> JournalWalk::keep_copies(const LoggedTransaction& transaction) {
  if (copies_ == nullptr) return {};
  copy_.resize(ring_.block_bytes());
  for (const LoggedTransaction::Copy& each : transaction.copies) {
    if (const auto read = ring_.read(each.from, copy_); !read) return read;
    copies_->put(each.from, ring_.at(), each.to, copy_);
  }
  return {};
}

Result<void> JournalWalk::push_back(LoggedTransaction transaction) {
  if (const auto kept = keep_copies(transaction); !kept) return kept;
  ++transactions_;
  Entry entry;
  if (!log_.empty()) entry.begin = log_.back().begin + log_.back().transaction.blocks;
  entry.ordinal = history_.push_back(transaction);
  for (const auto& each : transaction.copies) {
    const bool misplaced = each.to >= file_system_.blocks || journal_.file.has(each.to);
    if (each.bad || misplaced) bad_.push_back({each.to, entry.ordinal});
  }
  damaged_ += transaction.damaged ? 1 : 0;
  entry.transaction = std::move(transaction);
  log_.push_back(std::move(entry));
  return {};
}

bool JournalWalk::is_replayed() const {
  if (!file_system_.replays || !super_ || super_->start == 0) return false;
  if (end_.refused || damaged_ > 0) return false;
  return std::ranges::all_of(
      bad_, [this](const Bad& each) { return history_.is_revoked(each.to, each.ordinal); });
}

}  // namespace mariner::uvfs
