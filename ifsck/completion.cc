#include "ifsck/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ifsck/block_ranges.h"
#include "ifsck/directory_entries.h"
#include "ifsck/draft.h"
#include "ifsck/ext_inode.h"
#include "ifsck/inode_check.h"
#include "ifsck/mend_work.h"
#include "ifsck/moment_change.h"
#include "ifsck/name_changes.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;
using Kind = CompletedOperation::Kind;

// Blocks of contents that are taken from the later moment: 256 MiB.
constexpr std::uint64_t kBlocksMax = 64 * 1024;

// An inode at both moments.
struct Pair {
  const CheckedInode* now = nullptr;
  const CheckedInode* later = nullptr;
};

// Who has which blocks at the moment: stretches that may overlap, where they must not.
class Claims {
 public:
  void add(FsBlock begin, std::uint64_t count, InodeNumber inode, bool shared) {
    stretches_.push_back({begin, begin + count, inode, shared, 0});
  }
  void close() {
    std::ranges::sort(stretches_, {}, &Stretch::begin);
    FsBlock end = 0;
    for (Stretch& each : stretches_) each.ends_so_far = end = std::max(end, each.end);
  }
  // Calls `visit(inode)` for who else has one of [begin, begin + count); what is shared on both
  // sides (attributes) does not count.
  template <typename Visit>
  void for_each_other(FsBlock begin, std::uint64_t count, InodeNumber inode, bool shared,
                      Visit visit) const {
    auto at = std::ranges::upper_bound(stretches_, begin, {}, &Stretch::ends_so_far);
    for (; at != stretches_.end() && at->begin < begin + count; ++at) {
      if (at->end > begin && at->inode != inode && !(shared && at->shared)) visit(at->inode);
    }
  }

 private:
  struct Stretch {
    FsBlock begin = 0;
    FsBlock end = 0;
    InodeNumber inode = 0;
    bool shared = false;
    FsBlock ends_so_far = 0;
  };
  std::vector<Stretch> stretches_;
};

// Calls `visit(first block, count, is of attributes)` for all that an inode has.
template <typename Visit>
void for_each_stretch(const CheckedInode& inode, Visit visit) {
  for (const BlockMap::Run& run : inode.map.runs) visit(run.physical, run.count, false);
  for (const BlockMap::Node& node : inode.map.nodes) visit(node.block, 1, false);
  if (inode.attributes != 0) visit(inode.attributes, 1, true);
}

// A name in a directory.
struct PlacedName {
  InodeNumber directory = 0;
  DirectoryName name;
};

// What can go forward, and with whom.
class Selection {
 public:
  explicit Selection(const CompletionRequest& request) : request_(request) {}

  Result<void> prepare() {
    auto now =
        MomentChange::find(request_.then, request_.now, request_.known, request_.changed_now);
    if (!now) return now.error();
    now_.emplace(std::move(*now));
    auto later =
        MomentChange::find(request_.then, request_.later, request_.known, request_.changed_later);
    if (!later) return later.error();
    later_.emplace(std::move(*later));
    std::vector<BlockRanges::Range> dirty(now_->dirty.begin(), now_->dirty.end());
    dirty.insert(dirty.end(), later_->dirty.begin(), later_->dirty.end());
    dirty_ = BlockRanges(std::move(dirty));
    for (const auto& [number, inode] : now_->inodes) pairs_[number] = {&inode.now, &inode.then};
    for (const auto& [number, inode] : later_->inodes) {
      Pair& pair = pairs_[number];
      pair.later = &inode.now;
      if (pair.now == nullptr) pair.now = &inode.then;
    }
    for (const auto& [number, pair] : pairs_) {
      for_each_stretch(*pair.now, [&](FsBlock first, std::uint64_t count, bool shared) {
        claims_.add(first, count, number, shared);
      });
    }
    claims_.close();
    if (const auto done = collect_names(); !done) return done;
    return add_named();
  }

  // How many findings have nobody who could go forward.
  std::uint64_t select() {
    for (const Finding& each : request_.findings_later) {
      for (const InodeNumber number : inodes_of(each)) stuck_.insert(number);
    }
    std::uint64_t given_up = 0;
    for (const Finding& each : request_.findings_now) {
      if (is_derived(each.code)) continue;
      const std::vector<InodeNumber> numbers = inodes_of(each);
      bool any = false;
      for (const InodeNumber number : numbers) any = add(number) || any;
      given_up += any ? 0 : 1;
    }
    return given_up;
  }

  [[nodiscard]] const std::set<InodeNumber>& chosen() const { return chosen_; }
  [[nodiscard]] bool has(InodeNumber number) const { return chosen_.contains(number); }
  [[nodiscard]] const Pair& pair(InodeNumber number) const { return pairs_.at(number); }
  [[nodiscard]] const std::map<InodeNumber, NameChanges>& names() const { return names_; }
  [[nodiscard]] bool is_dirty(FsBlock block) const { return dirty_.contains(block); }

