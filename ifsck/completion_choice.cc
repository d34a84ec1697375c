#include "ifsck/completion_choice.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "ifsck/map_comparison.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

// Blocks of contents that are taken from the later moment: 256 MiB.
constexpr std::uint64_t kBlocksMax = 64 * 1024;
// Inodes that have to go with one: whatever an image says, the search for them ends soon.
constexpr std::size_t kCompanionsMax = 4096;

// Calls `visit(first block, count, is of attributes)` for all that an inode has.
template <typename Visit>
void for_each_stretch(const CheckedInode& inode, Visit visit) {
  for (const BlockMap::Run& run : inode.map.runs) visit(run.physical, run.count, false);
  for (const BlockMap::Node& node : inode.map.nodes) visit(node.block, 1, false);
  if (inode.attributes != 0) visit(inode.attributes, 1, true);
}

// Of a directory's blocks.
bool is_of_entries(Code code) {
  switch (code) {
    case Code::kDirectoryBlock:
    case Code::kDirectoryHole:
    case Code::kDots:
    case Code::kEntryName: return true;
    default: return false;
  }
}

}  // namespace

void CompletionChoice::Claims::close() {
  std::ranges::sort(stretches_, {}, &Stretch::begin);
  FsBlock end = 0;
  for (Stretch& each : stretches_) each.ends_so_far = end = std::max(end, each.end);
}

template <typename Visit>
void CompletionChoice::Claims::for_each_other(FsBlock begin, std::uint64_t count, InodeNumber inode,
                                              bool shared, Visit visit) const {
  auto at = std::ranges::upper_bound(stretches_, begin, {}, &Stretch::ends_so_far);
  for (; at != stretches_.end() && at->begin < begin + count; ++at) {
    if (at->end > begin && at->inode != inode && !(shared && at->shared)) visit(at->inode);
  }
}

Result<CompletionChoice> CompletionChoice::make(const CompletionRequest& request,
                                                const std::set<InodeNumber>& stay) {
  CompletionChoice choice(request);
  if (const auto done = choice.prepare(); !done) return done.error();
  choice.take_findings();
  choice.stuck_.insert(stay.begin(), stay.end());
  choice.choose();
  return choice;
}

// ---- what there is

Result<void> CompletionChoice::prepare() {
  const auto find = [this](const ExtContext& at, const std::vector<BlockRange>& changed,
                           RecheckMemory* memory) {
    if (memory != nullptr) memory->begin(at);
    return MomentChange::find(request_->then, at, request_->known, changed, {.memory = memory});
  };
  auto now = find(request_->now, request_->changed_now, request_->memory_now);
  if (!now) return now.error();
  now_.emplace(std::move(*now));
  auto later = find(request_->later, request_->changed_later, request_->memory_later);
  if (!later) return later.error();
  later_.emplace(std::move(*later));
  std::vector<BlockRanges::Range> dirty(now_->dirty.begin(), now_->dirty.end());
  dirty.insert(dirty.end(), later_->dirty.begin(), later_->dirty.end());
  dirty_ = BlockRanges(std::move(dirty));
  for (const auto& [number, inode] : now_->inodes) {
    trios_[number] = {&inode->then, &inode->now, &inode->then};
  }
  for (const auto& [number, inode] : later_->inodes) {
    Trio& trio = trios_[number];
    trio.later = &inode->now;
    if (trio.now == nullptr) trio.then = trio.now = &inode->then;
  }
  for (const auto& [number, trio] : trios_) {
    for_each_stretch(*trio.now, [&](FsBlock first, std::uint64_t count, bool shared) {
      claims_.add(first, count, number, shared);
    });
  }
  claims_.close();
  if (const auto done = collect_names(); !done) return done;
  return add_named();
}

