#include "ifsck/finding.h"

#include <fmt/format.h>

namespace mariner::ifsck {

bool is_derived(Finding::Code code) {
  using Code = Finding::Code;
  switch (code) {
    case Code::kGroupChecksum:
    case Code::kBlockBitmapChecksum:
    case Code::kInodeBitmapChecksum:
    case Code::kAttributeCount:
    case Code::kBlockMarked:
    case Code::kInodeMarked:
    case Code::kPadding:
    case Code::kFreeBlocks:
    case Code::kFreeInodes:
    case Code::kDirectories:
    case Code::kQuota: return true;
    default: return false;
  }
}

bool is_of_inode(Finding::Code code) {
  using Code = Finding::Code;
  switch (code) {
    case Code::kInodeChecksum:
    case Code::kInodeMode:
    case Code::kInodeFields:
    case Code::kInodeDeleted:
    case Code::kInodeIndex:
    case Code::kInodeMap:
    case Code::kInodeSize:
    case Code::kInodeBlocks:
    case Code::kAttributes:
    case Code::kClaimsStructure:
    case Code::kClaimedTwice: return true;
    default: return false;
  }
}

std::string_view finding_code_name(Finding::Code code) {
  using Code = Finding::Code;
  switch (code) {
    case Code::kSuperblockChecksum: return "superblock-checksum";
    case Code::kGroupChecksum: return "group-checksum";
    case Code::kBlockBitmapChecksum: return "block-bitmap-checksum";
    case Code::kInodeBitmapChecksum: return "inode-bitmap-checksum";
    case Code::kInodeChecksum: return "inode-checksum";
    case Code::kInodeMode: return "inode-mode";
    case Code::kInodeFields: return "inode-fields";
    case Code::kInodeDeleted: return "inode-deleted";
    case Code::kInodeIndex: return "inode-index";
    case Code::kInodeMap: return "inode-map";
    case Code::kInodeSize: return "inode-size";
    case Code::kInodeBlocks: return "inode-blocks";
    case Code::kAttributes: return "attributes";
    case Code::kAttributeCount: return "attribute-count";
    case Code::kClaimsStructure: return "claims-structure";
    case Code::kClaimedTwice: return "claimed-twice";
    case Code::kDirectoryBlock: return "directory-block";
    case Code::kDirectoryHole: return "directory-hole";
    case Code::kDots: return "dots";
    case Code::kEntryInode: return "entry-inode";
    case Code::kEntryType: return "entry-type";
    case Code::kEntryName: return "entry-name";
    case Code::kDirectoryLinked: return "directory-linked";
    case Code::kParent: return "parent";
    case Code::kUnreachable: return "unreachable";
    case Code::kRoot: return "root";
    case Code::kUnattached: return "unattached";
    case Code::kLinks: return "links";
    case Code::kBlockMarked: return "block-marked";
    case Code::kInodeMarked: return "inode-marked";
    case Code::kPadding: return "padding";
    case Code::kFreeBlocks: return "free-blocks";
    case Code::kFreeInodes: return "free-inodes";
    case Code::kDirectories: return "directories";
    case Code::kQuota: return "quota";
  }
  return "?";
}

std::string describe(const Finding& one) {
  using Code = Finding::Code;
  const std::string inode = fmt::format("inode {}", one.inode);
  const std::string where =
      one.group == Finding::kAll ? "the file system" : fmt::format("group {}", one.group);
  const auto numbers = [&](const std::string& what) {
    return fmt::format("{}: {} are expected, {} are said", what, one.expected, one.found);
  };
  switch (one.code) {
    case Code::kSuperblockChecksum: return "the superblock has another checksum than its contents";
    case Code::kGroupChecksum: return where + ": its descriptor has a wrong checksum";
    case Code::kBlockBitmapChecksum: return where + ": its block bitmap has a wrong checksum";
    case Code::kInodeBitmapChecksum: return where + ": its inode bitmap has a wrong checksum";
    case Code::kInodeChecksum: return inode + " has a wrong checksum";
    case Code::kInodeMode:
      return fmt::format("{} has mode {:o}, which no file has", inode, one.found);
    case Code::kInodeFields: return inode + " has something in fields that cannot be so";
    case Code::kInodeDeleted:
      return fmt::format("{} is {} and says that it was {}", inode,
                         one.found != 0 ? "in use" : "not in use",
                         one.found != 0 ? "deleted" : "not deleted");
    case Code::kInodeIndex: return inode + " says that it is a directory with an index, and is not";
    case Code::kInodeMap:
      return fmt::format("{}: what it says of its blocks cannot be (block {})", inode, one.block);
    case Code::kInodeSize:
      return fmt::format("{} has a size of {} bytes, where {} are expected", inode, one.found,
                         one.expected);
    case Code::kInodeBlocks: return numbers(inode + ": blocks of 512 bytes");
    case Code::kAttributes:
      if (one.block == 0) return inode + " has extended attributes within it that cannot be";
      return fmt::format("{}: block {} has no extended attributes", inode, one.block);
    case Code::kAttributeCount:
      return numbers(fmt::format("block {}: inodes that share these attributes", one.block));
    case Code::kClaimsStructure:
      return fmt::format("{} claims {} blocks that the file system itself needs, block {} first",
                         inode, one.found, one.block);
    case Code::kClaimedTwice:
      return fmt::format("{} claims {} blocks that were claimed before, block {} first", inode,
                         one.found, one.block);
    case Code::kDirectoryBlock:
      return fmt::format("{}: block {} is not one of a directory, or damaged", inode, one.block);
    case Code::kDirectoryHole: return inode + ": a block of this directory is missing";
    case Code::kDots: return inode + ": this directory does not begin with \".\" and \"..\"";
    case Code::kEntryInode:
      if (one.inode == 0) {
        return fmt::format("a directory has an entry of inode {}, which is not in use", one.found);
      }
      return fmt::format("{}: an entry of this directory names inode {}, which is not in use",
                         inode, one.found);
    case Code::kEntryType:
      return fmt::format("{}: an entry of this directory is of kind {}, its inode of {}", inode,
                         one.found, one.expected);
    case Code::kEntryName:
      return inode +
             ": an entry of this directory has a name that none can have, or that is there twice";
    case Code::kDirectoryLinked:
      return fmt::format("{}: a directory with {} names", inode, one.found);
    case Code::kParent:
      return fmt::format("{}: its \"..\" is inode {}, its name is in inode {}", inode, one.found,
                         one.expected);
    case Code::kUnreachable: return inode + ": a directory that cannot be reached from the root";
    case Code::kRoot: return "there is no root directory";
    case Code::kUnattached: return inode + " is in use and has no name";
    case Code::kLinks: return numbers(inode + ": names");
    case Code::kBlockMarked:
      return fmt::format("block {} is {} and marked as {}", one.block,
                         one.expected != 0 ? "in use" : "free", one.found != 0 ? "in use" : "free");
    case Code::kInodeMarked:
      return fmt::format("{} is {} and marked as {}", inode, one.expected != 0 ? "in use" : "free",
                         one.found != 0 ? "in use" : "free");
    case Code::kPadding:
      return fmt::format("{}: the end of the bitmap in block {}, behind what there is, is not set",
                         where, one.block);
    case Code::kFreeBlocks: return numbers(where + ": free blocks");
    case Code::kFreeInodes: return numbers(where + ": free inodes");
    case Code::kDirectories: return numbers(where + ": directories");
    case Code::kQuota: return inode + ": this quota file does not say what is in use";
  }
  return "?";
}

}  // namespace mariner::ifsck
