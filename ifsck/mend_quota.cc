#include "ifsck/mend_quota.h"

#include <algorithm>
#include <map>
#include <vector>

#include "ifsck/ext_inode.h"
#include "ifsck/map_writer.h"
#include "ifsck/mend_inode.h"
#include "ifsck/quota_file.h"
#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

// A file of more is none of quotas.
constexpr std::uint64_t kBytesMax = 256u << 20;

using Of = QuotaFile::Of;
using Uses = std::map<std::uint32_t, QuotaFile::Use>;

class QuotaMender {
 public:
  explicit QuotaMender(MendWork& work) : work_(work), context_(work.context()) {}

  Result<bool> run() {
    const ext2_super_block& super = context_.super;
    const InodeNumber numbers[] = {super.s_usr_quota_inum, super.s_grp_quota_inum,
                                   super.s_prj_quota_inum};
    const auto is_known = [&](InodeNumber number) {
      return number != 0 && number <= work_.layout().inodes();
    };
    if (!ext2fs_has_feature_quota(context_.fs->super) || std::ranges::none_of(numbers, is_known)) {
      return false;
    }
    if (const Result<void> done = count(); !done) return done.error();
    bool changed = false;
    for (const Of of : {Of::kUser, Of::kGroup, Of::kProject}) {
      const InodeNumber number = numbers[static_cast<std::size_t>(of)];
      if (!is_known(number)) continue;
      const auto done = mend(of, number);
      if (!done) return done;
      changed = changed || *done;
    }
    return changed;
  }

 private:
  Result<void> count() {
    return work_.for_each_inode([&](InodeNumber number, std::span<std::byte> bytes) {
      const ExtInode inode(bytes);
      const bool of_files = is_quota_file(number) || context_.is_reserved(number);
      if (of_files || inode.links() == 0) return Result<void>{};
      const std::uint64_t unit = inode.in_large_blocks() ? work_.layout().block_bytes() : 512;
      const auto id = [&](std::size_t low, std::size_t high) {
        return load_le<std::uint16_t>(bytes.data() + low) |
               std::uint32_t{load_le<std::uint16_t>(bytes.data() + high)} << 16;
      };
      const bool has_project =
          bytes.size() >= 160 && inode.extra_bytes() >= InodeAt::kProject + 4 - InodeAt::kExtra;
      const std::uint32_t ids[] = {
          id(InodeAt::kUser, InodeAt::kUserHigh), id(InodeAt::kGroup, InodeAt::kGroupHigh),
          has_project ? load_le<std::uint32_t>(bytes.data() + InodeAt::kProject) : 0};
      for (std::size_t i = 0; i < std::size(ids); ++i) {
        QuotaFile::Use& use = uses_[i][ids[i]];
        ++use.inodes;
        use.bytes += inode.blocks() * unit;
      }
      return Result<void>{};
    });
  }

  [[nodiscard]] bool is_quota_file(InodeNumber number) const {
    return number == context_.super.s_usr_quota_inum || number == context_.super.s_grp_quota_inum ||
           number == context_.super.s_prj_quota_inum;
  }

  Result<bool> mend(Of of, InodeNumber number) {
    auto inode = work_.inode(number);
    if (!inode) return inode.error();
    if (inode->empty()) return false;
    BlockMap map;
    if (has_block_map(*inode)) {
      auto mapped = map_blocks(context_.volume, work_.layout(), number, *inode);
      if (!mapped) return mapped.error();
      map = std::move(*mapped);
    }
    const auto bytes = content(map, ExtInode(*inode).size());
    if (!bytes) return bytes.error();
    QuotaFile file = QuotaFile::read(of, *bytes);
    const Uses& uses = uses_[static_cast<std::size_t>(of)];
    if (file.fits(uses)) return false;
    file.set(uses);
    return write(number, *inode, map, file.write(of));
  }

  // What is missing is zeros.
  Result<std::vector<std::byte>> content(const BlockMap& map, std::uint64_t size) {
    const std::size_t each = work_.layout().block_bytes();
    std::vector<std::byte> bytes(std::min(size, kBytesMax));
    for (const BlockMap::Run& run : map.runs) {
      for (std::uint64_t i = 0; i < run.count; ++i) {
        const std::uint64_t from = (run.logical + i) * each;
        if (from >= bytes.size()) break;
        const auto block = context_.read_block(run.physical + i);
        if (!block) return block.error();
        std::copy_n(block->begin(), std::min<std::size_t>(each, bytes.size() - from),
                    bytes.begin() + static_cast<std::ptrdiff_t>(from));
      }
    }
    return bytes;
  }

  // Into the blocks that it has, as far as they go.
  Result<bool> write(InodeNumber number, std::vector<std::byte>& inode, const BlockMap& map,
                     std::vector<std::byte> bytes) {
    const std::uint64_t size = bytes.size();
    const std::size_t each = work_.layout().block_bytes();
    bytes.resize((bytes.size() + each - 1) / each * each);
    std::vector<FsBlock> spare;
    for (const BlockMap::Run& run : map.runs) {
      for (std::uint64_t i = 0; i < run.count; ++i) spare.push_back(run.physical + i);
    }
    std::ranges::reverse(spare);
    std::vector<BlockMap::Run> runs;
    for (std::uint64_t i = 0; i < bytes.size() / each; ++i) {
      if (spare.empty()) {
        const auto block = work_.allocate(FsBlock{1} << 32);
        if (!block) return block.error();
        if (!*block) return false;
        spare.push_back(**block);
      }
      runs.push_back({i, spare.back(), 1, false});
      const auto put = work_.put_block(spare.back(), std::span(bytes).subspan(i * each, each));
      if (!put) return put.error();
      spare.pop_back();
    }
    prepare(inode);
    store_le(inode.data() + InodeAt::kSize, static_cast<std::uint32_t>(size));
    store_le(inode.data() + InodeAt::kSizeHigh, static_cast<std::uint32_t>(size >> 32));
    if (const auto put = write_map(work_, number, inode, merged(runs), map.nodes); !put) {
      return put.error();
    }
    if (const auto put = settle_inode(work_, number, inode); !put) return put.error();
    work_.done({.code = Finding::Code::kQuota, .inode = number}, Repair::Done::kCountSet);
    return true;
  }

  static std::vector<BlockMap::Run> merged(const std::vector<BlockMap::Run>& runs) {
    std::vector<BlockMap::Run> all;
    for (const BlockMap::Run& each : runs) {
      if (!all.empty() && all.back().physical + all.back().count == each.physical) {
        ++all.back().count;
      } else {
        all.push_back(each);
      }
    }
    return all;
  }

  // It is a file, whatever it was.
  void prepare(std::vector<std::byte>& inode) const {
    if (ExtInode(inode).type() == EXT2_FT_REG_FILE && ExtInode(inode).links() > 0) return;
    std::ranges::fill(inode, std::byte{});
    store_le<std::uint16_t>(inode.data() + InodeAt::kMode, LINUX_S_IFREG | 0600);
    store_le<std::uint16_t>(inode.data() + InodeAt::kLinks, 1);
    if (ext2fs_has_feature_extents(context_.fs->super)) {
      store_le<std::uint32_t>(inode.data() + InodeAt::kFlags, EXT4_EXTENTS_FL);
    }
    if (inode.size() >= 160) store_le(inode.data() + InodeAt::kExtra, InodeAt::kExtraUsual);
  }

  MendWork& work_;
  const ExtContext& context_;
  Uses uses_[3];  // by Of
};

}  // namespace

Result<bool> mend_quotas(MendWork& work) { return QuotaMender(work).run(); }

}  // namespace mariner::ifsck