  // One of an inode's, that it got or lost.
  [[nodiscard]] std::string name_of(InodeNumber number) const {
    for (const auto* list : {&gained_, &lost_}) {
      const auto found = list->find(number);
      if (found != list->end()) return found->second.front().name.name;
    }
    return {};
  }
  [[nodiscard]] bool has_other_names(InodeNumber number) const {
    return gained_.contains(number) || lost_.contains(number);
  }

 private:
  Result<void> collect_names() {
    for (const auto& [number, pair] : pairs_) {
      if (!pair.now->directory && !pair.later->directory) continue;
      auto changes = find_name_changes(number, {request_.now, *pair.now},
                                       {request_.later, *pair.later}, dirty_);
      if (!changes) return changes.error();
      for (const DirectoryName& each : changes->lost) {
        lost_[each.inode].push_back({number, each});
        lost_names_.emplace(number, each.name, each.inode);
      }
      for (const DirectoryName& each : changes->gained) {
        gained_[each.inode].push_back({number, each});
        gained_names_.emplace(number, each.name, each.inode);
      }
      if (!pair.now->directory) {
        if (const auto done = collect_begun(number, pair, *changes); !done) return done;
      }
      names_.emplace(number, std::move(*changes));
    }
    return {};
  }

  // Inodes that are the same at both moments, but for their names.
  Result<void> add_named() {
    std::set<InodeNumber> numbers;
    for (const auto* list : {&lost_, &gained_}) {
      for (const auto& [number, names] : *list) numbers.insert(number);
    }
    for (const InodeNumber number : numbers) {
      if (pairs_.contains(number) || number > request_.now.layout.inodes()) continue;
      auto bytes = read_inode(request_.now, number);
      if (!bytes) return bytes.error();
      if (bytes->empty()) continue;
      auto checked = check_inode(request_.now, number, *bytes, true);
      if (!checked) return checked.error();
      if (checked->directory) continue;  // one that moves is not the same
      const CheckedInode& same = unchanged_.emplace_back(std::move(*checked));
      pairs_[number] = {&same, &same};
    }
    return {};
  }

  // Names that a directory will have, and whose blocks say so already: they were under way.
  Result<void> collect_begun(InodeNumber number, const Pair& pair, const NameChanges& changes) {
    const CheckedInode none;
    auto written =
        find_name_changes(number, {request_.now, none}, {request_.now, *pair.later}, dirty_);
    if (!written) return written.error();
    std::ranges::set_intersection(changes.gained, written->gained,
                                  std::back_inserter(begun_[number]));
    return {};
  }

  static std::vector<InodeNumber> inodes_of(const Finding& finding) {
    if (is_derived(finding.code)) return {};
    if (finding.code == Code::kEntryInode) {
      // What is named; and, if that is nobody, where.
      return {static_cast<InodeNumber>(finding.found)};
    }
    if (finding.inode == 0) return {};
    return {finding.inode};
  }

  [[nodiscard]] bool may_go(InodeNumber number) const {
    return pairs_.contains(number) && !stuck_.contains(number) &&
           (!request_.now.is_reserved(number) || number == EXT2_ROOT_INO);
  }

  // With all that has to go with it; or nobody.
  bool add(InodeNumber number) {
    if (chosen_.contains(number)) return true;
    std::set<InodeNumber> with{number};
    std::vector<InodeNumber> open{number};
    while (!open.empty()) {
      const InodeNumber one = open.back();
      open.pop_back();
      if (!may_go(one)) return false;
      for_each_companion(one, [&](InodeNumber other) {
        if (!chosen_.contains(other) && with.insert(other).second) open.push_back(other);
      });
    }
    std::uint64_t blocks = blocks_;
    for (const InodeNumber one : with) blocks += contents_of(one);
    if (blocks > kBlocksMax) return false;
    blocks_ = blocks;
    chosen_.insert(with.begin(), with.end());
    return true;
  }

  [[nodiscard]] std::uint64_t contents_of(InodeNumber number) const {
    std::uint64_t blocks = 0;
    for (const BlockMap::Run& run : pairs_.at(number).later->map.runs) {
      for (std::uint64_t i = 0; i < run.count; ++i) blocks += is_dirty(run.physical + i) ? 1 : 0;
    }
    return blocks;
  }

