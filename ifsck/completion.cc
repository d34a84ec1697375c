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

#include "ifsck/completion_choice.h"
#include "ifsck/directory_entries.h"
#include "ifsck/draft.h"
#include "ifsck/inode_check.h"
#include "ifsck/mend_work.h"
#include "ifsck/moment_change.h"
#include "ifsck/name_changes.h"

namespace mariner::ifsck {
namespace {

using Role = CompletionChoice::Role;
using Kind = CompletedOperation::Kind;

// Of choosing again without directories that are full.
constexpr int kRoundsMax = 4;

// Makes it so.
class Writer {
 public:
  Writer(const CompletionRequest& request, const CompletionChoice& choice, MendWork& work)
      : request_(request), choice_(choice), work_(work) {}

  // Directories where a name that was to be kept has no room any more: they must not go.
  Result<std::set<InodeNumber>> run() {
    for (const auto& [number, going] : choice_.going()) {
      if (choice_.takes_blocks(number)) {
        if (const auto done = put_blocks(number); !done) return done.error();
      }
      if (const auto done = put_inode(number, going.role); !done) return done.error();
    }
    for (const auto& [directory, changes] : choice_.names()) {
      if (const auto done = put_names(directory, changes); !done) return done.error();
    }
    if (const auto done = work_.finish(); !done) return done.error();
    return std::move(full_);
  }

 private:
  Result<void> put_inode(InodeNumber number, Role role) {
    if (role == Role::kAttach || role == Role::kNames) return {};
    // (Later there is another one, maybe.)
    if (role == Role::kRemove) return work_.release(number);
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
    const CompletionChoice::Trio& trio = choice_.trio(number);
    std::unordered_set<FsBlock> had;
    if (!trio.later->directory) {
      for (const BlockMap::Run& run : trio.now->map.runs) {
        for (std::uint64_t i = 0; i < run.count; ++i) {
          if (choice_.is_dirty(run.physical + i)) had.insert(run.physical + i);
        }
      }
    }
    std::vector<FsBlock> wanted;
    for (const BlockMap::Run& run : trio.later->map.runs) {
      for (std::uint64_t i = 0; i < run.count; ++i) {
        const FsBlock block = run.physical + i;
        if (choice_.is_dirty(block) && !had.contains(block)) wanted.push_back(block);
      }
    }
    for (const BlockMap::Node& node : trio.later->map.nodes) wanted.push_back(node.block);
    if (trio.later->attributes != 0) wanted.push_back(trio.later->attributes);
    for (const FsBlock block : wanted) {
      const auto bytes = request_.later.read_block(block);
      if (!bytes) return bytes.error();
      if (const auto put = work_.put_block(block, *bytes); !put) return put;
    }
    return {};
  }

  // A directory whose blocks are taken has all its later names by now: those that are not to be
  // gained go again, and those that are not to be lost are put back. In another one names come and
  // go one by one.
  Result<void> put_names(InodeNumber directory, const NameChanges& changes) {
    const bool taken = choice_.takes_blocks(directory);
    const CompletionChoice::Trio& trio = choice_.trio(directory);
    if (!(taken ? trio.later : trio.now)->directory) return {};
    const auto gained = [&](const DirectoryName& each) { return choice_.gains(directory, each); };
    const auto dropped = [&](const DirectoryName& each) { return choice_.drops(directory, each); };
    std::set<std::pair<std::string_view, InodeNumber>> removed;
    for (const DirectoryName& each : taken ? changes.gained : changes.lost) {
      if (taken ? !gained(each) : dropped(each)) removed.emplace(each.name, each.inode);
    }
    if (!removed.empty()) {
      const auto done =
          change_entries(work_, directory, [&](const PlacedEntry& entry) -> std::optional<Named> {
            if (entry.dot != 0 || !removed.contains({entry.name, entry.inode})) return {};
            return Named{0, entry.type};
          });
      if (!done) return done.error();
    }
    for (const DirectoryName& each : taken ? changes.lost : changes.gained) {
      if (taken ? dropped(each) : !gained(each)) continue;
      const auto done = add_name(work_, directory, each.name, {each.inode, each.type});
      if (!done) return done.error();
      if (taken && !*done) full_.insert(directory);
    }
    return {};
  }

  const CompletionRequest& request_;
  const CompletionChoice& choice_;
  MendWork& work_;
  std::set<InodeNumber> full_;
};

Kind kind_of(const CompletionChoice& choice, InodeNumber number, Role role) {
  switch (role) {
    case Role::kCreate: return Kind::kCreated;
    case Role::kVanish:
    case Role::kRemove: return Kind::kRemoved;
    case Role::kAttach:
    case Role::kNames: return Kind::kRenamed;
    case Role::kNone:
    case Role::kContent: break;
  }
  const std::uint64_t before = choice.trio(number).now->map.blocks();
  const std::uint64_t after = choice.trio(number).later->map.blocks();
  if (after > before) return Kind::kGrown;
  return after < before ? Kind::kShrunk : Kind::kChanged;
}

// As Writer::run() says.
Result<std::set<InodeNumber>> write(const CompletionRequest& request,
                                    const CompletionChoice& choice, View& view) {
  auto volume = ExtVolume::open(view, {.writable = true});
  if (!volume) return volume.error();
  const auto layout = ExtLayout::of(*volume);
  if (!layout) return layout.error();
  const ExtContext context(*volume, *layout);
  MendWork work(context, {.findings = request.findings_now, .cut_short = false, .directories = [] {
                            return std::vector<InodeNumber>();
                          }});
  return Writer(request, choice, work).run();
}

Completion told(const CompletionChoice& choice) {
  Completion completion{.given_up = choice.given_up()};
  for (const auto& [number, going] : choice.going()) {
    completion.operations.push_back(
        {kind_of(choice, number, going.role), number, choice.name_of(number)});
  }
  return completion;
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
  std::set<InodeNumber> stay;
  for (int round = 1;; ++round) {
    const auto choice = CompletionChoice::make(request, stay);
    if (!choice) return choice.error();
    if (choice->going().empty()) return Completion{.given_up = choice->given_up()};
    Draft draft(view);
    const auto full = write(request, *choice, view);
    if (!full) return full.error();
    if (full->empty()) {
      draft.keep();
      return told(*choice);
    }
    if (round == kRoundsMax)
      return Completion{.given_up = choice->given_up() + choice->going().size()};
    stay.insert(full->begin(), full->end());
  }
}

}  // namespace mariner::ifsck
