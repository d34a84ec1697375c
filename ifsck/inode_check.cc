#include "ifsck/inode_check.h"

#include <algorithm>
#include <utility>

#include "ifsck/attribute_check.h"
#include "ifsck/ext_inode.h"
#include "ifsck/resize_inode.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

constexpr std::uint64_t kSectorBytes = 512;

class Check {
 public:
  Check(const ExtContext& context, InodeNumber number, std::span<std::byte> bytes)
      : context_(context), number_(number), bytes_(bytes), inode_(bytes) {}

  Result<CheckedInode> run(bool follow) {
    checked_.generation = load_le<std::uint32_t>(bytes_.data() + InodeAt::kGeneration);
    checked_.changed = inode_.changed_at();
    checked_.size = inode_.size();
    const bool reserved = context_.is_reserved(number_);
    // A small time of deletion is the number of the next orphan: it was not taken off their list.
    if (inode_.deleted_at() != 0 && context_.knows_time() &&
        inode_.deleted_at() < context_.layout.inodes()) {
      add({.code = Code::kInodeDeleted, .found = inode_.links()});
    }
    if (inode_.links() == 0 && !reserved) {
      if (inode_.mode() != 0 && inode_.deleted_at() == 0) add({.code = Code::kInodeDeleted});
      return std::move(checked_);
    }
    if (!has_checksum()) add({.code = Code::kInodeChecksum});
    if (reserved && inode_.mode() == 0 && number_ != EXT2_BAD_INO) {
      if (number_ == EXT2_RESIZE_INO && ResizeInode::of(context_)) {
        add({.code = Code::kInodeMap,
             .found = static_cast<std::uint64_t>(BlockMap::Fault::What::kStrange)});
      }
      return std::move(checked_);
    }
    check_fields();
    if (!reserved && !has_right_attributes(inode_.bytes())) add({.code = Code::kAttributes});
    if (reserved && !may_be_reserved()) {
      add({.code = Code::kInodeMode, .found = inode_.mode()});
    }
    if (!reserved || inode_.links() > 0) {
      checked_.kind = inode_.type() != 0 ? inode_.type() : CheckedInode::kStrange;
      checked_.links = inode_.links();
    }
    checked_.counted = !reserved;
    if (!reserved && inode_.type() == 0) {
      add({.code = Code::kInodeMode, .found = inode_.mode()});
      return std::move(checked_);
    }
    if (const Result<void> done = check_blocks(follow); !done) return done.error();
    checked_.directory = inode_.is_directory() && !reserved;
    checked_.inlined = inode_.has_inline_data();
    // (Of other names hashes are made otherwise.)
    checked_.indexed = inode_.has_index() &&
                       (inode_.flags() & (EXT4_CASEFOLD_FL | EXT4_ENCRYPT_FL)) == 0 &&
                       std::ranges::find(checked_.findings, Code::kInodeIndex, &Finding::code) ==
                           checked_.findings.end();
    return std::move(checked_);
  }

 private:
  void add(Finding finding) {
    finding.inode = number_;
    checked_.findings.push_back(finding);
  }

  // Of those below the first one, these are files; others are not in use.
  [[nodiscard]] bool may_be_reserved() const {
    const ext2_super_block& super = context_.super;
    return number_ == EXT2_BAD_INO || number_ == EXT2_BOOT_LOADER_INO ||
           number_ == EXT2_RESIZE_INO ||
           (number_ == EXT2_JOURNAL_INO && ext2fs_has_feature_journal(context_.fs->super)) ||
           number_ == EXT4_USR_QUOTA_INO || number_ == EXT4_GRP_QUOTA_INO ||
           number_ == super.s_prj_quota_inum || number_ == super.s_orphan_file_inum;
  }

  [[nodiscard]] bool has_checksum() {
    return !context_.checksums ||
           std::ranges::all_of(bytes_, [](std::byte each) { return each == std::byte{}; }) ||
           ext2fs_inode_csum_verify(context_.fs, number_,
                                    reinterpret_cast<ext2_inode_large*>(bytes_.data())) != 0;
  }

  void check_fields() {
    const std::uint16_t extra = inode_.extra_bytes();
    const bool extra_is_good = extra == 0 || (extra >= 4 && extra % 4 == 0 &&
                                              extra <= context_.layout.inode_bytes() - 128);
    // (Of those below the first one only kernels know what stands in other fields.)
    const bool reserved = context_.is_reserved(number_);
    if (!reserved &&
        (inode_.has_fragment() || !extra_is_good || has_unknown_flags() || !is_special_good())) {
      add({.code = Code::kInodeFields});
    }
    if (inode_.links() > 0 && inode_.deleted_at() != 0) {
      add({.code = Code::kInodeDeleted, .found = 1});
    }
  }

