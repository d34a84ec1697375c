#include "uvfs/replayed_past.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "ifsck/ext_volume.h"
#include "ifsck/journal_block.h"
#include "ifsck/journal_superblock.h"
#include "ifsck/overlay.h"
#include "ifsck/view.h"
#include "ifsck/volume_ranges.h"
#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::uvfs {

using ifsck::FsBlock;
using ifsck::JournalSuperblock;
using ifsck::Past;

namespace {

// 0: the superblock says nothing that can be believed.
Result<std::uint32_t> seed_of(ifsck::View& view, const ifsck::JournalFile& file) {
  std::array<std::byte, JournalSuperblock::kBytes> bytes{};
  const auto read = view.read({file.bytes_of(0).offset, bytes.size()}, bytes);
  if (!read) return read.error();
  const auto super = JournalSuperblock::parse(bytes, file.block_bytes(), file.blocks());
  return super ? super->seed : 0;
}

}  // namespace

Result<std::unique_ptr<ReplayedPast>> ReplayedPast::open(Past& past, SequenceNumber first,
                                                         SequenceNumber last,
                                                         const Options& options) {
  if (first > last) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("from the write {} up to {}: these are no moments", first.value, last.value)};
  }
  ifsck::Overlay overlay;
  ifsck::View view(past, last, overlay);
  const auto volume = ifsck::ExtVolume::open(view, {});
  if (!volume) return volume.error();
  std::unique_ptr<ReplayedPast> out(new ReplayedPast(past, first, last));
  ext2_super_block& super = *volume->fs()->super;
  if (!ext2fs_has_feature_journal(&super) || super.s_journal_inum == 0) return out;
  const auto layout = ifsck::ExtLayout::of(*volume);
  if (!layout) return layout.error();
  auto file = ifsck::JournalFile::open(*volume, *layout);
  if (!file) return file.error();
  const auto seed = seed_of(view, *file);
  if (!seed) return seed.error();
  auto history = JournalWalk::run(past, {.file = *file, .file_system = super, .seed = *seed},
                                  {.first = first, .last = last}, options);
  if (!history) return history.error();
  out->journal_.emplace(Journal{std::move(*file), std::move(*history)});
  return out;
}

Result<void> ReplayedPast::check(SequenceNumber from, SequenceNumber to) const {
  if (!journal_ || (from >= first_ && to <= last_)) return {};
  return Error{
      ErrorCode::kOutsideWindow,
      fmt::format("the journal is known from the write {} up to {}, and {} to {} are asked "
                  "for",
                  first_.value, last_.value, from.value, to.value)};
}

std::pair<FsBlock, FsBlock> ReplayedPast::within(Lbn block) const {
  const std::uint64_t bytes = journal_->file.block_bytes();
  const std::uint64_t begin = block.byte_offset();
  return {begin / bytes, (begin + kBlockBytes - 1) / bytes + 1};
}

void ReplayedPast::find_patches(const Question& question, std::size_t to,
                                std::vector<Patch>& patches) const {
  const std::uint64_t bytes = journal_->file.block_bytes();
  const std::uint64_t begin = question.block.byte_offset();
  const auto [first, end] = within(question.block);
  for (FsBlock block = first; block < end; ++block) {
    const auto copy = journal_->history.copy_of(block, question.at);
    if (!copy) continue;
    const std::uint64_t from = std::max(block * bytes, begin);
    const std::uint64_t within_block = from - block * bytes;
    patches.push_back({.to = to + (from - begin),
                       .from = {journal_->file.bytes_of(copy->from).offset + within_block,
                                std::min<std::uint64_t>(bytes, kBlockBytes)},
                       .escaped = copy->escaped && within_block == 0});
  }
}

