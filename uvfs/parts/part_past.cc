#include "uvfs/parts/part_past.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "ifsck/volume_ranges.h"
#include "proto/check.h"

namespace mariner::uvfs {

using ifsck::Past;

Result<PartPast> PartPast::open(Past& past, std::span<const ByteRange> extents) {
  auto map = PartMap::of(extents, past.size_bytes());
  if (!map) return map.error();
  return PartPast(past, std::move(*map));
}

Result<void> PartPast::check(std::span<const Question> questions) const {
  const std::uint64_t end = size_bytes() >> kBlockShift;
  for (const Question& each : questions) {
    if (each.block.value < end) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("block {} is behind the end of a part of {}", each.block.value, end)};
  }
  return {};
}

Result<void> PartPast::read(std::span<const Question> questions, std::span<std::byte> to) {
  CHECK(to.size() == questions.size() * kBlockBytes);
  if (auto good = check(questions); !good) return good;
  if (!map_.aligned()) return read_pieces(questions, to);
  return behind().read(on_volume(questions), to);
}

std::vector<Past::Question> PartPast::on_volume(std::span<const Question> questions) const {
  std::vector<Question> asked;
  asked.reserve(questions.size());
  for (const Question& each : questions) {
    map_.for_each_piece({each.block.byte_offset(), kBlockBytes}, [&](ByteRange piece) {
      asked.push_back({Lbn{piece.offset >> kBlockShift}, each.at});
    });
  }
  return asked;
}

void PartPast::expect(std::span<const Question> questions) {
  if (map_.aligned() && check(questions)) behind().expect(on_volume(questions));
}

Result<void> PartPast::read_pieces(std::span<const Question> questions, std::span<std::byte> to) {
  struct Copy {
    std::size_t from = 0;  // in what is read
    std::size_t bytes = 0;
  };
  std::vector<Question> asked;
  std::vector<Copy> copies;  // one behind the other in `to`
  for (const Question& each : questions) {
    map_.for_each_piece({each.block.byte_offset(), kBlockBytes}, [&](ByteRange piece) {
      while (piece.length > 0) {
        const Question needed{Lbn{piece.offset >> kBlockShift}, each.at};
        // Blocks that follow each other share one.
        if (asked.empty() || asked.back() != needed) asked.push_back(needed);
        const std::uint64_t within = piece.offset % kBlockBytes;
        const std::uint64_t bytes = std::min(piece.length, kBlockBytes - within);
        copies.push_back({(asked.size() - 1) * kBlockBytes + within, bytes});
        piece = {piece.offset + bytes, piece.length - bytes};
      }
    });
  }
  std::vector<std::byte> read(asked.size() * kBlockBytes);
  if (auto done = behind().read(asked, read); !done) return done;
  std::byte* place = to.data();
  for (const Copy& each : copies) {
    std::memcpy(place, read.data() + each.from, each.bytes);
    place += each.bytes;
  }
  return {};
}

Result<std::vector<BlockRange>> PartPast::changed(SequenceNumber from, SequenceNumber to) {
  const auto on_volume = behind().changed(from, to);
  if (!on_volume) return on_volume.error();
  const BlockRange whole{Lbn{0}, BlockCount{size_bytes() >> kBlockShift}};
  std::vector<BlockRange> ranges;
  for (const BlockRange& each : *on_volume) {
    map_.for_each_place(to_bytes(each), [&](ByteRange place) {
      const BlockRange blocks = place.covering_blocks().intersect(whole);
      if (!blocks.empty()) ranges.push_back(blocks);
    });
  }
  ifsck::normalize(ranges);
  return ranges;
}

// Ascending, each once.
std::vector<PartPast::Use> PartPast::uses_of(std::span<const Lbn> blocks) const {
  std::vector<Use> uses;
  uses.reserve(blocks.size());
  const std::uint64_t end = size_bytes() >> kBlockShift;
  for (const Lbn block : blocks) {
    if (block.value >= end) continue;
    map_.for_each_piece({block.byte_offset(), kBlockBytes}, [&](const ByteRange& piece) {
      const BlockRange all = piece.covering_blocks();
      for (Lbn lbn = all.first; lbn < all.end(); lbn = lbn + BlockCount{1}) {
        uses.push_back({lbn, block});
      }
    });
  }
  if (!std::ranges::is_sorted(uses)) std::ranges::sort(uses);
  const auto repeated = std::ranges::unique(uses);
  uses.erase(repeated.begin(), repeated.end());
  return uses;
}

Result<std::vector<Past::Version>> PartPast::versions(std::span<const Lbn> blocks,
                                                      SequenceNumber from, SequenceNumber to) {
  const std::vector<Use> uses = uses_of(blocks);
  std::vector<Lbn> asked;
  asked.reserve(uses.size());
  for (const Use& each : uses) {
    if (asked.empty() || asked.back() != each.on_volume) asked.push_back(each.on_volume);
  }
  const auto found = behind().versions(asked, from, to);
  if (!found) return found.error();
  std::vector<Version> versions;
  versions.reserve(found->size());
  auto use = uses.begin();
  for (const Version& each : *found) {  // by block, as the uses are
    while (use != uses.end() && use->on_volume < each.block) ++use;
    for (auto one = use; one != uses.end() && one->on_volume == each.block; ++one) {
      versions.push_back({one->block, each.sequence, each.time});
    }
  }
  const auto place = [](const Version& each) { return std::tuple(each.block, each.sequence); };
  if (!std::ranges::is_sorted(versions, {}, place)) std::ranges::sort(versions, {}, place);
  const auto repeated = std::ranges::unique(versions, {}, place);
  versions.erase(repeated.begin(), repeated.end());
  return versions;
}

}  // namespace mariner::uvfs
