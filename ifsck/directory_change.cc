#include "ifsck/directory_change.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "ifsck/directory_reader.h"

namespace mariner::ifsck {
namespace {

using Entry = DirectoryChange::Entry;
using Dot = DirectoryChange::Dot;
using Places = std::unordered_map<std::uint64_t, FsBlock>;  // by logical block

// Of entries in a row that are not there any more.
constexpr std::size_t kGoneMax = 8;
// Of one directory, that are kept.
constexpr std::size_t kFindingsMax = 64;

Places places_of(const CheckedInode& inode) {
  Places places;
  if (!inode.directory || inode.inlined) return places;
  for (const BlockMap::Run& run : inode.map.runs) {
    for (std::uint64_t i = 0; i < run.count; ++i) places[run.logical + i] = run.physical + i;
  }
  return places;
}

// Of a directory's block, whether it may be other than at the other moment.
auto changed_from(const MomentChange& change, const MomentChange::Inode& inode,
                  const Places& other) {
  // (Checksums have the generation; and whether names are where their hashes belong is another
  // question of the same blocks.)
  const bool alike =
      inode.then.generation == inode.now.generation && inode.then.indexed == inode.now.indexed;
  return [&change, alike, &other](std::uint64_t logical, FsBlock block) {
    const auto found = other.find(logical);
    return !alike || found == other.end() || found->second != block || change.dirty.contains(block);
  };
}

class Collector final : public DirectoryVisitor {
 public:
  Collector(const ExtContext& context, const std::function<void(const Finding&)>& found)
      : context_(context), found_(found) {}
  void found(const Finding& finding) override {
    found_(finding);
    told_all = told_all && findings.size() < kFindingsMax;
    if (told_all) findings.push_back(finding);
  }
  void dot(InodeNumber inode, bool parent) override { dots.push_back({inode, parent}); }
  void entry(InodeNumber inode, std::uint8_t type, std::string_view /*name*/) override {
    entries.push_back({inode, type});
  }
  // Whose inode can be one.
  void drop_impossible() {
    std::erase_if(entries, [this](const Entry& each) {
      return each.inode > context_.layout.inodes() || context_.is_reserved(each.inode);
    });
  }

  std::vector<Dot> dots;
  std::vector<Finding> findings;
  bool told_all = true;
  std::vector<Entry> entries;

 private:
  const ExtContext& context_;
  const std::function<void(const Finding&)>& found_;
};

// What stands in the same order in both, as nearly all does, and then all else.
class Comparison {
 public:
  Comparison(const MomentChange& change, DirectoryChange& out) : change_(change), out_(out) {}

  void run() {
    drop_in_order();
    std::ranges::sort(out_.then);
    std::ranges::sort(out_.now);
    drop_in_order();
  }

 private:
  void drop_in_order() {
    std::vector<Entry>& then = out_.then;
    std::vector<Entry>& now = out_.now;
    std::size_t old = 0;
    std::size_t kept_old = 0;
    std::size_t kept_new = 0;
    const auto keep_old = [&] { then[kept_old++] = then[old++]; };
    for (std::size_t i = 0; i < now.size(); ++i) {
      const Entry each = now[i];
      const auto next = std::span(then).subspan(old).first(std::min(kGoneMax, then.size() - old));
      const auto same = std::ranges::find(next, each);
      if (same == next.end()) {
        now[kept_new++] = each;
        continue;
      }
      for (auto gone = same - next.begin(); gone > 0; --gone) keep_old();
      if (change_.inodes.contains(each.inode)) {
        now[kept_new++] = each;
        keep_old();
      } else {
        out_.same.push_back(each.inode);
        ++old;
      }
    }
    while (old < then.size()) keep_old();
    then.resize(kept_old);
    now.resize(kept_new);
  }

  const MomentChange& change_;
  DirectoryChange& out_;
};

}  // namespace

Result<DirectoryChange> DirectoryChange::find(const MomentChange& change, InodeNumber number,
                                              std::shared_ptr<const MomentChange::Inode> inode,
                                              const std::function<void(const Finding&)>& found) {
  const Places then = places_of(inode->then);
  const Places now = places_of(inode->now);
  const std::function<void(const Finding&)> nobody = [](const Finding&) {};
  Collector before(change.now, nobody);
  Collector after(change.now, found);
  const auto blocks_of = [number](const CheckedInode& one, bool trusted) {
    return DirectoryBlocks{.number = number,
                           .map = &one.map,
                           .inlined = one.inlined,
                           .indexed = one.indexed,
                           .trusted = trusted};
  };
  if (inode->then.directory) {
    const auto done = read_directory(change.then, blocks_of(inode->then, true),
                                     changed_from(change, *inode, now), before);
    if (!done) return done.error();
  }
  if (inode->now.directory) {
    const auto done = read_directory(change.now, blocks_of(inode->now, false),
                                     changed_from(change, *inode, then), after);
    if (!done) return done.error();
  }
  before.drop_impossible();
  DirectoryChange out{.of = std::move(inode),
                      .dots_then = std::move(before.dots),
                      .dots_now = std::move(after.dots),
                      .findings = std::move(after.findings),
                      .told_all = after.told_all,
                      .then = std::move(before.entries),
                      .now = std::move(after.entries),
                      .same = {}};
  Comparison(change, out).run();
  return out;
}

Result<void> DirectoryChange::prefetch(const MomentChange& change,
                                       const std::vector<InodeNumber>& numbers) {
  std::vector<Lbn> before;
  std::vector<Lbn> after;
  const auto want = [&](const Places& places, const auto& wanted, std::vector<Lbn>& blocks) {
    for (const auto& [logical, block] : places) {
      if (!wanted(logical, block)) continue;
      const BlockRange range = change.now.layout.bytes_of(block).covering_blocks();
      for (Lbn lbn = range.first; lbn < range.end(); lbn = lbn + BlockCount{1}) {
        blocks.push_back(lbn);
      }
    }
  };
  for (const InodeNumber number : numbers) {
    const MomentChange::Inode& inode = *change.inodes.at(number);
    const Places then = places_of(inode.then);
    const Places now = places_of(inode.now);
    want(then, changed_from(change, inode, now), before);
    want(now, changed_from(change, inode, then), after);
  }
  const View::Wish wishes[] = {{&change.then.volume.view(), std::move(before)},
                               {&change.now.volume.view(), std::move(after)}};
  return View::prefetch_all(wishes);
}

bool DirectoryChange::is_still(const MomentChange& change, InodeNumber number,
                               const BlockRanges& written,
                               const std::unordered_set<InodeNumber>& also_changed) const {
  if (change.inodes.at(number) != of) return false;
  for (const BlockMap::Run& run : of->now.map.runs) {
    if (of->now.directory && written.overlaps(run.physical, run.physical + run.count)) return false;
  }
  return also_changed.empty() ||
         std::ranges::none_of(same, [&](InodeNumber each) { return also_changed.contains(each); });
}

}  // namespace mariner::ifsck
