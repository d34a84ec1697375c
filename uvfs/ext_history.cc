#include "uvfs/ext_history.h"

#include <ext2fs/ext2_fs.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "ifsck/each_once.h"
#include "ifsck/ext_inode.h"
#include "proto/check.h"
#include "uvfs/content_comparison.h"
#include "uvfs/inode_record.h"
#include "uvfs/name_reader.h"

namespace mariner::uvfs {
namespace {

using ifsck::ExtInode;
using ifsck::InodeNumber;

// A file system whose structures are where those of `super` are, and which is the same one.
bool is_same_file_system(const ext2_super_block& super, const ext2_super_block& other) {
  return super.s_magic == other.s_magic && std::ranges::equal(super.s_uuid, other.s_uuid) &&
         super.s_mkfs_time == other.s_mkfs_time && super.s_blocks_count == other.s_blocks_count &&
         super.s_blocks_count_hi == other.s_blocks_count_hi &&
         super.s_inodes_count == other.s_inodes_count &&
         super.s_first_data_block == other.s_first_data_block &&
         super.s_log_block_size == other.s_log_block_size &&
         super.s_blocks_per_group == other.s_blocks_per_group &&
         super.s_inodes_per_group == other.s_inodes_per_group &&
         super.s_inode_size == other.s_inode_size && super.s_desc_size == other.s_desc_size;
}

// The first moment from which on it always is `super`'s.
Result<SequenceNumber> beginning_of(BlockTimelines& timelines, const ext2_super_block& super) {
  const BlockRange block = ByteRange{SUPERBLOCK_OFFSET, SUPERBLOCK_SIZE}.covering_blocks();
  if (const auto loaded = timelines.load({block.first}); !loaded) return loaded.error();
  std::vector<BlockTimelines::Question> questions{{block.first, timelines.stretch().first}};
  for (const auto& version : timelines.of(block.first)) {
    questions.push_back({block.first, version.sequence});
  }
  std::size_t begin = 0;
  const auto read = timelines.read(questions, [&](std::size_t i, std::span<const std::byte> bytes) {
    ext2_super_block then{};
    std::memcpy(&then, bytes.data() + SUPERBLOCK_OFFSET, sizeof then);
    if (!is_same_file_system(super, then)) begin = i + 1;
  });
  if (!read) return read.error();
  return begin < questions.size() ? questions[begin].at : timelines.stretch().last;
}

}  // namespace

Result<std::unique_ptr<ExtHistory>> ExtHistory::open(ifsck::Past& past, const Stretch& wanted) {
  std::unique_ptr<ExtHistory> history(new ExtHistory(past, wanted));
  if (const auto opened = history->moment_.open(); !opened) return opened.error();
  auto timelines = BlockTimelines::open(past, wanted);
  if (!timelines) return timelines.error();
  const auto begin = beginning_of(*timelines, history->context().super);
  if (!begin) return begin.error();
  if (*begin > wanted.first) {
    timelines = BlockTimelines::open(past, {*begin, wanted.last});
    if (!timelines) return timelines.error();
  }
  history->timelines_ = std::make_unique<BlockTimelines>(std::move(*timelines));
  history->slices_ =
      std::make_unique<InodeSliceReader>(*history->timelines_, history->context().layout);
  return history;
}

// Some inodes at once.
class ExtHistory::Loading {
 public:
  explicit Loading(ExtHistory& all)
      : all_(all),
        timelines_(*all.timelines_),
        layout_(all.context().layout),
        comparison_(timelines_) {}