  // Of features that the file system has not, or that such a file cannot have.
  [[nodiscard]] bool has_unknown_flags() const {
    ext2_super_block* const super = context_.fs->super;
    const std::uint32_t flags = inode_.flags();
    const bool directory = inode_.is_directory();
    return ((flags & EXT4_INLINE_DATA_FL) != 0 &&
            (!ext2fs_has_feature_inline_data(super) || !inode_.has_inline_attribute())) ||
           ((flags & EXT4_EXTENTS_FL) != 0 && !ext2fs_has_feature_extents(super)) ||
           ((flags & EXT2_IMAGIC_FL) != 0 && !ext2fs_has_feature_imagic_inodes(super)) ||
           ((flags & EXT4_ENCRYPT_FL) != 0 && !ext2fs_has_feature_encrypt(super)) ||
           ((flags & EXT4_CASEFOLD_FL) != 0 && (!ext2fs_has_feature_casefold(super) || !directory));
  }

  // Who has neither blocks nor contents within itself. (What a device has behind its numbers
  // kernels do not clear.)
  [[nodiscard]] bool is_special_good() const {
    const std::uint8_t type = inode_.type();
    const std::uint32_t flags = inode_.flags();
    const bool link = type == EXT2_FT_SYMLINK;
    const bool special = type == EXT2_FT_CHRDEV || type == EXT2_FT_BLKDEV || type == EXT2_FT_FIFO ||
                         type == EXT2_FT_SOCK;
    if (!special && !link) return true;
    if ((flags & (EXT2_IMMUTABLE_FL | EXT2_APPEND_FL | EXT2_INDEX_FL)) != 0) return false;
    if (link) return has_link_target(inode_.bytes(), context_.layout.block_bytes());
    return inode_.size() == 0 && !inode_.has_extents() && !inode_.has_inline_data();
  }

  Result<void> check_blocks(bool follow) {
    BlockMap& map = checked_.map;
    if (number_ == EXT2_BAD_INO || has_block_map(inode_.bytes())) {
      if (!follow) {
        map.faults.push_back({.what = BlockMap::Fault::What::kTooMany});
      } else {
        auto mapped = map_blocks(context_.volume, context_.layout, number_, inode_.bytes());
        if (!mapped) return mapped.error();
        map = std::move(*mapped);
      }
    }
    if (number_ == EXT2_RESIZE_INO && map.faults.empty()) {
      const auto resize = ResizeInode::of(context_);
      if (resize && !resize->fits(map, context_.layout.block_bytes())) {
        map.faults.push_back({.what = BlockMap::Fault::What::kStrange});
      }
    }
    for (const BlockMap::Fault& each : map.faults) {
      add({.code = Code::kInodeMap,
           .block = each.block,
           .found = static_cast<std::uint64_t>(each.what)});
    }
    if (inode_.has_index()) {
      if (const Result<void> done = check_index(); !done) return done;
    }
    if (inode_.attributes() != 0 && !context_.layout.may_claim(inode_.attributes())) {
      if (!context_.is_reserved(number_)) {
        add({.code = Code::kAttributes, .block = inode_.attributes()});
      }
    } else {
      checked_.attributes = inode_.attributes();
    }
    if (number_ == EXT2_BAD_INO) return {};
    check_count();
    check_size();
    return {};
  }

  // The first block of an index says how it is made (struct ext2_dx_root_info).
  Result<void> check_index() {
    const BlockMap& map = checked_.map;
    if (!inode_.is_directory() || !ext2fs_has_feature_dir_index(context_.fs->super) ||
        map.runs.empty() || map.runs.front().logical != 0) {
      add({.code = Code::kInodeIndex});
      return {};
    }
    auto bytes = context_.read_block(map.runs.front().physical);
    if (!bytes) return bytes.error();
    const auto at = [&](std::size_t i) { return std::to_integer<unsigned>((*bytes)[24 + i]); };
    const unsigned levels_max = ext2fs_has_feature_largedir(context_.fs->super) ? 3 : 2;
    const bool good = load_le<std::uint32_t>(bytes->data() + 24) == 0 && at(4) <= EXT2_HASH_TEA &&
                      at(5) == 8 && at(6) < levels_max && (at(7) & 1) == 0;
    if (!good) add({.code = Code::kInodeIndex});
    return {};
  }