  template <typename Visit>
  void for_each_companion(InodeNumber number, Visit visit) const {
    const Pair& pair = pairs_.at(number);
    for_each_stretch(*pair.later, [&](FsBlock first, std::uint64_t count, bool shared) {
      claims_.for_each_other(first, count, number, shared, visit);
    });
    if (const auto found = gained_.find(number); found != gained_.end()) {
      for (const PlacedName& each : found->second) {
        const auto directory = pairs_.find(each.directory);
        // (Within an inode there is no room for one more.)
        if (directory == pairs_.end() || !directory->second.now->directory ||
            directory->second.now->inlined) {
          visit(each.directory);
        }
        for_each_holder(lost_names_, each, visit);
      }
    }
    if (const auto found = lost_.find(number); found != lost_.end()) {
      // Who has the name later, as when a file takes another one's place.
      for (const PlacedName& each : found->second) for_each_holder(gained_names_, each, visit);
    }
    if (pair.later->inlined) {
      if (const auto found = names_.find(number); found != names_.end()) {
        for (const auto* list : {&found->second.lost, &found->second.gained}) {
          for (const DirectoryName& each : *list) visit(each.inode);
        }
      }
    }
    if (const auto found = begun_.find(number); found != begun_.end()) {
      for (const DirectoryName& each : found->second) visit(each.inode);
    }
    if (pair.now->directory && !pair.later->directory) {
      if (const auto found = names_.find(number); found != names_.end()) {
        for (const DirectoryName& each : found->second.lost) visit(each.inode);
      }
    }
  }

  using Holders = std::set<std::tuple<InodeNumber, std::string, InodeNumber>>;
  template <typename Visit>
  static void for_each_holder(const Holders& holders, const PlacedName& name, Visit visit) {
    auto at = holders.lower_bound({name.directory, name.name.name, 0});
    for (; at != holders.end() && std::get<0>(*at) == name.directory &&
           std::get<1>(*at) == name.name.name;
         ++at) {
      if (std::get<2>(*at) != name.name.inode) visit(std::get<2>(*at));
    }
  }

  const CompletionRequest& request_;
  std::optional<MomentChange> now_;
  std::optional<MomentChange> later_;
  BlockRanges dirty_;  // at either
  std::map<InodeNumber, Pair> pairs_;
  Claims claims_;  // now
  std::deque<CheckedInode> unchanged_;
  std::map<InodeNumber, std::vector<DirectoryName>> begun_;  // by directory
  std::map<InodeNumber, NameChanges> names_;                 // by directory
  std::map<InodeNumber, std::vector<PlacedName>> lost_;      // by inode
  std::map<InodeNumber, std::vector<PlacedName>> gained_;
  Holders lost_names_;
  Holders gained_names_;
  std::set<InodeNumber> stuck_;
  std::set<InodeNumber> chosen_;
  std::uint64_t blocks_ = 0;
};

// Makes it so.
class Writer {
 public:
  Writer(const CompletionRequest& request, const Selection& selection, MendWork& work)
      : request_(request), selection_(selection), work_(work) {}

  Result<void> run() {
    for (const InodeNumber number : selection_.chosen()) {
      if (const auto done = put_blocks(number); !done) return done;
      if (const auto done = put_inode(number); !done) return done;
    }
    for (const auto& [directory, changes] : selection_.names()) {
      if (const auto done = put_names(directory, changes); !done) return done;
    }
    return work_.finish();
  }

 private:
  Result<void> put_inode(InodeNumber number) {
    auto bytes = read_inode(request_.later, number);
    if (!bytes) return bytes.error();
    const bool unused = bytes->empty();
    if (unused) bytes->resize(work_.layout().inode_bytes());
    const GroupNumber group = work_.layout().group_of(number);
    const std::uint32_t index = (number - 1) % work_.layout().inodes_per_group();
    std::uint32_t end = work_.context().table_end(group);
    if (index >= end) {
      if (unused) return {};
      if (const auto done = extend_table(group, end, index); !done) return done;
    }
    return work_.put_inode(number, *bytes);
  }

  // The table is used as far as that from now on.
  Result<void> extend_table(GroupNumber group, std::uint32_t end, std::uint32_t index) {
    if (work_.context().is_uninitialized(group, EXT2_BG_INODE_UNINIT)) {
      if (const auto done = work_.initialize_inodes(group); !done) return done;
    }
    const InodeNumber first = group * work_.layout().inodes_per_group() + 1;
    const std::vector<std::byte> zeros(work_.layout().inode_bytes());
    for (std::uint32_t i = end; i < index; ++i) {
      const auto put =
          work_.context().volume.view().write(work_.layout().inode_place(first + i), zeros);
      if (!put) return put;
    }
    ext2fs_bg_itable_unused_set(work_.context().fs, group,
                                work_.layout().inodes_per_group() - (index + 1));
    work_.touch_descriptor(group);
    return {};
  }