  Result<void> run(std::span<const InodeNumber> numbers) {
    auto slices = all_.slices_->read(numbers);
    if (!slices) return slices.error();
    std::vector<Lbn> blocks;
    for (const InodeNumber number : numbers) {
      made_[number].slices = std::move(slices->at(number));
    }
    if (const auto read = read_maps(); !read) return read.error();
    for (const auto& [number, one] : made_) add_blocks(one, blocks);
    if (const auto loaded = timelines_.load(std::move(blocks)); !loaded) return loaded.error();
    NameReader names(timelines_, layout_);
    for (auto& [number, one] : made_) {
      const bool directory = std::ranges::any_of(one.slices, [](const InodeSlice& each) {
        return state_of(each.bytes).exists && ExtInode(each.bytes).is_directory();
      });
      if (!directory) continue;
      one.names = std::make_unique<NameHistory>();
      const auto added = names.add(number, one.slices, one.maps, *one.names);
      if (!added) return added.error();
    }
    if (const auto read = names.read(); !read) return read.error();
    for (auto& [number, one] : made_) find_states(one);
    if (const auto compared = comparison_.run(); !compared) return compared.error();
    for (auto& [number, one] : made_) {
      drop_same(one);
      all_.all_.insert_or_assign(number, std::move(one));
    }
    return {};
  }

 private:
  // What may change at a moment.
  struct Event {
    VersionTime time;
    bool inode = false;
    bool map = false;
    bool attributes = false;
    bool names = false;
    std::vector<Lbn> written;  // of its contents; ascending
  };
  using Events = std::map<SequenceNumber, Event>;
  // A state that is seen only if what is compared is not the same.
  struct Doubtful {
    std::size_t state = 0;
    bool inode = false;  // was written to
    std::vector<std::size_t> compared;
  };

  // As many at a time as what says where their blocks are has room in the cache.
  Result<void> read_maps() {
    constexpr std::size_t kSlicesAtOnce = VersionCache::kBlocksMax / 4;
    VersionCache cache(timelines_);
    for (auto next = made_.begin(); next != made_.end();) {
      const auto first = next;
      std::vector<std::span<const InodeSlice>> some;
      std::size_t slices = 0;
      for (; next != made_.end() && slices < kSlicesAtOnce; ++next) {
        some.emplace_back(next->second.slices);
        slices += next->second.slices.size();
      }
      const auto fetched = prefetch_map_nodes(cache, all_.context(), some);
      if (!fetched) return fetched.error();
      for (auto each = first; each != next; ++each) {
        auto maps =
            read_map_spans(timelines_, cache, all_.context(), each->first, each->second.slices);
        if (!maps) return maps.error();
        each->second.maps = std::move(*maps);
      }
    }
    return {};
  }

  void add_blocks(const One& one, std::vector<Lbn>& to) const {
    for (const MapSpan& each : one.maps) {
      for (const ifsck::BlockMap::Run& run : each.map.runs) {
        timelines_.add_written(range_of(run), to);
      }
    }
    for (const InodeSlice& each : one.slices) {
      if (const ifsck::FsBlock block = attributes_of(each)) {
        timelines_.add_written(layout_.bytes_of(block).covering_blocks(), to);
      }
    }
  }
  [[nodiscard]] BlockRange range_of(const ifsck::BlockMap::Run& run) const {
    return ByteRange{layout_.bytes_of(run.physical).offset, run.count * layout_.block_bytes()}
        .covering_blocks();
  }
  [[nodiscard]] ByteRuns runs_of(const ifsck::BlockMap& map) const {
    ByteRuns runs;
    for (const ifsck::BlockMap::Run& each : map.runs) {
      if (each.unwritten) continue;
      const std::uint64_t block_bytes = layout_.block_bytes();
      runs.push_back({each.logical * block_bytes, layout_.bytes_of(each.physical).offset,
                      each.count * block_bytes});
    }
    return runs;
  }
  // 0: none.
  [[nodiscard]] ifsck::FsBlock attributes_of(const InodeSlice& slice) const {
    const ifsck::FsBlock block = ExtInode(slice.bytes).attributes();
    return state_of(slice.bytes).exists && block != 0 && layout_.may_claim(block) ? block : 0;
  }

