// Names are put in with libext2fs; inodes and blocks are fast_files.h.
#include "ifsck/fast_replay.h"

#include <algorithm>
#include <map>
#include <string>

#include "ifsck/ext_inode.h"
#include "ifsck/fast_files.h"
#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

using Kind = FastOperation::Kind;

constexpr std::uint64_t kDirectoryBlocksMax = 4u << 20;

class Replayer {
 public:
  Replayer(const ExtVolume& volume, const ExtLayout& layout)
      : layout_(layout), fs_(volume.fs()), files_(volume, layout) {}

  Result<void> run(std::span<const FastOperation> operations) {
    if (const Result<void> done = files_.reserve(operations); !done) return done;
    for (const FastOperation& each : operations) {
      if (const Result<void> done = apply(each); !done) return done;
    }
    return files_.finish();
  }

 private:
  Result<void> apply(const FastOperation& operation) {
    if (const Result<void> done = files_.touch(operation.inode); !done) return done;
    switch (operation.kind) {
      case Kind::kInode: directories_.erase(operation.inode); return files_.put_inode(operation);
      case Kind::kAddRange:
      case Kind::kDelRange: return files_.change_range(operation);
      case Kind::kCreate:
      case Kind::kLink:
      case Kind::kUnlink: break;
      default: return {};
    }
    if (!is_name(operation.name)) return FastFiles::corrupt("its name is none", operation.inode);
    if (const Result<void> done = files_.touch(operation.parent); !done) return done;
    return operation.kind == Kind::kUnlink ? unlink(operation) : link(operation);
  }

  static bool is_name(const std::string& name) {
    return !name.empty() && name.size() <= EXT2_NAME_LEN && name != "." && name != ".." &&
           name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
  }

  // It can be read through, and is.
  Result<void> open_directory(InodeNumber number) {
    if (const Result<void> done = files_.settle(number); !done) return done;
    const auto inode = files_.read_inode(number);
    if (!inode) return inode.error();
    const auto in_use = files_.in_use(number);
    if (!in_use) return in_use.error();
    if (!*in_use || !ExtInode(*inode).is_directory())
      return FastFiles::corrupt("it is no directory", number);
    // (libext2fs looks at all that it has, whatever its size is.)
    auto known = directories_.find(number);
    if (known == directories_.end()) {
      std::uint64_t blocks = 0;
      if (has_block_map(*inode)) {
        const auto map = files_.read_map(number, *inode);
        if (!map) return map.error();
        blocks = map->blocks();
      }
      known = directories_.emplace(number, blocks).first;
    }
    const std::uint64_t size = ExtInode(*inode).size() / layout_.block_bytes();
    return spend(std::max(size, known->second) + 1) ? Result<void>{} : FastFiles::too_much();
  }

  // The inode that has a name; 0: none.
  Result<InodeNumber> find(const FastOperation& operation) {
    ext2_ino_t found = 0;
    const errcode_t error = ext2fs_lookup(fs_, operation.parent, operation.name.data(),
                                          static_cast<int>(operation.name.size()), nullptr, &found);
    if (error == EXT2_ET_FILE_NOT_FOUND) return InodeNumber{0};
    if (error != 0) return FastFiles::failed(error, operation.parent);
    return found;
  }

  Result<void> add_links(InodeNumber number, int more) {
    auto inode = files_.read_inode(number);
    if (!inode) return inode.error();
    const int count = FastFiles::links(*inode) + more;
    // (One: a directory with more directories in it than can be counted.)
    const bool many = ExtInode(*inode).is_directory() && FastFiles::links(*inode) == 1;
    if (count < 0 || count > EXT2_LINK_MAX || many) return {};
    store_le(inode->data() + InodeAt::kLinks, static_cast<std::uint16_t>(count));
    return files_.write_inode(number, *inode);
  }

