// What the parts of a census tell each other: who is in use, and what is claimed and named.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ifsck/baseline.h"
#include "ifsck/block_map.h"
#include "ifsck/census.h"
#include "ifsck/ext_context.h"
#include "ifsck/finding.h"
#include "ifsck/inode_check.h"

namespace mariner::ifsck {

struct CensusFacts : ExtContext {
  struct Directory {
    BlockMap map;
    bool inlined = false;  // its entries are in the inode
    bool indexed = false;
    InodeNumber dotdot = 0;
    InodeNumber parent = 0;  // where its name is
    std::uint32_t names = 0;
  };

  CensusFacts(const ExtVolume& volume_in, const ExtLayout& layout_in,
              const Census::Options& options_in)
      : ExtContext(volume_in, layout_in),
        options(options_in),
        kinds(layout_in.inodes() + 1),
        links(layout_in.inodes() + 1),
        names(layout_in.inodes() + 1),
        used((layout_in.blocks() + 63) / 64) {}

  void add(const Finding& finding) {
    ++census.findings_all;
    census.derived += is_derived(finding.code) ? 1 : 0;
    if (options.keep != nullptr) options.keep->note(finding);
    if (census.findings.size() < options.findings_max) census.findings.push_back(finding);
  }
  [[nodiscard]] bool is_used(FsBlock block) const {
    return (used[block / 64] >> (block % 64) & 1) != 0;
  }
  // False: it was already.
  bool use(FsBlock block) {
    if (is_used(block)) return false;
    used[block / 64] |= std::uint64_t{1} << (block % 64);
    ++census.blocks_in_use;
    return true;
  }

  const Census::Options& options;
  Census census;
  std::vector<std::uint8_t> kinds;   // by inode, as CheckedInode has them
  std::vector<std::uint16_t> links;  // ... as it says
  std::vector<std::uint32_t> names;  // ... that were found, "." and ".." included
  std::vector<std::uint64_t> used;   // a bit for each block
  std::map<InodeNumber, Directory> directories;
};

}  // namespace mariner::ifsck
