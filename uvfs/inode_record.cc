#include "uvfs/inode_record.h"

#include <ext2fs/ext2_fs.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ifsck/ext_inode.h"
#include "proto/check.h"
#include "proto/field.h"

namespace mariner::uvfs {
namespace {

using ifsck::ExtInode;
using ifsck::InodeAt;
using Bytes = std::span<const std::byte>;

constexpr std::size_t kRead = 8;  // i_atime
constexpr std::size_t kModified = 16;
constexpr std::size_t kVersion = 36;
constexpr std::size_t kChecksum = 124;
constexpr std::size_t kChecksumHigh = 130;
constexpr std::size_t kModifiedExtra = 136;
constexpr std::size_t kReadExtra = 140;
constexpr std::size_t kMade = 144;
constexpr std::size_t kMadeExtra = 148;
constexpr std::size_t kVersionHigh = 152;

// (How it is stored is nothing that is seen.)
constexpr std::uint32_t kSeenFlags =
    EXT2_SECRM_FL | EXT2_UNRM_FL | EXT2_SYNC_FL | EXT2_IMMUTABLE_FL | EXT2_APPEND_FL |
    EXT2_NODUMP_FL | EXT2_NOATIME_FL | EXT2_DIRSYNC_FL | EXT2_TOPDIR_FL | EXT3_JOURNAL_DATA_FL |
    EXT2_NOTAIL_FL | EXT4_PROJINHERIT_FL | EXT4_CASEFOLD_FL;

// Where the fields end that are not in all file systems.
std::size_t fields_end(Bytes inode) {
  return std::min<std::size_t>(inode.size(), std::size_t{128} + ExtInode(inode).extra_bytes());
}

// Two bits of what stands for nanoseconds go on with the seconds.
FileTime time_at(Bytes inode, std::size_t seconds_at, std::size_t extra_at) {
  FileTime time{.seconds = field<std::int32_t>(inode, seconds_at)};
  if (extra_at + 4 > fields_end(inode)) return time;
  const auto extra = field<std::uint32_t>(inode, extra_at);
  time.seconds += static_cast<std::int64_t>(extra & 3) << 32;
  time.ns = extra >> 2;
  return time;
}

// As kdev_t is written: the old form, or the new one behind it.
std::uint32_t device_of(Bytes inode) {
  const auto old = field<std::uint32_t>(inode, InodeAt::kMap);
  const auto young = field<std::uint32_t>(inode, InodeAt::kMap + 4);
  if (old != 0) return (old >> 8 & 0xff) << 20 | (old & 0xff);
  const std::uint32_t major = young >> 8 & 0xfff;
  return major << 20 | ((young & 0xff) | (young >> 12 & 0xfff00));
}

bool is_device(std::uint16_t mode) { return LINUX_S_ISCHR(mode) || LINUX_S_ISBLK(mode); }

// Where, and how many bytes.
constexpr std::array<std::pair<std::size_t, std::size_t>, 6> kRestless = {{{kRead, 4},
                                                                           {kVersion, 4},
                                                                           {kChecksum, 2},
                                                                           {kChecksumHigh, 2},
                                                                           {kReadExtra, 4},
                                                                           {kVersionHigh, 4}}};

// ---- extended attributes

constexpr std::uint32_t kAttributesMagic = 0xEA020000;
constexpr std::size_t kAttributeHeadBytes = 16;
constexpr std::size_t kBlockHeadBytes = 32;
constexpr std::uint8_t kSystem = 7;

std::string_view prefix_of(std::uint8_t index) {
  switch (index) {
    case 1: return "user.";
    case 2: return "system.posix_acl_access";
    case 3: return "system.posix_acl_default";
    case 4: return "trusted.";
    case 6: return "security.";
    case kSystem: return "system.";
    case 8: return "system.richacl";
    default: return {};
  }
}

// `entries` begin the space that values are in, counted from its `values_from`.
std::vector<ExtendedAttribute> attributes_in(Bytes space, std::size_t entries_at,
                                             std::size_t values_from) {
  std::vector<ExtendedAttribute> all;
  for (std::size_t at = entries_at;
       at + kAttributeHeadBytes <= space.size() && field<std::uint32_t>(space, at) != 0;) {
    const auto name_bytes = field<std::uint8_t>(space, at);
    const auto index = field<std::uint8_t>(space, at + 1);
    const std::size_t value_at = values_from + field<std::uint16_t>(space, at + 2);
    const auto value_inode = field<std::uint32_t>(space, at + 4);
    const std::size_t value_bytes = field<std::uint32_t>(space, at + 8);
    if (at + kAttributeHeadBytes + name_bytes > space.size()) break;
    const auto* const name = reinterpret_cast<const char*>(space.data() + at + kAttributeHeadBytes);
    ExtendedAttribute one{.name = std::string(prefix_of(index)) + std::string(name, name_bytes),
                          .value = {},
                          .value_inode = value_inode};
    if (value_inode == 0) {
      if (value_at > space.size() || value_bytes > space.size() - value_at) break;
      one.value = space.subspan(value_at, value_bytes);
    }
    all.push_back(std::move(one));
    at += (kAttributeHeadBytes + name_bytes + 3) / 4 * 4;
  }
  return all;
}

Bytes inline_rest(Bytes inode) {
  for (const ExtendedAttribute& each : attributes_of_inode(inode)) {
    if (each.name == "system.data") return each.value;
  }
  return {};
}

}  // namespace

ObjectState state_of(Bytes inode) {
  CHECK(inode.size() >= EXT2_GOOD_OLD_INODE_SIZE);
  const ExtInode from(inode);
  ObjectState state{
      .exists = from.type() != EXT2_FT_UNKNOWN && from.links() > 0,
      .mode = from.mode(),
      .user = field<std::uint16_t>(inode, InodeAt::kUser) |
              static_cast<std::uint32_t>(field<std::uint16_t>(inode, InodeAt::kUserHigh)) << 16,
      .group = field<std::uint16_t>(inode, InodeAt::kGroup) |
               static_cast<std::uint32_t>(field<std::uint16_t>(inode, InodeAt::kGroupHigh)) << 16,
      .size = from.size(),
      .links = from.links(),
      .generation = field<std::uint32_t>(inode, InodeAt::kGeneration),
      .flags = from.flags() & kSeenFlags,
      .modified = time_at(inode, kModified, kModifiedExtra),
      .changed = time_at(inode, InodeAt::kChanged, InodeAt::kChangedExtra)};
  if (kMadeExtra + 4 <= fields_end(inode)) state.made = time_at(inode, kMade, kMadeExtra);
  if (is_device(state.mode)) {
    state.device = device_of(inode);
    state.size = 0;
  }
  return state;
}

bool is_same_inode(Bytes one, Bytes other) {
  if (one.size() != other.size()) return false;
  std::size_t at = 0;
  while (true) {
    const auto [mine, theirs] =
        std::mismatch(one.begin() + static_cast<std::ptrdiff_t>(at), one.end(),
                      other.begin() + static_cast<std::ptrdiff_t>(at));
    if (mine == one.end()) return true;
    at = static_cast<std::size_t>(mine - one.begin());
    const auto restless = std::ranges::find_if(kRestless, [&](const auto& each) {
      return at >= each.first && at < each.first + each.second;
    });
    // (Where there are no fields, there are attributes.)
    if (restless == kRestless.end() ||
        (restless->first >= 128 && restless->first >= fields_end(one))) {
      return false;
    }
    at = restless->first + restless->second;
  }
}

std::vector<ExtendedAttribute> attributes_of_inode(Bytes inode) {
  const std::size_t at = fields_end(inode);
  if (inode.size() <= EXT2_GOOD_OLD_INODE_SIZE || at == EXT2_GOOD_OLD_INODE_SIZE ||
      at + 8 > inode.size() || field<std::uint32_t>(inode, at) != kAttributesMagic) {
    return {};
  }
  return attributes_in(inode, at + 4, at + 4);
}

std::vector<ExtendedAttribute> attributes_of_block(Bytes block) {
  if (block.size() < kBlockHeadBytes || field<std::uint32_t>(block, 0) != kAttributesMagic) {
    return {};
  }
  return attributes_in(block, kBlockHeadBytes, 0);
}

Bytes told_by_attributes(Bytes block) {
  return block.subspan(std::min(block.size(), kBlockHeadBytes));
}

bool has_inline_contents(Bytes inode) {
  const ExtInode from(inode);
  if (from.has_inline_data()) return true;
  return LINUX_S_ISLNK(from.mode()) && !ifsck::has_block_map(inode);
}

std::vector<std::byte> inline_contents(Bytes inode) {
  const ExtInode from(inode);
  const Bytes root = inode.subspan(InodeAt::kMap, InodeAt::kMapBytes);
  std::vector<std::byte> all(root.begin(), root.end());
  if (from.has_inline_data()) {
    const Bytes rest = inline_rest(inode);
    all.insert(all.end(), rest.begin(), rest.end());
  }
  all.resize(std::min<std::uint64_t>(from.size(), all.size()));
  return all;
}

Error directory_too_large(std::uint32_t inode, std::uint64_t blocks) {
  return {ErrorCode::kLimit,
          fmt::format("directory inode {} has {} blocks, of {} that are read: that is damage, or "
                      "ask for what is not below it",
                      inode, blocks, kDirectoryBlocksMax)};
}

std::vector<Bytes> inline_entries(Bytes inode) {
  constexpr std::size_t kParentBytes = 4;
  const Bytes root = inode.subspan(InodeAt::kMap, InodeAt::kMapBytes);
  return {root.subspan(kParentBytes), inline_rest(inode)};
}

}  // namespace mariner::uvfs