Result<void> CompletionChoice::collect_names() {
  for (const auto& [number, trio] : trios_) {
    if (!trio.now->directory && !trio.later->directory) continue;
    auto changes = find_name_changes(number, {request_->now, *trio.now},
                                     {request_->later, *trio.later}, dirty_);
    if (!changes) return changes.error();
    for (const DirectoryName& each : changes->lost) {
      lost_[each.inode].push_back({number, each});
      lost_by_[{number, each.name}].insert(each.inode);
    }
    for (const DirectoryName& each : changes->gained) {
      gained_[each.inode].push_back({number, each});
      gained_by_[{number, each.name}].insert(each.inode);
    }
    if (!trio.now->directory) {
      if (const auto done = collect_begun(number, trio, *changes); !done) return done;
    }
    names_.emplace(number, std::move(*changes));
  }
  return {};
}

// Names that a directory will have, and whose blocks say so already: they were under way.
Result<void> CompletionChoice::collect_begun(InodeNumber number, const Trio& trio,
                                             const NameChanges& changes) {
  const CheckedInode none;
  auto written =
      find_name_changes(number, {request_->now, none}, {request_->now, *trio.later}, dirty_);
  if (!written) return written.error();
  std::ranges::set_intersection(changes.gained, written->gained,
                                std::back_inserter(begun_[number]));
  return {};
}

// Inodes that are the same at all moments, but for their names.
Result<void> CompletionChoice::add_named() {
  std::set<InodeNumber> numbers;
  for (const auto* list : {&lost_, &gained_}) {
    for (const auto& [number, names] : *list) numbers.insert(number);
  }
  for (const InodeNumber number : numbers) {
    if (trios_.contains(number) || number > request_->now.layout.inodes()) continue;
    auto bytes = read_inode(request_->now, number);
    if (!bytes) return bytes.error();
    if (bytes->empty()) continue;
    auto checked = check_inode(request_->now, number, *bytes, true);
    if (!checked) return checked.error();
    if (checked->directory) continue;  // one that moves is not the same
    const CheckedInode& same = unchanged_.emplace_back(std::move(*checked));
    trios_[number] = {&same, &same, &same};
  }
  return {};
}

void CompletionChoice::take_findings() {
  for (const Finding& each : request_->findings_later) {
    if (is_derived(each.code)) continue;
    stuck_.insert(each.code == Code::kEntryInode ? static_cast<InodeNumber>(each.found)
                                                 : each.inode);
  }
  for (const Finding& each : request_->findings_now) {
    if (is_of_inode(each.code) || is_of_entries(each.code)) wrong_[each.inode].insert(each.code);
    if (each.code == Code::kUnattached) unattached_.insert(each.inode);
    if (each.code == Code::kLinks) links_[each.inode] = {each.expected, each.found};
    if (each.code == Code::kDirectoryLinked) links_[each.inode] = {each.found, 1};
  }
}

void CompletionChoice::choose() {
  for (const Finding& each : request_->findings_now) {
    if (!is_derived(each.code) && !complete(each)) ++given_up_;
    add_followers();
  }
}

bool CompletionChoice::complete(const Finding& finding) {
  switch (finding.code) {
    case Code::kEntryInode: return add(static_cast<InodeNumber>(finding.found));
    // Said of one that is not in use.
    case Code::kInodeDeleted: {
      const auto found = trios_.find(finding.inode);
      if (found != trios_.end() && found->second.now->kind == 0) return true;
      return add(finding.inode);
    }
    // These are set to what is so, if nothing better can be done about it.
    case Code::kInodeSize:
    case Code::kInodeBlocks:
    case Code::kClaimedTwice: (void)add(finding.inode); return true;
    case Code::kLinks:
    case Code::kDirectoryLinked:
      if (role_of(finding.inode) == Role::kNames) (void)add(finding.inode);
      return true;
    case Code::kParent:
    case Code::kEntryType: return true;
    default: return finding.inode != 0 && add(finding.inode);
  }
}

// ---- who may go

// The same file, later.
bool CompletionChoice::lives_on(const Trio& trio) const {
  const bool alike = trio.later->kind == trio.now->kind || trio.now->kind == CheckedInode::kStrange;
  return trio.now->kind != 0 && trio.later->kind != 0 && alike &&
         trio.later->generation == trio.now->generation;
}

