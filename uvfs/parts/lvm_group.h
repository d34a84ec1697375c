// A volume group of LVM2 as its metadata describe it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/error.h"
#include "uvfs/parts/lvm_text.h"

namespace mariner::uvfs {

struct LvmGroup {
  // A physical volume.
  struct Member {
    std::string name;               // "pv0", in the text
    std::string id;                 // 32 characters, as in the label
    std::uint64_t start_bytes = 0;  // of its first extent
    std::uint64_t extents = 0;
  };
  // Extents of a logical volume that follow each other on a physical one.
  struct Segment {
    std::size_t member = 0;   // of `members`
    std::uint64_t first = 0;  // of its extents
    std::uint64_t extents = 0;
  };
  // A logical volume that people use; what is a part of another, or keeps one's metadata, is left
  // out.
  struct Volume {
    std::string name;
    std::vector<Segment> segments;  // in order
    std::string refused;            // why it is not understood; empty: it is
  };

  std::string name;
  std::string id;
  std::uint64_t version = 0;  // higher: newer
  std::uint64_t extent_bytes = 0;
  std::vector<Member> members;
  std::vector<Volume> volumes;

  // kCorrupt: it makes no sense as a whole. kLimit: as LvmNode::parse().
  [[nodiscard]] static Result<LvmGroup> parse(std::string_view text);
};

// Of letters, digits and "+_.-", as LVM2 allows them, and short enough.
[[nodiscard]] bool is_lvm_name(std::string_view name);

}  // namespace mariner::uvfs