Result<void> ReplayedPast::read(std::span<const Question> questions, std::span<std::byte> to) {
  if (!journal_) return past_.read(questions, to);
  CHECK(to.size() == questions.size() * kBlockBytes);
  std::vector<Question> asked(questions.begin(), questions.end());
  std::vector<Patch> patches;  // of parts of a block
  std::vector<std::size_t> escaped;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (const auto known = check(asked[i].at, asked[i].at); !known) return known;
    const std::size_t before = patches.size();
    find_patches(questions[i], i * kBlockBytes, patches);
    if (patches.size() == before || patches.back().from.length < kBlockBytes) continue;
    // A whole block stands elsewhere, and is asked for there.
    asked[i].block = Lbn{patches.back().from.offset / kBlockBytes};
    if (patches.back().escaped) escaped.push_back(patches.back().to);
    patches.pop_back();
  }
  if (const auto read = past_.read(asked, to); !read) return read;
  for (const std::size_t at : escaped) store_be(to.data() + at, ifsck::JournalHead::kMagic);
  return read_patches(questions, patches, to);
}

Result<void> ReplayedPast::read_patches(std::span<const Question> asked,
                                        std::span<const Patch> patches, std::span<std::byte> to) {
  if (patches.empty()) return {};
  std::vector<Question> questions;
  for (const Patch& each : patches) {
    questions.push_back({Lbn{each.from.offset / kBlockBytes}, asked[each.to / kBlockBytes].at});
  }
  std::vector<std::byte> bytes(questions.size() * kBlockBytes);
  if (const auto read = past_.read(questions, bytes); !read) return read;
  for (std::size_t i = 0; i < patches.size(); ++i) {
    const Patch& each = patches[i];
    const auto from = std::span(bytes).subspan(i * kBlockBytes + each.from.offset % kBlockBytes,
                                               each.from.length);
    std::ranges::copy(from, to.begin() + static_cast<std::ptrdiff_t>(each.to));
    if (each.escaped) store_be(to.data() + each.to, ifsck::JournalHead::kMagic);
  }
  return {};
}

Result<std::vector<BlockRange>> ReplayedPast::changed(SequenceNumber from, SequenceNumber to) {
  if (const auto known = check(from, to); !known) return known.error();
  auto ranges = past_.changed(from, to);
  if (!ranges || !journal_) return ranges;
  const std::uint64_t bytes = journal_->file.block_bytes();
  for (const FsBlock block : journal_->history.changed(from, to)) {
    // (Maybe there is no such block: the log can say anything.)
    if (block >= size_bytes() / bytes) continue;
    ranges->push_back(ByteRange{block * bytes, bytes}.covering_blocks());
  }
  ifsck::normalize(*ranges);
  return ranges;
}

bool ReplayedPast::is_hidden(const Version& write) const {
  const auto [first, end] = within(write.block);
  for (FsBlock block = first; block < end; ++block) {
    if (!journal_->history.copy_of(block, write.sequence)) return false;
  }
  return true;
}

Result<std::vector<Past::Version>> ReplayedPast::versions(std::span<const Lbn> blocks,
                                                          SequenceNumber from, SequenceNumber to) {
  if (const auto known = check(from, to); !known) return known.error();
  auto versions = past_.versions(blocks, from, to);
  if (!versions || !journal_) return versions;
  // (Most are: what a transaction has changed is put in its place while the log has it still.)
  std::erase_if(*versions, [&](const Version& each) { return is_hidden(each); });
  for (const Lbn lbn : blocks) {
    const auto [first, end] = within(lbn);
    for (FsBlock block = first; block < end; ++block) {
      for (const auto& each : journal_->history.changes_of(block, from, to)) {
        versions->push_back({lbn, each.at, each.time});
      }
    }
  }
  const auto place = [](const Version& each) { return std::pair{each.block, each.sequence}; };
  std::ranges::sort(*versions, {}, place);
  const auto repeated = std::ranges::unique(*versions, {}, place);
  versions->erase(repeated.begin(), repeated.end());
  return versions;
}

}  // namespace mariner::uvfs
