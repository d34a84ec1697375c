#include "server/volume/kept_judge.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "index/stored_index.h"

namespace mariner::volume {

using index::KeptMoment;
using index::KeptRun;
using index::LocatedRun;

namespace {

SequenceNumber number_of(const KeptMoment& kept) { return kept.moment.sequence; }

BlockRange blocks_of(const LocatedRun& run) { return run.range; }
BlockRange blocks_of(const NextBase& base) { return base.run.range; }

// Which of `runs` each block of `range` is of.
template <typename Run>
std::vector<const Run*> by_block(BlockRange range, std::span<const Run> runs) {
  std::vector<const Run*> out(range.count.value, nullptr);
  for (const Run& run : runs) {
    const BlockRange part = blocks_of(run).intersect(range);
    std::fill_n(out.begin() + static_cast<std::ptrdiff_t>((part.first - range.first).value),
                part.count.value, &run);
  }
  return out;
}

// What is alike and stands side by side is one.
void merge(std::vector<KeptShown>& shown) {
  std::ranges::sort(shown, {}, [](const KeptShown& each) {
    return std::tuple(each.from, each.through, each.zeros, each.range.first);
  });
  std::size_t kept = 0;
  for (const KeptShown& each : shown) {
    if (kept > 0) {
      KeptShown& last = shown[kept - 1];
      if (last.range.end() == each.range.first && last.from == each.from &&
          last.through == each.through && last.zeros == each.zeros) {
        last.range.count = last.range.count + each.range.count;
        continue;
      }
    }
    shown[kept++] = each;
  }
  shown.resize(kept);
}

}  // namespace

bool is_same_version(const LocatedRun& a, const LocatedRun& b) {
  return a.sequence == b.sequence && a.source == b.source && a.base_ordinal == b.base_ordinal;
}

bool KeptJudge::is_given_up(const LocatedRun& run) const {
  if (run.for_kept) return true;  // the rollback that leads there may be given up
  if (run.base_ordinal != 0) return run.base_ordinal < facts_.end_ordinal;
  return run.sequence.value != 0 && run.sequence <= facts_.given_up;
}

bool KeptJudge::reads_as_zeros(const LocatedRun& run, Lbn block) const {
  if (run.source == LocatedRun::Source::kZero) return true;
  if (run.source != LocatedRun::Source::kBase) return false;
  bool zeros = true;
  base_.visit({block, {1}}, [&](BlockRange, bool in_image) { zeros = zeros && !in_image; });
  return zeros;
}

std::vector<KeptShown> KeptJudge::judge(std::span<const BlockRange> ranges,
                                        std::vector<NextBase> become) const {
  std::vector<KeptShown> out;
  if (facts_.kept.empty()) return out;
  const auto first_of = [](const NextBase& base) { return base.run.range.first; };
  const auto end_of = [](const NextBase& base) { return base.run.range.end(); };
  std::ranges::sort(become, {}, first_of);
  for (BlockRange left : ranges) {
    while (!left.empty()) {
      const BlockRange part{left.first, std::min(left.count, BlockCount{kPartBlocks})};
      const auto first = std::ranges::upper_bound(become, part.first, {}, end_of);
      const auto last = std::ranges::lower_bound(become, part.end(), {}, first_of);
      judge_part(part, std::span(first, std::max(first, last)), out);
      left = BlockRange::between(part.end(), left.end());
    }
  }
  merge(out);
  return out;
}

// What the moments show of each block, the oldest first, and what of that would be lost.
struct KeptJudge::Part {
  struct Open {
    std::optional<LocatedRun> run;  // nothing: nothing is to be written again
    SequenceNumber from;
    SequenceNumber through;
    bool zeros = false;
  };
  explicit Part(BlockRange of) : range(of), open(of.count.value) {}

  void need(std::uint64_t i, const LocatedRun& run, SequenceNumber moment, bool zeros,
            std::vector<KeptShown>& out) {
    Open& of = open[i];
    if (of.run && of.through == previous && is_same_version(*of.run, run)) {
      of.through = moment;
      return;
    }
    close(i, out);
    of = {run, moment, moment, zeros};
  }
  void close(std::uint64_t i, std::vector<KeptShown>& out) {
    Open& of = open[i];
    if (!of.run) return;
    out.push_back({{range.first + BlockCount{i}, {1}}, of.from, of.through, of.zeros});
    of.run.reset();
  }

  BlockRange range;
  std::vector<Open> open;   // of each block
  SequenceNumber previous;  // moment that was looked at
};

void KeptJudge::judge_part(BlockRange range, std::span<const NextBase> become,
                           std::vector<KeptShown>& out) const {
  const std::uint64_t count = range.count.value;
  const std::vector<LocatedRun> base_runs = lookup_.locate(range, SequenceNumber{0});
  const auto bases = by_block(range, std::span<const LocatedRun>(base_runs));
  const auto after = by_block(range, become);
  const std::vector<KeptRun> kept = lookup_.kept(std::span(&range, 1));

  // Whether a version that is not written again stays where it is found.
  const auto stays = [&](std::uint64_t i, const LocatedRun& run) {
    if (run.sequence > facts_.given_up) return true;
    const Lbn block = range.first + BlockCount{i};
    const bool changes = after[i] != nullptr;
    if (!changes && is_given_up(*bases[i])) return false;
    const LocatedRun& base = changes ? after[i]->run : *bases[i];
    if (is_same_version(base, run)) return true;
    // (An image that keeps something under zeros must find that they are some, not just bytes.)
    if (changes && after[i]->in_log) return false;
    return reads_as_zeros(base, block) && reads_as_zeros(run, block);
  };
  bool any_base_goes = false;
  for (std::uint64_t i = 0; i < count && !any_base_goes; ++i) any_base_goes = !stays(i, *bases[i]);

  Part part(range);
  std::vector<const KeptRun*> again(count, nullptr);
  for (const KeptMoment& moment : facts_.kept) {
    const SequenceNumber at = number_of(moment);
    const bool in_versions = at > lookup_.index().given_up();
    if (!in_versions && kept.empty() && !any_base_goes) continue;  // as with the ones before it
    std::ranges::fill(again, nullptr);
    for (const KeptRun& run : kept) {
      if (at < run.from || at > run.through) continue;
      std::fill_n(
          again.begin() + static_cast<std::ptrdiff_t>((run.range.first - range.first).value),
          run.range.count.value, &run);
    }
    std::vector<LocatedRun> found;
    if (in_versions) found = lookup_.locate(range, at);
    const auto shown = in_versions ? by_block(range, std::span<const LocatedRun>(found)) : bases;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (again[i] != nullptr) {
        if (again[i]->ordinal >= facts_.end_ordinal) continue;
        LocatedRun run;
        const bool zeros = again[i]->place.kind == index::PlacedRun::Kind::kZero;
        run.source = zeros ? LocatedRun::Source::kZero : LocatedRun::Source::kLog;
        run.base_ordinal = again[i]->ordinal;
        part.need(i, run, at, zeros, out);
        continue;
      }
      const LocatedRun& run = *shown[i];
      if (stays(i, run)) continue;
      part.need(i, run, at, reads_as_zeros(run, range.first + BlockCount{i}), out);
    }
    part.previous = at;
  }
  for (std::uint64_t i = 0; i < count; ++i) part.close(i, out);
}

}  // namespace mariner::volume
