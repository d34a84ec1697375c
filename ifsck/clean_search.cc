#include "ifsck/clean_search.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "ifsck/journal_file.h"
#include "ifsck/moment.h"

namespace mariner::ifsck {
namespace {

// Writes that are looked through at a time, at first; then twice as many each time.
constexpr std::uint64_t kStretch = 4096;
// The file system rests: what was under way is done.
constexpr std::uint64_t kPauseNs = 200'000'000;

// A moment that a write to what matters follows.
struct Candidate {
  SequenceNumber at;
  std::uint64_t pause_ns = 0;  // between the one before and that write
};

class Searcher {
 public:
  Searcher(Past& past, KnownStates& states, const CleanSearch::Options& options)
      : past_(past), states_(states), options_(options) {}

  Result<CleanSearch> run(SequenceNumber before) {
    const auto reach = past_.reach();
    if (!reach) return reach.error();
    const auto clean = look(before);
    if (!clean) return clean.error();
    if (*clean) return found(before);
    SequenceNumber to = before;
    for (std::uint64_t stretch = kStretch; to > reach->oldest && may_look(); stretch *= 2) {
      const SequenceNumber from{to.value - std::min(stretch, to.value - reach->oldest.value)};
      auto candidates = find_candidates(from, to);
      if (!candidates) return candidates.error();
      const auto done = search(*candidates);
      if (!done) return done.error();
      if (*done) return std::move(search_);
      to = from;
    }
    return std::move(search_);
  }

 private:
  [[nodiscard]] bool may_look() const { return search_.looks < options_.looks_max; }

  CleanSearch found(SequenceNumber at) {
    search_.found = at;
    return std::move(search_);
  }

  // A file system that is not there (any more) is not clean.
  Result<bool> look(SequenceNumber at) {
    Overlay overlay;
    const auto report = check_moment(past_, at, states_, overlay,
                                     {.level = options_.level, .mend = false, .findings_max = 0});
    ++search_.looks;
    search_.oldest = search_.looks == 1 ? at : std::min(search_.oldest, at);
    if (!report) {
      const ErrorCode code = report.error().code;
      const bool none = code == ErrorCode::kNotFound || code == ErrorCode::kCorrupt;
      if (none && search_.looks > 1) return false;
      return report.error();
    }
    if (options_.looked) options_.looked(*report);
    return report->verdict == Verdict::kClean;
  }

  // Newest first.
  Result<bool> search(const std::vector<Candidate>& candidates) {
    std::map<SequenceNumber, bool> known;
    std::size_t end = candidates.size();  // the ones from here on are older than an answer
    std::optional<SequenceNumber> answer;
    for (std::size_t i = 0; i < candidates.size() && may_look(); ++i) {
      if (candidates[i].pause_ns < kPauseNs) continue;
      const auto clean = look(candidates[i].at);
      if (!clean) return clean.error();
      known[candidates[i].at] = *clean;
      if (*clean) {
        answer = candidates[i].at;
        end = i;
        break;
      }
    }
    for (std::size_t i = 0; i < end; ++i) {
      if (known.contains(candidates[i].at)) continue;
      if (!may_look()) {
        search_.some_skipped = true;
        break;
      }
      const auto clean = look(candidates[i].at);
      if (!clean) return clean.error();
      if (*clean) {
        answer = candidates[i].at;
        break;
      }
    }
    search_.found = answer;
    return answer.has_value();
  }

  Result<std::vector<Candidate>> find_candidates(SequenceNumber from, SequenceNumber to) {
    std::vector<Candidate> all;
    const auto blocks = blocks_that_matter(from, to);
    if (!blocks) return blocks.error();
    const auto versions = past_.versions(*blocks, from, to);
    if (!versions) return versions.error();
    std::map<SequenceNumber, VersionTime> writes;
    for (const Past::Version& each : *versions) writes[each.sequence] = each.time;
    VersionTime before{};
    for (const auto& [sequence, time] : writes) {
      all.push_back({SequenceNumber{sequence.value - 1},
                     before.ns == 0 ? kPauseNs : time.ns - std::min(time.ns, before.ns)});
      before = time;
    }
    std::ranges::reverse(all);
    return all;
  }

  Result<std::vector<Lbn>> blocks_that_matter(SequenceNumber from, SequenceNumber to) {
    std::vector<Lbn> blocks;
    const auto changed = past_.changed(from, to);
    if (!changed) return changed.error();
    Overlay none;
    Moment moment(past_, to, none);
    // (Where there is nothing to be opened, every write may have done it.)
    const bool opened = moment.open().has_value();
    const auto known = states_.nearest(to, {}, SequenceNumber{~0ULL});
    std::optional<JournalFile> journal;
    if (opened && ext2fs_has_feature_journal(moment.context().fs->super)) {
      if (auto file = JournalFile::open(moment.context().volume, moment.context().layout)) {
        journal.emplace(std::move(*file));
      }
    }
    const auto matters = [&](FsBlock block) {
      return moment.context().layout.place_of(block).kind != ExtLayout::Kind::kData ||
             (known != nullptr && known->baseline.owners.contains(block)) ||
             (journal && journal->has(block));
    };
    for (const BlockRange& range : *changed) {
      for (Lbn lbn = range.first; lbn < range.end(); lbn = lbn + BlockCount{1}) {
        if (opened) {
          const auto [first, end] = moment.context().layout.within({lbn, BlockCount{1}});
          FsBlock block = first;
          while (block < end && !matters(block)) ++block;
          if (block == end) continue;
        }
        blocks.push_back(lbn);
      }
    }
    return blocks;
  }

  Past& past_;
  KnownStates& states_;
  const CleanSearch::Options& options_;
  CleanSearch search_;
};

}  // namespace

Result<CleanSearch> CleanSearch::run(Past& past, SequenceNumber before, KnownStates& states,
                                     const Options& options) {
  return Searcher(past, states, options).run(before);
}

}  // namespace mariner::ifsck