  // What it has later and not now, and what says where that is.
  Result<void> put_blocks(InodeNumber number) {
    const Pair& pair = selection_.pair(number);
    std::unordered_set<FsBlock> had;
    if (!pair.later->directory) {
      for (const BlockMap::Run& run : pair.now->map.runs) {
        for (std::uint64_t i = 0; i < run.count; ++i) {
          if (selection_.is_dirty(run.physical + i)) had.insert(run.physical + i);
        }
      }
    }
    std::vector<FsBlock> wanted;
    for (const BlockMap::Run& run : pair.later->map.runs) {
      for (std::uint64_t i = 0; i < run.count; ++i) {
        const FsBlock block = run.physical + i;
        if (selection_.is_dirty(block) && !had.contains(block)) wanted.push_back(block);
      }
    }
    for (const BlockMap::Node& node : pair.later->map.nodes) wanted.push_back(node.block);
    if (pair.later->attributes != 0) wanted.push_back(pair.later->attributes);
    for (const FsBlock block : wanted) {
      const auto bytes = request_.later.read_block(block);
      if (!bytes) return bytes.error();
      if (const auto put = work_.put_block(block, *bytes); !put) return put;
    }
    return {};
  }

  // A directory that goes forward has all its later blocks by now: what is not chosen is as it was.
  // In another one the names of what is chosen change.
  Result<void> put_names(InodeNumber directory, const NameChanges& changes) {
    const bool forward = selection_.has(directory);
    const Pair& pair = selection_.pair(directory);
    if (!(forward ? pair.later : pair.now)->directory) return {};
    const auto& gone = forward ? changes.gained : changes.lost;
    const auto& come = forward ? changes.lost : changes.gained;
    const auto concerned = [&](const DirectoryName& each) {
      return selection_.has(each.inode) != forward;
    };
    std::set<std::pair<std::string_view, InodeNumber>> removed;
    for (const DirectoryName& each : gone) {
      if (concerned(each)) removed.emplace(each.name, each.inode);
    }
    if (!removed.empty()) {
      const auto done =
          change_entries(work_, directory, [&](const PlacedEntry& entry) -> std::optional<Named> {
            if (entry.dot != 0 || !removed.contains({entry.name, entry.inode})) return {};
            return Named{0, entry.type};
          });
      if (!done) return done.error();
    }
    for (const DirectoryName& each : come) {
      if (!concerned(each)) continue;
      const auto done = add_name(work_, directory, each.name, {each.inode, each.type});
      if (!done) return done.error();
    }
    return {};
  }

  const CompletionRequest& request_;
  const Selection& selection_;
  MendWork& work_;
};

Kind kind_of(const Selection& selection, InodeNumber number) {
  const Pair& pair = selection.pair(number);
  if (pair.now->kind == 0) return Kind::kCreated;
  if (pair.later->kind == 0) return Kind::kRemoved;
  const std::uint64_t before = pair.now->map.blocks();
  const std::uint64_t after = pair.later->map.blocks();
  if (after > before) return Kind::kGrown;
  if (after < before) return Kind::kShrunk;
  return selection.has_other_names(number) ? Kind::kRenamed : Kind::kChanged;
}

}  // namespace

std::string_view operation_name(CompletedOperation::Kind kind) {
  switch (kind) {
    case Kind::kCreated: return "created";
    case Kind::kRemoved: return "removed";
    case Kind::kRenamed: return "renamed";
    case Kind::kGrown: return "grown";
    case Kind::kShrunk: return "shrunk";
    case Kind::kChanged: return "changed";
  }
  return "?";
}

std::string describe(const CompletedOperation& operation) {
  return operation.name.empty()
             ? fmt::format("inode {} is {}", operation.inode, operation_name(operation.kind))
             : fmt::format("inode {}, \"{}\", is {}", operation.inode, operation.name,
                           operation_name(operation.kind));
}

Result<Completion> complete(const CompletionRequest& request, View& view) {
  Selection selection(request);
  if (const auto done = selection.prepare(); !done) return done.error();
  Completion completion;
  completion.given_up = selection.select();
  if (selection.chosen().empty()) return completion;
  Draft draft(view);
  {
    auto volume = ExtVolume::open(draft.view(), {.writable = true});
    if (!volume) return volume.error();
    const auto layout = ExtLayout::of(*volume);
    if (!layout) return layout.error();
    const ExtContext context(*volume, *layout);
    MendWork work(context, {.findings = request.findings_now,
                            .cut_short = false,
                            .directories = [] { return std::vector<InodeNumber>(); }});
    if (const auto done = Writer(request, selection, work).run(); !done) return done.error();
  }
  draft.keep();
  for (const InodeNumber number : selection.chosen()) {
    completion.operations.push_back(
        {kind_of(selection, number), number, selection.name_of(number)});
  }
  return completion;
}

}  // namespace mariner::ifsck
