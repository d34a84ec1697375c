#include "uvfs/content_comparison.h"

#include <algorithm>
#include <optional>

namespace mariner::uvfs {
namespace {

using ifsck::BlockMap;

constexpr std::size_t kPiecesAtOnce = 1024;

// Walks along a map: what is at a block of the file, and how far it goes on so.
class Along {
 public:
  explicit Along(const BlockMap& map) : runs_(map.runs) {}

  struct Place {
    std::optional<ifsck::FsBlock> block;  // none: zeros
    std::uint64_t count = 0;
  };
  Place at(std::uint64_t logical) {
    while (next_ < runs_.size() && runs_[next_].logical + runs_[next_].count <= logical) ++next_;
    if (next_ == runs_.size()) return {{}, ~std::uint64_t{0}};
    const BlockMap::Run& run = runs_[next_];
    if (run.logical > logical) return {{}, run.logical - logical};
    const std::uint64_t count = run.logical + run.count - logical;
    if (run.unwritten) return {{}, count};
    return {run.physical + (logical - run.logical), count};
  }

 private:
  std::span<const BlockMap::Run> runs_;
  std::size_t next_ = 0;
};

}  // namespace

std::size_t ContentComparison::add(const Pair& pair) {
  const std::size_t number = same_.size();
  same_.push_back(true);
  const std::uint32_t each = layout_.block_bytes();
  const std::uint64_t blocks = (pair.size + each - 1) / each;
  Along before(*pair.before);
  Along after(*pair.after);
  std::size_t compared = 0;
  for (std::uint64_t logical = 0; logical < blocks;) {
    const Along::Place was = before.at(logical);
    const Along::Place is = after.at(logical);
    const std::uint64_t count = std::min({was.count, is.count, blocks - logical});
    const auto compare = [&](std::uint64_t i) {
      if (++compared > kBlocksMax) {
        same_[number] = false;
        return;
      }
      const std::uint64_t offset = (logical + i) * each;
      const auto place = [&](const Along::Place& of) {
        return of.block ? layout_.bytes_of(*of.block + i).offset : kZeros;
      };
      add_pieces(
          number,
          {.before = place(was),
           .after = place(is),
           .bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(each, pair.size - offset)),
           .at = pair.at});
    };
    if (was.block != is.block) {
      for (std::uint64_t i = 0; i < count && same_[number]; ++i) compare(i);
    } else if (is.block) {
      const ByteRange range{layout_.bytes_of(*is.block).offset, count * each};
      const BlockRange covered = range.covering_blocks();
      std::uint64_t next = 0;
      for (auto lbn = std::ranges::lower_bound(pair.written, covered.first);
           lbn != pair.written.end() && *lbn < covered.end() && same_[number]; ++lbn) {
        const std::uint64_t from = std::max(lbn->byte_offset(), range.offset) - range.offset;
        const std::uint64_t end =
            std::min(lbn->byte_offset() + kBlockBytes, range.end()) - range.offset;
        for (next = std::max(next, from / each); next * each < end; ++next) compare(next);
      }
    }
    logical += count;
  }
  return number;
}

std::size_t ContentComparison::add_block(ifsck::FsBlock block, std::uint64_t skip,
                                         SequenceNumber at) {
  const std::size_t number = same_.size();
  same_.push_back(true);
  const std::uint64_t offset = layout_.bytes_of(block).offset + skip;
  add_pieces(number, {.before = offset,
                      .after = offset,
                      .bytes = static_cast<std::uint32_t>(layout_.block_bytes() - skip),
                      .at = at});
  return number;
}

void ContentComparison::add_pieces(std::size_t pair, const Piece& whole) {
  // (Blocks of a file system lie within those of the volume, or are several of them.)
  const auto within = [](std::uint64_t offset) {
    return offset == kZeros ? kBlockBytes : kBlockBytes - offset % kBlockBytes;
  };
  for (std::uint32_t done = 0; done < whole.bytes;) {
    Piece piece = whole;
    piece.pair = pair;
    if (whole.before != kZeros) piece.before += done;
    if (whole.after != kZeros) piece.after += done;
    piece.bytes = static_cast<std::uint32_t>(
        std::min<std::uint64_t>({whole.bytes - done, within(piece.before), within(piece.after)}));
    pieces_.push_back(piece);
    done += piece.bytes;
  }
}

Result<void> ContentComparison::run() {
  std::erase_if(pieces_, [this](const Piece& each) { return !same_[each.pair]; });
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
    const auto bytes_of = [&](std::uint64_t offset, std::uint32_t bytes) {
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
