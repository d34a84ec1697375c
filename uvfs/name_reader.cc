#include "uvfs/name_reader.h"

#include <algorithm>
#include <map>

#include "ifsck/ext_inode.h"
#include "proto/check.h"
#include "uvfs/inode_record.h"

namespace mariner::uvfs {
namespace {

using ifsck::ExtInode;
using ifsck::FsBlock;

constexpr std::size_t kBlocksAtOnce = 2048;
// Behind all blocks: what is within the inode.
constexpr std::uint64_t kInlineLogical = 1ULL << 40;

}  // namespace

// The steps of one directory, moment by moment.
class NameReader::Planner {
 public:
  Planner(NameReader& reader, ifsck::InodeNumber number, NameHistory& names)
      : reader_(reader), number_(number), names_(names) {}

  Result<void> plan(std::span<const InodeSlice> slices, std::span<const MapSpan> maps) {
    // (A map begins with a slice, or while one lasts.)
    std::vector<Epoch> epochs;
    const auto add_epoch = [&](const Epoch& next) {
      if (epochs.empty() || !next.continues(epochs.back())) epochs.push_back(next);
    };
    std::size_t map = 0;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const InodeSlice& slice = slices[i];
      if (map + 1 < maps.size() && maps[map + 1].from == slice.from) ++map;
      add_epoch({{slice.from, slice.time}, slice.bytes, &maps[map].map});
      while (map + 1 < maps.size() &&
             (i + 1 == slices.size() || maps[map + 1].from < slices[i + 1].from)) {
        ++map;
        add_epoch({{maps[map].from, maps[map].time}, slice.bytes, &maps[map].map});
      }
    }
    for (std::size_t i = 0; i < epochs.size(); ++i) {
      if (epochs[i].is_directory() && epochs[i].map->blocks() > kDirectoryBlocksMax) {
        return directory_too_large(number_, epochs[i].map->blocks());
      }
      begin(epochs[i], i + 1 < epochs.size() ? epochs[i + 1].at.at : kEndless);
    }
    std::ranges::stable_sort(steps_, {}, [](const Step& each) { return each.at.at; });
    reader_.steps_.insert(reader_.steps_.end(), steps_.begin(), steps_.end());
    return {};
  }

 private:
  // From a moment on, inode and map are these.
  struct Epoch {
    Instant at;
    std::span<const std::byte> inode;
    const ifsck::BlockMap* map = nullptr;

    [[nodiscard]] bool is_directory() const {
      return state_of(inode).exists && ExtInode(inode).is_directory();
    }
    // Nothing but what its blocks hold is otherwise.
    [[nodiscard]] bool continues(const Epoch& before) const {
      if (map != before.map || is_directory() != before.is_directory()) return false;
      const ExtInode mine(inode);
      return !is_directory() ||
             (mine.size() == ExtInode(before.inode).size() && !mine.has_inline_data() &&
              !ExtInode(before.inode).has_inline_data());
    }
  };

  // Up to before `end`.
  void begin(const Epoch& epoch, SequenceNumber end) {
    const Instant& at = epoch.at;
    if (!epoch.is_directory()) {
      if (there_) add({.at = at, .what = Step::What::kForgetAll});
      there_ = false;
      visible_.clear();
      inlined_ = false;
      return;
    }
    there_ = true;
    take_inlined(at, epoch.inode);
    std::map<std::uint64_t, FsBlock> visible;
    const std::uint64_t blocks = ExtInode(epoch.inode).size() / reader_.layout_.block_bytes();
    for (const ifsck::BlockMap::Run& run : epoch.map->runs) {
      if (run.unwritten) continue;
      for (std::uint64_t i = 0; i < run.count && run.logical + i < blocks; ++i) {
        visible[run.logical + i] = run.physical + i;
      }
    }
    for (const auto& [logical, block] : visible_) {
      if (!visible.contains(logical)) {
        add({.at = at, .what = Step::What::kForget, .logical = logical});
      }
    }
    for (const auto& [logical, block] : visible) look_at(at, end, logical, block);
    visible_ = std::move(visible);
  }

