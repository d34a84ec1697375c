#include "ifsck/baseline.h"

namespace mariner::ifsck {

void Baseline::note(const Finding& finding) {
  switch (finding.code) {
    case Finding::Code::kBlockMarked: mismarked.insert(finding.block); break;
    case Finding::Code::kInodeMarked: mismarked_inodes.insert(finding.inode); break;
    case Finding::Code::kAttributeCount: doubtful_attributes.insert(finding.block); break;
    default:
      if (is_derived(finding.code) && finding.group != Finding::kAll) {
        doubtful.insert(finding.group);
      }
  }
}

void BaselineChange::apply(SequenceNumber at, Baseline& baseline) const {
  baseline.at = at;
  baseline.owners.erase_if(
      [&](FsBlock block) { return disowned.contains(block) || owned.contains(block); });
  for (const auto& [block, owner] : owned) baseline.owners.add(block, owner);
  baseline.owners.sort();
  baseline.attributes.erase_if([&](FsBlock block) { return attributes.contains(block); });
  for (const auto& [block, count] : attributes) {
    if (count != 0) baseline.attributes.add(block, count);
  }
  baseline.attributes.sort();
  for (const auto& [group, delta] : groups) {
    Baseline::Group& counts = baseline.groups[group];
    counts.free_blocks += delta.free_blocks;
    counts.free_inodes += delta.free_inodes;
    counts.directories += delta.directories;
  }
  for (const FsBlock block : blocks) baseline.mismarked.erase(block);
  for (const InodeNumber inode : inodes) baseline.mismarked_inodes.erase(inode);
  // Those are all looked at each time.
  baseline.doubtful.clear();
  baseline.doubtful_attributes.clear();
  for (const Finding& each : wrong) baseline.note(each);
}

}  // namespace mariner::ifsck
