#include "uvfs/content_comparison.h"

#include <algorithm>
#include <optional>

namespace mariner::uvfs {
namespace {

constexpr std::size_t kPiecesAtOnce = 1024;

// Walks along the runs of a file: what is at one of its bytes, and how far it goes on so.
class Along {
 public:
  explicit Along(const ByteRuns& runs) : runs_(runs) {}

  struct Place {
    std::optional<std::uint64_t> at;  // none: zeros
    std::uint64_t bytes = 0;
  };
  Place at(std::uint64_t logical) {
    while (next_ < runs_.size() && runs_[next_].logical + runs_[next_].bytes <= logical) ++next_;
    if (next_ == runs_.size()) return {{}, ~std::uint64_t{0}};
    const ByteRun& run = runs_[next_];
    if (run.logical > logical) return {{}, run.logical - logical};
    return {run.place + (logical - run.logical), run.logical + run.bytes - logical};
  }

 private:
  std::span<const ByteRun> runs_;
  std::size_t next_ = 0;
};

}  // namespace

std::size_t ContentComparison::add(const Pair& pair) {
  const std::size_t number = same_.size();
  same_.push_back(true);
  Along before(*pair.before);
  Along after(*pair.after);
  std::uint64_t compared = 0;
  const auto compare = [&](std::optional<std::uint64_t> was, std::optional<std::uint64_t> is,
                           std::uint64_t bytes) {
    const Piece whole{.pair = number,
                      .before = was.value_or(kZeros),
                      .after = is.value_or(kZeros),
                      .bytes = bytes,
                      .at = pair.at};
    if (!add_pieces(whole, compared)) same_[number] = false;
  };
  for (std::uint64_t logical = 0; logical < pair.size && same_[number];) {
    const Along::Place was = before.at(logical);
    const Along::Place is = after.at(logical);
    const std::uint64_t bytes = std::min({was.bytes, is.bytes, pair.size - logical});
    if (was.at != is.at) {
      compare(was.at, is.at, bytes);
    } else if (is.at) {
      const ByteRange range{*is.at, bytes};
      const BlockRange covered = range.covering_blocks();
      for (auto lbn = std::ranges::lower_bound(pair.written, covered.first);
           lbn != pair.written.end() && *lbn < covered.end() && same_[number]; ++lbn) {
        const std::uint64_t from = std::max(lbn->byte_offset(), range.offset);
        const std::uint64_t end = std::min(lbn->byte_offset() + kBlockBytes, range.end());
        compare(from, from, end - from);
      }
    }
    logical += bytes;
  }
  return number;
}

std::size_t ContentComparison::add_place(ByteRange place, SequenceNumber at) {
  const std::size_t number = same_.size();
  same_.push_back(true);
  std::uint64_t compared = 0;
  same_[number] = add_pieces({.pair = number,
                              .before = place.offset,
                              .after = place.offset,
                              .bytes = place.length,
                              .at = at},
                             compared);
  return number;
}

bool ContentComparison::add_pieces(Piece whole, std::uint64_t& compared) {
  const auto within = [](std::uint64_t offset) {
    return offset == kZeros ? kBlockBytes : kBlockBytes - offset % kBlockBytes;
  };
  for (std::uint64_t left = whole.bytes; left > 0;) {
    whole.bytes = std::min<std::uint64_t>({left, within(whole.before), within(whole.after)});
    compared += whole.bytes;
    if (compared > kBytesMax) return false;
    pieces_.push_back(whole);
    if (whole.before != kZeros) whole.before += whole.bytes;
    if (whole.after != kZeros) whole.after += whole.bytes;
    left -= whole.bytes;
  }
  return true;
}

Result<void> ContentComparison::run() {
  std::erase_if(pieces_, [this](const Piece& each) { return !same_[each.pair]; });
  // As it was written: that is how it stands in the log.
  std::ranges::stable_sort(pieces_, {}, &Piece::at);
  for (std::span<const Piece> left(pieces_); !left.empty();) {
    const auto some = left.first(std::min(left.size(), kPiecesAtOnce));
    left = left.subspan(some.size());
    std::vector<BlockTimelines::Question> questions;
    const auto ask = [&](std::uint64_t offset, SequenceNumber at) {
      if (offset != kZeros) questions.push_back({Lbn{offset / kBlockBytes}, at});
    };
    for (const Piece& each : some) {
      ask(each.before, SequenceNumber{each.at.value - 1});
      ask(each.after, each.at);
    }
    std::vector<std::byte> blocks((questions.size() + 1) * kBlockBytes);  // the last: zeros
    const auto read =
        timelines_.read(questions, [&](std::size_t i, std::span<const std::byte> block) {
          std::ranges::copy(block, blocks.begin() + static_cast<std::ptrdiff_t>(i * kBlockBytes));
        });
    if (!read) return read.error();
    std::size_t next = 0;
    const auto bytes_of = [&](std::uint64_t offset, std::uint64_t bytes) {
      const std::size_t block = offset == kZeros ? questions.size() : next++;
      const std::size_t from = offset == kZeros ? 0 : offset % kBlockBytes;
      return std::span(blocks).subspan(block * kBlockBytes + from, bytes);
    };
    for (const Piece& each : some) {
      const auto before = bytes_of(each.before, each.bytes);
      const auto after = bytes_of(each.after, each.bytes);
      if (!std::ranges::equal(before, after)) same_[each.pair] = false;
    }
  }
  pieces_.clear();
  return {};
}

}  // namespace mariner::uvfs
