// The extended attributes of an object of ext2, ext3 or ext4 at a moment, as getxattr() gives them:
// those in its inode and those in its block of attributes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "ifsck/ext_context.h"
#include "ifsck/past.h"
#include "proto/error.h"

namespace mariner::uvfs {

struct ObjectAttributes {
  struct One {
    std::string name;  // "user.comment"
    std::vector<std::byte> value;
    friend bool operator==(const One&, const One&) = default;
  };
  std::vector<One> all;  // in the order in which they stand
  // What is there and not told: its value has an inode of its own (ea_inode), or is damaged.
  std::vector<std::string> skipped;
  friend bool operator==(const ObjectAttributes&, const ObjectAttributes&) = default;
};

// `inode` is as it stands in its table at the moment. Errors: of the past.
[[nodiscard]] Result<ObjectAttributes> read_attributes(ifsck::Past& past,
                                                       const ifsck::ExtContext& context,
                                                       std::span<const std::byte> inode,
                                                       SequenceNumber at);

// The access control list that such a file system keeps (fs/ext4/acl.h: version 1, short entries
// for those who need no number) as Linux gives it to programs (version 2). Empty: it is damaged.
[[nodiscard]] std::vector<std::byte> acl_as_given(std::span<const std::byte> kept);

}  // namespace mariner::uvfs