bool CompletionChoice::was_there(const Trio& trio) const {
  return trio.now->kind != 0 && trio.then->kind == trio.now->kind &&
         trio.then->generation == trio.now->generation;
}

bool CompletionChoice::is_whole(InodeNumber number) const {
  return trios_.at(number).now->kind != 0 && !wrong_.contains(number) &&
         !unattached_.contains(number);
}

// The inode's own since it was allocated; else its bytes are those of whoever had it before.
bool CompletionChoice::was_written(InodeNumber number, const BlockMap::Node& node) const {
  if (now_->dirty.contains(node.block)) return true;
  const std::uint32_t* const owner = request_->known.owners.find(node.block);
  return owner != nullptr && *owner == number;
}

// Something is wrong with it that its later blocks mend, and they are what it has now where it has
// any: what is written elsewhere later is not what it was.
bool CompletionChoice::may_follow(InodeNumber number) const {
  const Trio& trio = trios_.at(number);
  if (trio.now->directory) return true;  // its names are told apart
  std::vector<MapComparison::Range> garbage;
  const std::uint64_t each = request_->now.layout.block_bytes() / sizeof(std::uint32_t);
  for (const BlockMap::Node& node : trio.now->map.nodes) {
    if (was_written(number, node)) continue;
    std::uint64_t count = 1;
    for (std::uint8_t i = 0; i < node.height; ++i) count *= each;
    garbage.emplace_back(node.logical, node.logical + count);
  }
  const bool any_garbage = !garbage.empty();
  const MapComparison maps(trio.now->map, trio.later->map, std::move(garbage));
  if (!maps.agree()) return false;
  // (Sizes and counts of one that grew are set to what is so; one that was being cut off is cut.)
  const auto is_mere_size = [](Code code) {
    return code == Code::kInodeSize || code == Code::kInodeBlocks || code == Code::kClaimedTwice;
  };
  if (any_garbage || !std::ranges::all_of(wrong_.at(number), is_mere_size)) return true;
  return maps.shrinks() && trio.later->size >= trio.now->size;
}

CompletionChoice::Role CompletionChoice::role_of(InodeNumber number) const {
  const auto found = trios_.find(number);
  if (found == trios_.end() || stuck_.contains(number) ||
      (request_->now.is_reserved(number) && number != EXT2_ROOT_INO)) {
    return Role::kNone;
  }
  const Trio& trio = found->second;
  if (trio.now->kind == 0) {
    if (trio.later->kind == 0) return Role::kVanish;
    // One whose name is another one later may be another file.
    return lost(number).empty() ? Role::kCreate : Role::kNone;
  }
  if (!lives_on(trio)) {
    return unattached_.contains(number) && was_there(trio) ? Role::kRemove : Role::kNone;
  }
  if (wrong_.contains(number) && may_follow(number)) return Role::kContent;
  if (unattached_.contains(number)) return Role::kAttach;
  // Within an inode there is no room for one name more.
  if (trio.now->directory && trio.now->inlined) return Role::kContent;
  return links_.contains(number) || replacing_.contains(number) ? Role::kNames : Role::kNone;
}

bool CompletionChoice::may_gain(const PlacedName& name) const {
  const auto holders = lost_by_.find({name.directory, name.name.name});
  if (holders == lost_by_.end()) return true;
  return std::ranges::all_of(holders->second, [&](InodeNumber each) {
    const auto found = trios_.find(each);
    return each == name.name.inode || (found != trios_.end() && found->second.now->kind == 0);
  });
}