  Events events_of(const One& one) const {
    Events events;
    const auto at = [&](SequenceNumber moment, VersionTime time) -> Event& {
      Event& event = events[moment];
      event.time = time;
      return event;
    };
    for (const InodeSlice& each : one.slices) at(each.from, each.time).inode = true;
    for (const MapSpan& each : one.maps) at(each.from, each.time).map = true;
    if (one.names != nullptr) {
      for (const Instant& each : one.names->changes()) {
        at(each.at, each.time).names = true;
      }
    }
    std::vector<Lbn> blocks;
    for (std::size_t i = 0; i < one.maps.size(); ++i) {
      const SequenceNumber end = i + 1 < one.maps.size() ? one.maps[i + 1].from : kEndless;
      blocks.clear();
      for (const ifsck::BlockMap::Run& run : one.maps[i].map.runs) {
        if (!run.unwritten) timelines_.add_written(range_of(run), blocks);
      }
      ifsck::sort_each_once(blocks);
      // (What is written by the write that made the map is known by that.)
      for (const Lbn lbn : blocks) {
        for (const auto& version : timelines_.of(lbn, before(one.maps[i].from), end)) {
          at(version.sequence, version.time).written.push_back(lbn);
        }
      }
    }
    for (std::size_t i = 0; i < one.slices.size(); ++i) {
      const ifsck::FsBlock block = attributes_of(one.slices[i]);
      if (block == 0) continue;
      const SequenceNumber end = i + 1 < one.slices.size() ? one.slices[i + 1].from : kEndless;
      blocks.clear();
      timelines_.add_written(layout_.bytes_of(block).covering_blocks(), blocks);
      for (const Lbn lbn : blocks) {
        for (const auto& version : timelines_.of(lbn, before(one.slices[i].from), end)) {
          at(version.sequence, version.time).attributes = true;
        }
      }
    }
    return events;
  }
  [[nodiscard]] SequenceNumber before(SequenceNumber moment) const {
    return moment <= timelines_.stretch().first ? moment : SequenceNumber{moment.value - 1};
  }

  void find_states(One& one) {
    auto& states = one.history.states;
    std::size_t slice = 0;
    std::size_t map = 0;
    for (const auto& [moment, event] : events_of(one)) {
      if (states.empty()) {
        states.push_back({moment, event.time, state_of(one.slices[0].bytes), false});
        continue;
      }
      const InodeSlice& was = one.slices[slice];
      const MapSpan& lay = one.maps[map];
      if (event.inode) ++slice;
      if (event.map && one.maps[map].from != moment) ++map;
      const InodeSlice& is = one.slices[slice];
      ObjectHistory::State next{moment, event.time, state_of(is.bytes), false};
      if (!next.object.exists && !states.back().object.exists) continue;
      const bool looks_alike = next.object.looks_like(states.back().object);
      if (!looks_alike) {
        next.contents_changed = event.map || event.names || event.attributes ||
                                !event.written.empty() || inline_changed(was, is);
        states.push_back(next);
        continue;
      }
      if (!next.object.exists) continue;
      next.contents_changed = true;
      if (event.names || (event.inode && inline_changed(was, is))) {
        states.push_back(next);
        continue;
      }
      Doubtful doubtful{.state = states.size(), .inode = event.inode, .compared = {}};
      const bool directory = ExtInode(is.bytes).is_directory();
      if (!directory && (event.map || !event.written.empty())) {
        const ByteRuns before = runs_of(lay.map);
        const ByteRuns after = event.map ? runs_of(one.maps[map].map) : ByteRuns();
        doubtful.compared.push_back(comparison_.add({.before = &before,
                                                     .after = event.map ? &after : &before,
                                                     .size = next.object.size,
                                                     .written = event.written,
                                                     .at = moment}));
      }
      if (event.attributes) {
        const ByteRange place = layout_.bytes_of(attributes_of(is));
        doubtful.compared.push_back(comparison_.add_place(
            {place.offset + kAttributesHead, place.length - kAttributesHead}, moment));
      }
      if (doubtful.compared.empty()) {
        next.contents_changed = next.seen = false;
        if (event.inode) states.push_back(next);
        continue;
      }
      states.push_back(next);
      doubtful_[&one].push_back(std::move(doubtful));
    }
  }

