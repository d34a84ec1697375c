#include "ifsck/clean_search.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "ifsck/journal_file.h"
#include "ifsck/moment.h"
#include "ifsck/volume_ranges.h"

namespace mariner::ifsck {
namespace {

// Writes that are looked through at a time: at first, and at most.
constexpr std::uint64_t kStretch = 4096;
constexpr std::uint64_t kStretchMax = 64 * 1024;
// The file system rests: what was under way is done.
constexpr std::uint64_t kPauseNs = 200'000'000;

struct Write {
  VersionTime time;
  std::vector<Lbn> blocks;
};
using Writes = std::map<SequenceNumber, Write>;

class CleanSearcher {
 public:
  CleanSearcher(Past& past, KnownStates& states, const CleanSearch::Options& options)
      : past_(past), states_(states), options_(options) {}

  Result<CleanSearch> run(SequenceNumber before) {
    const auto reach = past_.reach();
    if (!reach) return reach.error();
    auto clean = look(before);
    if (!clean) return clean.error();
    if (*clean) search_.found = before;
    position_ = before;
    for (std::uint64_t stretch = kStretch; !search_.found && position_ > reach->oldest;
         stretch = std::min(2 * stretch, kStretchMax)) {
      const SequenceNumber from{position_.value -
                                std::min(stretch, position_.value - reach->oldest.value)};
      const auto writes = find_writes(from, position_);
      if (!writes) return writes.error();
      const auto resting = find_resting(*writes);
      if (!resting) return resting.error();
      search_.found = *resting;
      const auto done = walk(*writes, resting->value_or(from));
      if (!done) return done.error();
      if (!may_look()) break;
    }
    return std::move(search_);
  }

 private:
  [[nodiscard]] bool may_look() const { return search_.looks < options_.looks_max; }

  // A file system that is not there (any more) is not clean.
  Result<bool> look(SequenceNumber at) {
    Overlay overlay;
    // (The first one is mended, so that the others begin there.)
    auto report =
        check_moment(past_, at, states_, overlay,
                     {.level = options_.level, .mend = search_.looks == 0, .findings_max = 0});
    ++search_.looks;
    search_.oldest = search_.looks == 1 ? at : std::min(search_.oldest, at);
    if (!report) {
      const ErrorCode code = report.error().code;
      const bool none = code == ErrorCode::kNotFound || code == ErrorCode::kCorrupt;
      if (none && search_.looks > 1) return false;
      return report.error();
    }
    if (options_.looked) options_.looked(*report);
    last_ = std::move(*report);
    return last_.verdict == Verdict::kClean;
  }

  Result<std::optional<SequenceNumber>> find_resting(const Writes& writes) {
    VersionTime after{};
    for (auto each = writes.rbegin(); each != writes.rend() && may_look(); ++each) {
      const auto& [at, write] = *each;
      if (after.ns >= write.time.ns + kPauseNs) {
        const auto clean = look(at);
        if (!clean) return clean.error();
        if (*clean) return std::optional(at);
      }
      after = write.time;
    }
    return std::optional<SequenceNumber>();
  }

  // Down to `end`.
  Result<void> walk(const Writes& writes, SequenceNumber end) {
    if (!may_look()) {
      search_.some_skipped = search_.found.has_value();
      return {};
    }
    // (What was looked at meanwhile is elsewhere.)
    if (const auto here = look(position_); !here) return here.error();
    Owners owners(past_, last_);
    for (auto each = writes.rbegin(); each != writes.rend() && each->first > end; ++each) {
      if (!owners.has_one_of(each->second.blocks)) continue;
      const SequenceNumber at{each->first.value - 1};
      if (at <= end && search_.found) break;
      if (!may_look()) {
        search_.some_skipped = search_.found.has_value();
        return {};
      }
      const auto clean = look(at);
      if (!clean) return clean.error();
      if (*clean) {
        search_.found = at;
        return {};
      }
      owners = Owners(past_, last_);
    }
    position_ = end;
    return {};
  }

  // Blocks that say what the file system is like, at a moment.
  class Owners {
   public:
    Owners(Past& past, const MomentReport& report) : known_(report.known), change_(report.change) {
      overlay_ = std::make_unique<Overlay>();
      moment_ = std::make_unique<Moment>(past, report.at, *overlay_);
      // (Where there is nothing to be opened, every write may have done it; and where nothing is
      // known.)
      opened_ = known_ != nullptr && moment_->open().has_value();
      if (!opened_ || !ext2fs_has_feature_journal(moment_->context().fs->super)) return;
      auto file = JournalFile::open(moment_->context().volume, moment_->context().layout);
      if (file) journal_.emplace(std::move(*file));
    }
    [[nodiscard]] bool has_one_of(const std::vector<Lbn>& blocks) const {
      return std::ranges::any_of(blocks, [&](Lbn lbn) { return has(lbn); });
    }

   private:
    [[nodiscard]] bool has(Lbn lbn) const {
      if (!opened_) return true;
      const auto [first, end] = moment_->context().layout.within({lbn, BlockCount{1}});
      for (FsBlock block = first; block < end; ++block) {
        if (has_block(block)) return true;
      }
      return false;
    }
    [[nodiscard]] bool has_block(FsBlock block) const {
      return moment_->context().layout.place_of(block).kind != ExtLayout::Kind::kData ||
             (journal_ && journal_->has(block)) || change_.owned.contains(block) ||
             (known_ != nullptr && known_->baseline.owners.find(block) != nullptr &&
              !change_.disowned.contains(block));
    }

    std::shared_ptr<const KeptBaseline> known_;
    BaselineChange change_;
    std::unique_ptr<Overlay> overlay_;
    std::unique_ptr<Moment> moment_;
    bool opened_ = false;
    std::optional<JournalFile> journal_;
  };

  Result<Writes> find_writes(SequenceNumber from, SequenceNumber to) {
    Writes writes;
    const auto changed = past_.changed(from, to);
    if (!changed) return changed.error();
    std::vector<Lbn> blocks;
    for_each_block(*changed, [&](Lbn lbn) { blocks.push_back(lbn); });
    const auto versions = past_.versions(blocks, from, to);
    if (!versions) return versions.error();
    for (const Past::Version& each : *versions) {
      Write& write = writes[each.sequence];
      write.time = each.time;
      write.blocks.push_back(each.block);
    }
    return writes;
  }

  Past& past_;
  KnownStates& states_;
  const CleanSearch::Options& options_;
  CleanSearch search_;
  MomentReport last_;        // of look()
  SequenceNumber position_;  // newer ones are not clean
};

}  // namespace

Result<CleanSearch> CleanSearch::run(Past& past, SequenceNumber before, KnownStates& states,
                                     const Options& options) {
  return CleanSearcher(past, states, options).run(before);
}

}  // namespace mariner::ifsck