std::optional<CompletionChoice::Going> CompletionChoice::plan(InodeNumber number) const {
  Going going{.role = role_of(number)};
  switch (going.role) {
    case Role::kNone: return {};
    case Role::kRemove: return going;
    case Role::kVanish: going.drops = true; return going;
    case Role::kNames: return plan_names(number);
    case Role::kContent:
      if (!unattached_.contains(number)) return going;
      break;
    case Role::kCreate:
    case Role::kAttach: break;
  }
  for (const PlacedName& each : gained(number)) {
    if (may_gain(each)) going.gains.emplace(each.directory, each.name.name);
  }
  if (unattached_.contains(number) && going.gains.empty()) return {};
  return going;
}

// Whose names are not as many as it says, or who takes another one's name.
std::optional<CompletionChoice::Going> CompletionChoice::plan_names(InodeNumber number) const {
  Going going{.role = Role::kNames};
  for (const PlacedName& each : gained(number)) {
    if (may_gain(each)) going.gains.emplace(each.directory, each.name.name);
  }
  going.drops = !lost(number).empty();
  if (replacing_.contains(number)) {
    if (going.gains.size() == gained(number).size()) return going;
    return {};
  }
  const Links& links = links_.at(number);
  if (links.names <= lost(number).size()) return {};
  const std::uint64_t kept = links.names - lost(number).size();
  if (going.drops && kept == links.said) {
    going.gains.clear();
    return going;
  }
  if (!gained(number).empty() && going.gains.size() == gained(number).size() &&
      kept + going.gains.size() == links.said && trios_.at(number).now->kind != EXT2_FT_DIR) {
    return going;
  }
  return {};
}

bool CompletionChoice::satisfies(const Going& going, Need need) {
  switch (need) {
    case Need::kNothing: return true;
    case Need::kBlocks: return going.role == Role::kContent || going.role == Role::kRemove;
  }
  return false;
}

// With all that has to go with it; or nobody.
bool CompletionChoice::add(InodeNumber number) {
  std::map<InodeNumber, Going> with;
  std::vector<std::pair<InodeNumber, Need>> open{{number, Need::kNothing}};
  std::uint64_t blocks = blocks_;
  while (!open.empty()) {
    const auto [one, need] = open.back();
    open.pop_back();
    const auto before = going_.find(one);
    if (before != going_.end()) {
      if (!satisfies(before->second, need)) return false;
      continue;
    }
    auto found = with.find(one);
    const bool is_new = found == with.end();
    if (is_new) {
      auto planned = plan(one);
      if (!planned) return false;
      found = with.emplace(one, std::move(*planned)).first;
    }
    if (!satisfies(found->second, need)) return false;
    if (!is_new) continue;
    const Role role = found->second.role;
    if (role == Role::kCreate || role == Role::kContent) blocks += contents_of(one);
    if (blocks > kBlocksMax) return false;
    bool many = with.size() > kCompanionsMax;
    for_each_needed(one, found->second, [&](InodeNumber other, Need what) {
      many = many || open.size() >= kCompanionsMax;
      if (!many) open.emplace_back(other, what);
    });
    if (many) return false;
  }
  blocks_ = blocks;
  going_.insert(with.begin(), with.end());
  for (const auto& [each, going] : with) new_.push_back(each);
  return true;
}

template <typename Visit>
void CompletionChoice::for_each_needed(InodeNumber number, const Going& going, Visit visit) const {
  const Trio& trio = trios_.at(number);
  if (going.role == Role::kCreate || going.role == Role::kContent) {
    for_each_stretch(*trio.later, [&](FsBlock first, std::uint64_t count, bool shared) {
      claims_.for_each_other(first, count, number, shared,
                             [&](InodeNumber other) { visit(other, Need::kBlocks); });
    });
  }
  for (const auto& [directory, name] : going.gains) {
    const CheckedInode& at = *trios_.at(directory).now;
    if (!at.directory || at.inlined) visit(directory, Need::kNothing);
  }
}

// (Folders within folders may be as deep as there are inodes: this does not call itself.)
void CompletionChoice::add_followers() {
  while (!new_.empty()) {
    const InodeNumber number = new_.front();
    new_.pop_front();
    add_followers_of(number);
  }
}