  void take_inlined(const Instant& at, std::span<const std::byte> inode) {
    const bool inlined = ExtInode(inode).has_inline_data();
    if (!inlined && !inlined_) return;
    inlined_ = inlined;
    std::uint64_t logical = kInlineLogical;
    if (!inlined) {
      add({.at = at, .what = Step::What::kForget, .logical = logical});
      add({.at = at, .what = Step::What::kForget, .logical = logical + 1});
      return;
    }
    for (const auto entries : inline_entries(inode)) {
      add({.at = at, .what = Step::What::kBytes, .logical = logical++, .bytes = entries});
    }
  }

  void look_at(const Instant& at, SequenceNumber end, std::uint64_t logical, FsBlock block) {
    std::vector<Lbn> written;
    reader_.timelines_.add_written(reader_.layout_.bytes_of(block).covering_blocks(), written);
    const auto before = visible_.find(logical);
    bool afresh = before == visible_.end() || before->second != block;
    for (const Lbn each : written) {
      if (at.at <= reader_.timelines_.stretch().first) break;
      const auto now = reader_.timelines_.of(each, SequenceNumber{at.at.value - 1}, at.at.next());
      afresh = afresh || !now.empty();
    }
    if (afresh) {
      add({.at = at, .what = Step::What::kBlock, .logical = logical, .block = block});
    }
    for (const Lbn each : written) {
      for (const auto& version : reader_.timelines_.of(each, at.at, end)) {
        add({.at = {version.sequence, version.time},
             .what = Step::What::kBlock,
             .logical = logical,
             .block = block});
      }
    }
  }

  void add(Step step) {
    step.names = &names_;
    steps_.push_back(step);
  }

  NameReader& reader_;
  const ifsck::InodeNumber number_;
  NameHistory& names_;
  std::vector<Step> steps_;
  bool there_ = false;
  bool inlined_ = false;
  std::map<std::uint64_t, FsBlock> visible_;
};

Result<void> NameReader::add(ifsck::InodeNumber number, std::span<const InodeSlice> slices,
                             std::span<const MapSpan> maps, NameHistory& names) {
  CHECK(!slices.empty() && !maps.empty());
  return Planner(*this, number, names).plan(slices, maps);
}

Result<void> NameReader::read() {
  // As it was written: that is how it stands in the log. (Of one directory they are in this order.)
  std::ranges::stable_sort(steps_, {}, [](const Step& step) { return step.at.at; });
  const BlockCount each = layout_.bytes_of(0).covering_blocks().count;
  for (std::span<const Step> left(steps_); !left.empty();) {
    std::vector<BlockTimelines::Question> questions;
    std::size_t count = 0;
    for (; count < left.size() && questions.size() + each.value <= kBlocksAtOnce; ++count) {
      const Step& step = left[count];
      if (step.what != Step::What::kBlock) continue;
      const BlockRange range = layout_.bytes_of(step.block).covering_blocks();
      for (Lbn lbn = range.first; lbn < range.end(); lbn = lbn + BlockCount{1}) {
        questions.push_back({lbn, step.at.at});
      }
    }
    std::vector<std::byte> blocks(questions.size() * kBlockBytes);
    const auto read =
        timelines_.read(questions, [&](std::size_t i, std::span<const std::byte> block) {
          std::ranges::copy(block, blocks.begin() + static_cast<std::ptrdiff_t>(i * kBlockBytes));
        });
    if (!read) return read.error();
    apply(left.first(count), blocks);
    left = left.subspan(count);
  }
  steps_.clear();
  return {};
}

void NameReader::apply(std::span<const Step> steps, std::span<const std::byte> blocks) const {
  for (const Step& step : steps) {
    switch (step.what) {
      case Step::What::kBlock: {
        const ByteRange place = layout_.bytes_of(step.block);
        const BlockRange range = place.covering_blocks();
        step.names->set(step.at, step.logical,
                        blocks.subspan(place.offset - range.first.byte_offset(), place.length));
        blocks = blocks.subspan(range.count.bytes());
        break;
      }
      case Step::What::kBytes: step.names->set(step.at, step.logical, step.bytes); break;
      case Step::What::kForget: step.names->forget(step.at, step.logical); break;
      case Step::What::kForgetAll: step.names->forget_all(step.at); break;
    }
  }
}

}  // namespace mariner::uvfs