  void check_count() {
    const std::uint64_t blocks = checked_.map.blocks() + (checked_.attributes != 0 ? 1 : 0);
    const std::uint64_t unit =
        inode_.in_large_blocks() ? context_.layout.block_bytes() : kSectorBytes;
    const std::uint64_t expected = blocks * context_.layout.block_bytes() / unit;
    if (!checked_.map.faults.empty() || inode_.blocks() == expected) return;
    add({.code = Code::kInodeBlocks, .expected = expected, .found = inode_.blocks()});
  }

  // What an inode's blocks can hold.
  [[nodiscard]] std::uint64_t size_max() const {
    const std::uint64_t block = context_.layout.block_bytes();
    if (inode_.has_extents()) return (block << 32) - 1;
    const std::uint64_t numbers = block / 4;
    return (EXT2_NDIR_BLOCKS + numbers + numbers * numbers + numbers * numbers * numbers) * block;
  }

  void check_size() {
    if (inode_.type() == EXT2_FT_REG_FILE && inode_.size() > size_max()) {
      return add({.code = Code::kInodeSize, .expected = size_max(), .found = inode_.size()});
    }
    if (inode_.has_inline_data() || checked_.map.runs.empty()) return;
    std::uint64_t end = 0;  // of what was written
    for (const BlockMap::Run& run : checked_.map.runs) {
      if (!run.unwritten) end = std::max(end, run.logical + run.count);
    }
    if (end == 0) return;
    const bool directory = inode_.is_directory();
    const std::uint64_t least =
        directory ? end * context_.layout.block_bytes() : (end - 1) * context_.layout.block_bytes();
    const bool good = directory ? inode_.size() == least : inode_.size() >= least;
    if (good || context_.is_reserved(number_) || inode_.type() == EXT2_FT_SYMLINK) return;
    add({.code = Code::kInodeSize, .expected = least, .found = inode_.size()});
  }

  const ExtContext& context_;
  const InodeNumber number_;
  const std::span<std::byte> bytes_;
  const ExtInode inode_;
  CheckedInode checked_;
};

}  // namespace

Result<CheckedInode> check_inode(const ExtContext& context, InodeNumber number,
                                 std::span<std::byte> bytes, bool follow) {
  return Check(context, number, bytes).run(follow);
}

bool has_link_target(InodeBytes bytes, std::uint32_t block_bytes) {
  const ExtInode inode(bytes);
  const InodeBytes map = bytes.subspan(InodeAt::kMap, InodeAt::kMapBytes);
  const auto is_zero = [](std::byte each) { return each == std::byte{}; };
  if (inode.size() == 0 || inode.size() >= block_bytes) return false;
  if (inode.has_inline_data()) return !inode.has_extents();
  if (inode.size() < map.size()) {
    const bool encrypted = (inode.flags() & EXT4_ENCRYPT_FL) != 0;
    const auto end = std::ranges::find(map, std::byte{});
    const auto length = static_cast<std::uint64_t>(end - map.begin());
    return !inode.has_extents() && (encrypted || length == inode.size());
  }
  if (inode.has_extents()) {
    // One extent in the root, of one block from the first on.
    return load_le<std::uint16_t>(map.data() + 2) == 1 &&
           load_le<std::uint16_t>(map.data() + 6) == 0 &&
           load_le<std::uint32_t>(map.data() + 12) == 0 &&
           load_le<std::uint16_t>(map.data() + 16) == 1;
  }
  return !std::ranges::all_of(map.first(4), is_zero) &&
         std::ranges::all_of(map.subspan(4), is_zero);
}

Result<CheckedAttributes> check_attributes(const ExtContext& context, InodeNumber number,
                                           FsBlock block) {
  auto bytes = context.read_block(block);
  if (!bytes) return bytes.error();
  CheckedAttributes checked;
  checked.good =
      is_right_attribute_block(*bytes) &&
      (!context.checksums ||
       ext2fs_ext_attr_block_csum_verify(
           context.fs, number, block, reinterpret_cast<ext2_ext_attr_header*>(bytes->data())) != 0);
  checked.inodes = load_le<std::uint32_t>(bytes->data() + 4);
  return checked;
}

}  // namespace mariner::ifsck
