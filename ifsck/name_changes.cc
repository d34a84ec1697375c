#include "ifsck/name_changes.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_map>

#include "ifsck/directory_reader.h"

namespace mariner::ifsck {
namespace {

using Places = std::unordered_map<std::uint64_t, FsBlock>;  // by logical block

Places places_of(const CheckedInode& inode) {
  Places places;
  if (!inode.directory || inode.inlined) return places;
  for (const BlockMap::Run& run : inode.map.runs) {
    for (std::uint64_t i = 0; i < run.count; ++i) {
      places.emplace(run.logical + i, run.physical + i);
    }
  }
  return places;
}

class Collector final : public DirectoryVisitor {
 public:
  void found(const Finding& /*finding*/) override {}
  void dot(InodeNumber /*inode*/, bool /*parent*/) override {}
  void entry(InodeNumber inode, std::uint8_t type, std::string_view name) override {
    names.push_back({std::string(name), inode, type});
  }
  std::vector<DirectoryName> names;
};

Result<std::vector<DirectoryName>> names_of(InodeNumber number, const DirectoryAt& at,
                                            const Places& others, const BlockRanges& dirty) {
  Collector collector;
  if (at.inode.directory) {
    const auto wanted = [&](std::uint64_t logical, FsBlock block) {
      const auto other = others.find(logical);
      return dirty.contains(block) || other == others.end() || other->second != block;
    };
    const DirectoryBlocks blocks{
        .number = number, .map = &at.inode.map, .inlined = at.inode.inlined, .indexed = false};
    const auto done = read_directory(at.context, blocks, wanted, collector);
    if (!done) return done.error();
  }
  std::ranges::sort(collector.names);
  return std::move(collector.names);
}

}  // namespace

Result<NameChanges> find_name_changes(InodeNumber number, const DirectoryAt& from,
                                      const DirectoryAt& to, const BlockRanges& dirty) {
  const auto before = names_of(number, from, places_of(to.inode), dirty);
  if (!before) return before.error();
  const auto after = names_of(number, to, places_of(from.inode), dirty);
  if (!after) return after.error();
  NameChanges changes;
  std::ranges::set_difference(*before, *after, std::back_inserter(changes.lost));
  std::ranges::set_difference(*after, *before, std::back_inserter(changes.gained));
  return changes;
}

}  // namespace mariner::ifsck
