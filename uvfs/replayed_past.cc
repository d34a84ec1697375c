#include "uvfs/replayed_past.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
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
  CopyStore copies;
  auto history = JournalWalk::run(past, {.file = *file, .file_system = super, .seed = *seed},
                                  {.first = first, .last = last}, options, &copies);
  if (!history) return history.error();
  out->journal_.emplace(Journal{std::move(*file), std::move(*history), std::move(copies)});
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
    patches.push_back({.to = to + (from - begin),
                       .from = copy->from,
                       .within = from - block * bytes,
                       .bytes = std::min<std::uint64_t>(bytes, kBlockBytes),
                       .at = question.at,
                       .escaped = copy->escaped && from == block * bytes});
  }
}

ByteRange ReplayedPast::place_of(const Patch& patch) const {
  return {journal_->file.bytes_of(patch.from).offset + patch.within, patch.bytes};
}

bool ReplayedPast::take_kept(const Patch& patch, std::span<std::byte> to) {
  copy_.resize(journal_->file.block_bytes());
  if (!journal_->copies.get(patch.from, patch.at, copy_)) return false;
  std::ranges::copy(std::span(copy_).subspan(patch.within, patch.bytes),
                    to.begin() + static_cast<std::ptrdiff_t>(patch.to));
  if (patch.escaped) store_be(to.data() + patch.to, ifsck::JournalHead::kMagic);
  return true;
}

ReplayedPast::Asked ReplayedPast::asked_for(std::span<const Question> questions,
                                            std::span<std::byte> to) {
  Asked asked;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    Question question = questions[i];
    const std::size_t before = asked.patches.size();
    find_patches(question, i * kBlockBytes, asked.patches);
    if (asked.patches.size() > before && asked.patches.back().bytes == kBlockBytes) {
      const Patch whole = asked.patches.back();
      asked.patches.pop_back();
      const bool kept =
          to.empty() ? journal_->copies.has(whole.from, whole.at) : take_kept(whole, to);
      if (kept) continue;
      question.block = Lbn{place_of(whole).offset / kBlockBytes};
      if (whole.escaped) asked.escaped.push_back(whole.to);
    }
    asked.questions.push_back(question);
    asked.of.push_back(i);
  }
  return asked;
}

Result<void> ReplayedPast::read(std::span<const Question> questions, std::span<std::byte> to) {
  if (!journal_) return behind().read(questions, to);
  CHECK(to.size() == questions.size() * kBlockBytes);
  for (const Question& each : questions) {
    if (const auto known = check(each.at, each.at); !known) return known;
  }
  const Asked asked = asked_for(questions, to);
  if (const auto read = read_some(asked.questions, asked.of, to); !read) return read;
  for (const std::size_t at : asked.escaped) store_be(to.data() + at, ifsck::JournalHead::kMagic);
  return read_patches(asked.patches, to);
}

void ReplayedPast::expect(std::span<const Question> questions) {
  if (!journal_) return behind().expect(questions);
  for (const Question& each : questions) {
    if (!check(each.at, each.at)) return;
  }
  const Asked asked = asked_for(questions, {});
  if (!asked.questions.empty()) behind().expect(asked.questions);
}

// `of`: whose answers they are.
Result<void> ReplayedPast::read_some(std::span<const Question> asked,
                                     std::span<const std::size_t> of, std::span<std::byte> to) {
  if (asked.empty()) return {};
  if (asked.size() * kBlockBytes == to.size()) return behind().read(asked, to);
  std::vector<std::byte> bytes(asked.size() * kBlockBytes);
  if (const auto read = behind().read(asked, bytes); !read) return read;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    std::memcpy(to.data() + of[i] * kBlockBytes, bytes.data() + i * kBlockBytes, kBlockBytes);
  }
  return {};
}

Result<void> ReplayedPast::read_patches(std::span<const Patch> patches, std::span<std::byte> to) {
  std::vector<Patch> left;
  std::vector<Question> questions;
  for (const Patch& each : patches) {
    if (take_kept(each, to)) continue;
    left.push_back(each);
    questions.push_back({Lbn{place_of(each).offset / kBlockBytes}, each.at});
  }
  if (left.empty()) return {};
  std::vector<std::byte> bytes(questions.size() * kBlockBytes);
  if (const auto read = behind().read(questions, bytes); !read) return read;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const Patch& each = left[i];
    const auto from =
        std::span(bytes).subspan(i * kBlockBytes + place_of(each).offset % kBlockBytes, each.bytes);
    std::ranges::copy(from, to.begin() + static_cast<std::ptrdiff_t>(each.to));
    if (each.escaped) store_be(to.data() + each.to, ifsck::JournalHead::kMagic);
  }
  return {};
}

Result<std::vector<BlockRange>> ReplayedPast::changed(SequenceNumber from, SequenceNumber to) {
  if (const auto known = check(from, to); !known) return known.error();
  auto ranges = behind().changed(from, to);
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
  auto versions = behind().versions(blocks, from, to);
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