  // What is in the inode itself.
  static bool inline_changed(const InodeSlice& was, const InodeSlice& is) {
    if (has_inline_contents(was.bytes) != has_inline_contents(is.bytes)) return true;
    if (!ExtInode(is.bytes).is_directory() && has_inline_contents(is.bytes) &&
        inline_contents(was.bytes) != inline_contents(is.bytes)) {
      return true;
    }
    // Another block of attributes has others: the same ones share one.
    if (ExtInode(was.bytes).attributes() != ExtInode(is.bytes).attributes()) return true;
    const auto attributes = [](const InodeSlice& slice) {
      auto all = attributes_of_inode(slice.bytes);
      // (That is contents.)
      std::erase_if(all, [](const ExtendedAttribute& each) { return each.name == "system.data"; });
      return all;
    };
    return !std::ranges::equal(attributes(was), attributes(is),
                               [](const ExtendedAttribute& one, const ExtendedAttribute& other) {
                                 return one.name == other.name &&
                                        one.value_inode == other.value_inode &&
                                        std::ranges::equal(one.value, other.value);
                               });
  }

  void drop_same(One& one) {
    const auto found = doubtful_.find(&one);
    if (found == doubtful_.end()) return;
    std::vector<bool> dropped(one.history.states.size());
    for (const Doubtful& each : found->second) {
      const bool same =
          std::ranges::all_of(each.compared, [this](std::size_t i) { return comparison_.same(i); });
      if (!same) continue;
      ObjectHistory::State& state = one.history.states[each.state];
      state.contents_changed = state.seen = false;
      dropped[each.state] = !each.inode;
    }
    std::size_t i = 0;
    std::erase_if(one.history.states, [&](const auto&) { return dropped[i++]; });
  }

  static constexpr std::uint64_t kAttributesHead = 32;

  ExtHistory& all_;
  BlockTimelines& timelines_;
  const ifsck::ExtLayout& layout_;
  ContentComparison comparison_;
  std::map<InodeNumber, One> made_;
  std::map<const One*, std::vector<Doubtful>> doubtful_;
};

ObjectNumber ExtHistory::root() const { return EXT2_ROOT_INO; }

Result<void> ExtHistory::load(std::span<const ObjectNumber> numbers) {
  std::vector<InodeNumber> some;
  for (const ObjectNumber each : numbers) {
    if (each == 0 || each > context().layout.inodes() || all_.contains(each)) continue;
    some.push_back(static_cast<InodeNumber>(each));
  }
  ifsck::sort_each_once(some);
  return some.empty() ? Result<void>{} : Loading(*this).run(some);
}

const ObjectHistory* ExtHistory::find(ObjectNumber number) const {
  const auto found = all_.find(number);
  return found == all_.end() ? nullptr : &found->second.history;
}

const NameHistory* ExtHistory::names(ObjectNumber number) const {
  const auto found = all_.find(number);
  return found == all_.end() ? nullptr : found->second.names.get();
}

std::span<const std::byte> ExtHistory::inode(ObjectNumber number, SequenceNumber at) const {
  const auto found = all_.find(number);
  CHECK(found != all_.end());
  const auto& slices = found->second.slices;
  const auto behind = std::ranges::upper_bound(slices, at, {}, &InodeSlice::from);
  CHECK(behind != slices.begin());
  return std::prev(behind)->bytes;
}

ObjectState ExtHistory::state(ObjectNumber number, SequenceNumber at) const {
  return state_of(inode(number, at));
}

Result<FileContents> ExtHistory::contents(ObjectNumber number, SequenceNumber at) {
  if (const auto loaded = load(std::span(&number, 1)); !loaded) return loaded.error();
  return FileContents::open(
      timelines_->past(), context(),
      {.number = static_cast<InodeNumber>(number), .inode = inode(number, at), .at = at});
}

Result<ObjectAttributes> ExtHistory::attributes(ObjectNumber number, SequenceNumber at) {
  if (const auto loaded = load(std::span(&number, 1)); !loaded) return loaded.error();
  return read_attributes(timelines_->past(), context(), inode(number, at), at);
}

}  // namespace mariner::uvfs