// Who goes, too, if it can: what was in a directory, and who takes a name.
void CompletionChoice::add_followers_of(InodeNumber number) {
  const Role role = going_.at(number).role;
  if (role == Role::kCreate) {
    // (What is within an inode cannot have been written before it.)
    const bool inlined = trios_.at(number).later->inlined;
    const auto all = names_.find(number);
    if (inlined && all != names_.end()) {
      for (const DirectoryName& each : all->second.gained) (void)add(each.inode);
    }
    const auto found = begun_.find(number);
    if (found == begun_.end()) return;
    for (const DirectoryName& each : found->second) (void)add(each.inode);
  }
  if (role == Role::kVanish) {
    for (const PlacedName& each : lost(number)) add_replacing(each);
  }
  if (role == Role::kRemove) {
    const auto found = names_.find(number);
    if (found == names_.end()) return;
    for (const DirectoryName& each : found->second.lost) {
      const auto inside = trios_.find(each.inode);
      if (inside == trios_.end() || inside->second.now->kind == 0) continue;
      const bool only_name = inside->second.now->directory || inside->second.now->links == 1;
      if (!only_name || links_.contains(each.inode)) continue;
      unattached_.insert(each.inode);
      (void)add(each.inode);
    }
  }
}

// A file was moved over another one, which was there before and is gone already: the move was under
// way if nothing was done to what was moved afterwards.
void CompletionChoice::add_replacing(const PlacedName& name) {
  if (trios_.at(name.name.inode).then->kind == 0) return;
  const auto takers = gained_by_.find({name.directory, name.name.name});
  if (takers == gained_by_.end()) return;
  for (const InodeNumber each : takers->second) {
    const auto found = trios_.find(each);
    if (found == trios_.end() || !is_whole(each) || !lives_on(found->second) ||
        found->second.now->changed != found->second.later->changed) {
      continue;
    }
    replacing_.insert(each);
    (void)add(each);
  }
}

std::uint64_t CompletionChoice::contents_of(InodeNumber number) const {
  std::uint64_t blocks = 0;
  for (const BlockMap::Run& run : trios_.at(number).later->map.runs) {
    for (std::uint64_t i = 0; i < run.count; ++i) blocks += is_dirty(run.physical + i) ? 1 : 0;
  }
  return blocks;
}

// ---- what is told

bool CompletionChoice::takes_blocks(InodeNumber number) const {
  const auto found = going_.find(number);
  return found != going_.end() &&
         (found->second.role == Role::kCreate || found->second.role == Role::kContent);
}

bool CompletionChoice::gains(InodeNumber directory, const DirectoryName& name) const {
  const auto found = going_.find(name.inode);
  return found != going_.end() && found->second.gains.contains({directory, name.name});
}

bool CompletionChoice::drops(InodeNumber directory, const DirectoryName& name) const {
  const auto found = going_.find(name.inode);
  if (found != going_.end() && found->second.drops) return true;
  const auto holder = trios_.find(name.inode);
  if (holder == trios_.end() || holder->second.now->kind != 0) return false;
  const auto takers = gained_by_.find({directory, name.name});
  return takers != gained_by_.end() && std::ranges::any_of(takers->second, [&](InodeNumber each) {
           return gains(directory, {.name = name.name, .inode = each});
         });
}

std::string CompletionChoice::name_of(InodeNumber number) const {
  for (const auto* list : {&gained(number), &lost(number)}) {
    if (!list->empty()) return list->front().name.name;
  }
  return {};
}

const std::vector<CompletionChoice::PlacedName>& CompletionChoice::gained(
    InodeNumber number) const {
  static const std::vector<PlacedName> kNone;
  const auto found = gained_.find(number);
  return found == gained_.end() ? kNone : found->second;
}

const std::vector<CompletionChoice::PlacedName>& CompletionChoice::lost(InodeNumber number) const {
  static const std::vector<PlacedName> kNone;
  const auto found = lost_.find(number);
  return found == lost_.end() ? kNone : found->second;
}

}  // namespace mariner::ifsck
