#include "uvfs/journal_ring.h"

#include <algorithm>

#include "ifsck/ext_layout.h"
#include "proto/check.h"

namespace mariner::uvfs {

using ifsck::JournalBlock;
using ifsck::Past;

namespace {

constexpr ByteRange kSuperblockPlace{1024, sizeof(ext2_super_block)};

std::vector<Past::Question> questions_of(std::span<const Past::Version> writes) {
  std::vector<Past::Question> questions;
  questions.reserve(writes.size());
  for (const Past::Version& each : writes) questions.push_back({each.block, each.sequence});
  return questions;
}

}  // namespace

JournalRing::JournalRing(Past& past, const ifsck::JournalFile& file, SequenceNumber at,
                         const Options& options)
    : past_(past), file_(file), options_(options), at_(at) {
  const auto blocks = static_cast<JournalBlock>(file.blocks());
  const auto add = [&](const ByteRange& bytes) {
    const BlockRange range = bytes.covering_blocks();
    for (Lbn lbn = range.first; lbn < range.end(); lbn = lbn + BlockCount{1}) {
      places_.push_back(lbn);
    }
  };
  add(kSuperblockPlace);
  for (JournalBlock block = 0; block < blocks; ++block) add(file.bytes_of(block));
  std::ranges::sort(places_);
  const auto repeated = std::ranges::unique(places_);
  places_.erase(repeated.begin(), repeated.end());
  kept_.resize(places_.size());
  add_pieces(kSuperblockPlace, kFileSystem);
  for (JournalBlock block = 0; block < blocks; ++block) add_pieces(file.bytes_of(block), block);
  std::ranges::stable_sort(pieces_, {}, &Piece::slot);
}

void JournalRing::add_pieces(const ByteRange& bytes, JournalBlock block) {
  for (std::uint64_t at = bytes.offset; at < bytes.end();) {
    const std::uint64_t end = std::min((at / kBlockBytes + 1) * kBlockBytes, bytes.end());
    pieces_.push_back({slot_of(Lbn{at / kBlockBytes}), static_cast<std::uint32_t>(at % kBlockBytes),
                       static_cast<std::uint32_t>(end - at), block});
    at = end;
  }
}

JournalRing::Slot JournalRing::slot_of(Lbn lbn) const {
  const auto found = std::ranges::lower_bound(places_, lbn);
  CHECK(found != places_.end() && *found == lbn);
  return static_cast<Slot>(found - places_.begin());
}

Result<void> JournalRing::ask_all(std::span<const Past::Question> questions,
                                  std::vector<Block>& to) {
  to.resize(questions.size());
  for (std::size_t from = 0; from < questions.size(); from += options_.questions_max) {
    const std::size_t count = std::min(options_.questions_max, questions.size() - from);
    const auto bytes = std::as_writable_bytes(std::span(to).subspan(from, count));
    if (const auto read = past_.read(questions.subspan(from, count), bytes); !read) return read;
  }
  return {};
}

Result<void> JournalRing::fetch(std::span<const Past::Version> writes) {
  CHECK(taken_ == fetched_.size());
  fetched_.assign(writes.begin(), writes.end());
  taken_ = 0;
  return ask_all(questions_of(writes), fetched_bytes_);
}

void JournalRing::expect(std::span<const Past::Version> writes) {
  if (writes.empty()) return;
  past_.expect(questions_of(writes.first(std::min(writes.size(), options_.questions_max))));
}

JournalRing::Touched JournalRing::move_to(SequenceNumber at) {
  CHECK(at >= at_);
  at_ = at;
  Touched touched;
  for (; taken_ < fetched_.size() && fetched_[taken_].sequence <= at; ++taken_) {
    take(slot_of(fetched_[taken_].block), fetched_bytes_[taken_], touched);
  }
  std::ranges::sort(touched.blocks);
  const auto repeated = std::ranges::unique(touched.blocks);
  touched.blocks.erase(repeated.begin(), repeated.end());
  if (kept_blocks_ > options_.kept_blocks_max) forget();
  return touched;
}

void JournalRing::take(Slot slot, const Block& bytes, Touched& touched) {
  std::unique_ptr<Block>& kept = kept_[slot];
  for (const Piece& each : std::ranges::equal_range(pieces_, slot, {}, &Piece::slot)) {
    const auto part = [&](const Block& block) {
      return std::span(block).subspan(each.offset, each.length);
    };
    if (kept != nullptr && std::ranges::equal(part(*kept), part(bytes))) continue;
    if (each.block == kFileSystem) {
      touched.file_system = true;
    } else {
      touched.blocks.push_back(each.block);
    }
  }
  if (kept == nullptr) {
    kept = std::make_unique<Block>();
    ++kept_blocks_;
  }
  *kept = bytes;
}

void JournalRing::forget() {
  for (std::unique_ptr<Block>& each : kept_) each.reset();
  kept_blocks_ = 0;
}

Result<void> JournalRing::ask(Slot slot) {
  std::vector<Past::Question> questions;
  std::vector<Slot> slots;
  for (; slot < places_.size() && slots.size() < options_.ahead; ++slot) {
    if (kept_[slot] != nullptr) continue;
    questions.push_back({places_[slot], at_});
    slots.push_back(slot);
  }
  std::vector<Block> blocks;
  if (const auto asked = ask_all(questions, blocks); !asked) return asked;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    kept_[slots[i]] = std::make_unique<Block>(blocks[i]);
  }
  kept_blocks_ += slots.size();
  return {};
}

Result<void> JournalRing::read_bytes(const ByteRange& range, std::span<std::byte> to) {
  CHECK(to.size() == range.length);
  ++looks_;
  for (std::uint64_t at = range.offset; at < range.end();) {
    const Slot slot = slot_of(Lbn{at / kBlockBytes});
    if (kept_[slot] == nullptr) {
      if (const auto asked = ask(slot); !asked) return asked;
    }
    const std::uint64_t within = at % kBlockBytes;
    const std::uint64_t count = std::min<std::uint64_t>(kBlockBytes - within, range.end() - at);
    std::ranges::copy(std::span(*kept_[slot]).subspan(within, count),
                      to.begin() + static_cast<std::ptrdiff_t>(at - range.offset));
    at += count;
  }
  return {};
}

Result<void> JournalRing::read(JournalBlock block, std::span<std::byte> to) {
  ByteRange range = file_.bytes_of(block);
  CHECK(to.size() <= range.length);
  range.length = to.size();
  return read_bytes(range, to);
}

Result<void> JournalRing::read_file_system(std::span<std::byte> to) {
  CHECK(to.size() == kSuperblockPlace.length);
  return read_bytes(kSuperblockPlace, to);
}

}  // namespace mariner::uvfs