  Result<void> make_dots(const FastOperation& operation) {
    const InodeNumber number = operation.inode;
    const auto first = files_.first_block(number);
    if (!first) return first.error();
    if (const Result<void> done = files_.settle(number); !done) return done;
    auto inode = files_.read_inode(number);
    if (!inode) return inode.error();
    store_le(inode->data() + InodeAt::kSize, layout_.block_bytes());
    store_le<std::uint32_t>(inode->data() + InodeAt::kSizeHigh, 0);
    store_le(inode->data() + InodeAt::kFlags,
             load_le<std::uint32_t>(inode->data() + InodeAt::kFlags) & ~EXT2_INDEX_FL);
    if (const Result<void> done = files_.write_inode(number, *inode); !done) return done;
    char* block = nullptr;
    errcode_t error = ext2fs_new_dir_block(fs_, number, operation.parent, &block);
    if (error == 0) {
      error = ext2fs_write_dir_block4(fs_, *first, block, 0, number);
    }
    if (block != nullptr) ext2fs_free_mem(&block);
    if (error != 0) return FastFiles::failed(error, number);
    return {};
  }

  Result<void> add_entry(const FastOperation& operation, std::uint8_t type) {
    const auto link = [&] {
      return ext2fs_link(fs_, operation.parent, operation.name.c_str(), operation.inode, type);
    };
    errcode_t error = link();
    for (int tries = 0; error == EXT2_ET_DIR_NO_SPACE && tries < 2; ++tries) {
      error = ext2fs_expand_dir(fs_, operation.parent);
      if (error == 0) error = link();
    }
    if (error != 0) return FastFiles::failed(error, operation.parent);
    return {};
  }

  Result<void> link(const FastOperation& operation) {
    const auto inode = files_.read_inode(operation.inode);
    if (!inode) return inode.error();
    const auto in_use = files_.in_use(operation.inode);
    if (!in_use) return in_use.error();
    if (!*in_use)
      return FastFiles::corrupt("a name of an inode that is not in use", operation.inode);
    const bool directory = ExtInode(*inode).is_directory();
    const bool fresh = operation.kind == Kind::kCreate;
    if (directory && !fresh) return FastFiles::corrupt("a directory has one name", operation.inode);
    if (const Result<void> done = open_directory(operation.parent); !done) return done;
    const auto found = find(operation);
    if (!found) return found.error();
    if (*found == operation.inode) return {};
    if (*found != 0) return FastFiles::corrupt("another inode has its name", operation.inode);
    if (directory) {
      if (const Result<void> done = make_dots(operation); !done) return done;
      if (const Result<void> done = add_links(operation.parent, 1); !done) return done;
    }
    if (!fresh) {
      if (const Result<void> done = add_links(operation.inode, 1); !done) return done;
    }
    if (const auto done = files_.make_room(operation.parent); !done) return done;
    return add_entry(operation, ExtInode(*inode).type());
  }

  Result<void> unlink(const FastOperation& operation) {
    if (const Result<void> done = open_directory(operation.parent); !done) return done;
    const auto found = find(operation);
    if (!found) return found.error();
    if (*found != operation.inode) return {};
    const errcode_t error =
        ext2fs_unlink(fs_, operation.parent, operation.name.c_str(), operation.inode, 0);
    if (error != 0) return FastFiles::failed(error, operation.parent);
    const auto inode = files_.read_inode(operation.inode);
    if (!inode) return inode.error();
    if (!ExtInode(*inode).is_directory()) return add_links(operation.inode, -1);
    if (const Result<void> done = add_links(operation.parent, -1); !done) return done;
    return add_links(operation.inode, -FastFiles::links(*inode));
  }

  bool spend(std::uint64_t blocks) {
    if (directories_left_ < blocks) return false;
    directories_left_ -= blocks;
    return true;
  }

  const ExtLayout& layout_;
  const ext2_filsys fs_;
  FastFiles files_;
  // Whose blocks are as they can be: how many they had.
  std::map<InodeNumber, std::uint64_t> directories_;
  std::uint64_t directories_left_ = kDirectoryBlocksMax;
};

}  // namespace

Result<void> replay_fast_commits(const ExtVolume& volume, const ExtLayout& layout,
                                 std::span<const FastOperation> operations) {
  if (operations.empty()) return {};
  if (ext2fs_has_feature_bigalloc(volume.fs()->super)) {
    return Error{ErrorCode::kInvalidArgument,
                 "ext2/3/4: fast commits with bigalloc are not understood; a mount may help"};
  }
  return Replayer(volume, layout).run(operations);
}

}  // namespace mariner::ifsck
