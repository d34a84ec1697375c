// Fills an empty ext2, ext3 or ext4 file system with directories and files, in seconds: their
// blocks are taken, and hold nothing. What is left of it is a file system like any other.
//
//   mariner-ifsck-volume IMAGE --trees T --folders F --files N --file-blocks B --big-blocks G
//       --free-percent P
//
// In its root are T directories (/t0, /t1 ...), in each F (/t0/f0 ...), in each of those N files
// (/t0/f0/0 ...) of B blocks, the first of which has G. They lie one behind the other, as they
// would on a new volume, but that P of a hundred blocks of each group stay free, as in a used one.

#include <ext2fs/ext2fs.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Shape {
  std::string image;
  std::uint32_t trees = 1;
  std::uint32_t folders = 100;
  std::uint32_t files = 99;
  std::uint32_t file_blocks = 12;
  std::uint32_t big_blocks = 1450;
  std::uint32_t free_percent = 5;
};

struct Run {
  blk64_t first = 0;
  std::uint32_t count = 0;
};

void ensure(errcode_t error, const char* what) {
  if (error != 0) throw std::runtime_error(fmt::format("{}: {}", what, error_message(error)));
}

class Filler {
 public:
  explicit Filler(const Shape& shape) : shape_(shape) {
    ensure(ext2fs_open2(shape.image.c_str(), nullptr, EXT2_FLAG_RW | EXT2_FLAG_64BITS, 0, 0,
                        unix_io_manager, &fs_),
           "the image");
    ensure(ext2fs_read_bitmaps(fs_), "bitmaps");
    extents_ = ext2fs_has_feature_extents(fs_->super) != 0;
    next_ = fs_->super->s_first_data_block + 1;
    time_ = static_cast<std::uint32_t>(std::time(nullptr));
  }
  Filler(const Filler&) = delete;
  Filler& operator=(const Filler&) = delete;
  ~Filler() { ext2fs_free(fs_); }

  void fill() {
    std::vector<Entry> trees;
    for (std::uint32_t tree = 0; tree < shape_.trees; ++tree) {
      trees.push_back({new_inode(true), fmt::format("t{}", tree), EXT2_FT_DIR});
      std::vector<Entry> folders;
      for (std::uint32_t folder = 0; folder < shape_.folders; ++folder) {
        folders.push_back(
            {make_folder(trees.back().inode), fmt::format("f{}", folder), EXT2_FT_DIR});
      }
      put_directory(trees.back().inode, EXT2_ROOT_INO, folders);
    }
    link_to_root(trees);
    ensure(ext2fs_close_free(&fs_), "the end");
  }

 private:
  struct Entry {
    ext2_ino_t inode = 0;
    std::string name;
    int type = 0;
  };

  ext2_ino_t make_folder(ext2_ino_t parent) {
    const ext2_ino_t folder = new_inode(true);
    std::vector<Entry> files;
    for (std::uint32_t i = 0; i < shape_.files; ++i) {
      files.push_back({new_inode(false), fmt::format("{}", i), EXT2_FT_REG_FILE});
      std::uint32_t left = i == 0 ? shape_.big_blocks : shape_.file_blocks;
      const std::uint64_t bytes = std::uint64_t{left} * fs_->blocksize;
      std::vector<Run> runs;
      for (; left > 0; left -= runs.back().count) runs.push_back(take(left));
      put_inode(files.back().inode, LINUX_S_IFREG | 0644, 1, bytes, runs);
    }
    put_directory(folder, parent, files);
    return folder;
  }

  // ---- what is free

  // As many as are free together, of so many. What a kernel adds later finds room in each group.
  Run take(std::uint32_t count) {
    blk64_t first = 0;
    for (blk64_t from = next_;;) {
      ensure(ext2fs_find_first_zero_block_bitmap2(fs_->block_map, from,
                                                  ext2fs_blocks_count(fs_->super) - 1, &first),
             "blocks");
      const dgrp_t group = ext2fs_group_of_blk2(fs_, first);
      if (first < end_of(group)) break;
      from = ext2fs_group_first_block2(fs_, group + 1);
    }
    const blk64_t end = end_of(ext2fs_group_of_blk2(fs_, first));
    Run run{first, 1};
    while (run.count < count && first + run.count < end &&
           ext2fs_test_block_bitmap2(fs_->block_map, first + run.count) == 0) {
      ++run.count;
    }
    ext2fs_block_alloc_stats_range(fs_, run.first, static_cast<blk_t>(run.count), 1);
    next_ = run.first + run.count;
    return run;
  }

  // Behind the last block of this group that may be taken.
  [[nodiscard]] blk64_t end_of(dgrp_t group) const {
    const blk64_t blocks = fs_->super->s_blocks_per_group;
    return ext2fs_group_first_block2(fs_, group) + blocks - blocks * shape_.free_percent / 100;
  }

  // In the group where blocks are taken, or behind it, so that both are near each other.
  ext2_ino_t new_inode(bool directory) {
    const dgrp_t group = ext2fs_group_of_blk2(fs_, next_);
    const ext2_ino_t from = std::max<ext2_ino_t>(group * fs_->super->s_inodes_per_group + 1,
                                                 EXT2_FIRST_INODE(fs_->super));
    ext2_ino_t inode = 0;
    if (ext2fs_find_first_zero_inode_bitmap2(fs_->inode_map, from, fs_->super->s_inodes_count,
                                             &inode) != 0) {
      ensure(ext2fs_find_first_zero_inode_bitmap2(fs_->inode_map, EXT2_FIRST_INODE(fs_->super),
                                                  fs_->super->s_inodes_count, &inode),
             "inodes");
    }
    ext2fs_inode_alloc_stats2(fs_, inode, 1, directory ? 1 : 0);
    return inode;
  }

  // ---- inodes

  void put_inode(ext2_ino_t number, std::uint16_t mode, std::uint16_t links, std::uint64_t bytes,
                 const std::vector<Run>& runs) {
    ext2_inode_large inode{};
    inode.i_mode = mode;
    inode.i_links_count = links;
    ensure(ext2fs_inode_size_set(fs_, reinterpret_cast<ext2_inode*>(&inode),
                                 static_cast<ext2_off64_t>(bytes)),
           "a size");
    inode.i_atime = inode.i_ctime = inode.i_mtime = time_;
    inode.i_extra_isize = sizeof inode - EXT2_GOOD_OLD_INODE_SIZE;
    std::uint64_t blocks = 0;
    for (const Run& run : runs) blocks += run.count;
    if (extents_) {
      put_extents(inode, runs);
    } else {
      blocks += put_map(inode, runs);
    }
    ensure(ext2fs_iblk_set(fs_, reinterpret_cast<ext2_inode*>(&inode), blocks), "a count");
    ensure(
        ext2fs_write_inode_full(fs_, number, reinterpret_cast<ext2_inode*>(&inode), sizeof inode),
        "an inode");
  }

  void put_extents(ext2_inode_large& inode, const std::vector<Run>& runs) {
    constexpr std::uint16_t kFitting = 4;
    if (runs.size() > kFitting) throw std::runtime_error("a file is in more pieces than expected");
    inode.i_flags = EXT4_EXTENTS_FL;
    auto* const head = reinterpret_cast<ext3_extent_header*>(inode.i_block);
    *head = {.eh_magic = EXT3_EXT_MAGIC,
             .eh_entries = static_cast<std::uint16_t>(runs.size()),
             .eh_max = kFitting,
             .eh_depth = 0,
             .eh_generation = 0};
    auto* extent = reinterpret_cast<ext3_extent*>(head + 1);
    std::uint32_t logical = 0;
    for (const Run& run : runs) {
      *extent++ = {.ee_block = logical,
                   .ee_len = static_cast<std::uint16_t>(run.count),
                   .ee_start_hi = static_cast<std::uint16_t>(run.first >> 32),
                   .ee_start = static_cast<std::uint32_t>(run.first)};
      logical += run.count;
    }
  }

  // How many blocks that takes.
  std::uint64_t put_map(ext2_inode_large& inode, const std::vector<Run>& runs) {
    std::vector<std::uint32_t> all;
    for (const Run& run : runs) {
      for (std::uint32_t i = 0; i < run.count; ++i) {
        all.push_back(static_cast<std::uint32_t>(run.first) + i);
      }
    }
    const std::size_t direct = std::min<std::size_t>(all.size(), EXT2_NDIR_BLOCKS);
    std::copy_n(all.begin(), direct, inode.i_block);
    const std::size_t fitting = fs_->blocksize / sizeof(std::uint32_t);
    std::vector<std::uint32_t> nodes;
    for (std::size_t at = direct; at < all.size(); at += fitting) {
      nodes.push_back(put_node(
          {all.begin() + static_cast<std::ptrdiff_t>(at),
           all.begin() + static_cast<std::ptrdiff_t>(std::min(at + fitting, all.size()))}));
    }
    if (nodes.size() > fitting + 1) throw std::runtime_error("a file is larger than expected");
    if (!nodes.empty()) inode.i_block[EXT2_IND_BLOCK] = nodes.front();
    if (nodes.size() < 2) return nodes.size();
    inode.i_block[EXT2_DIND_BLOCK] = put_node({nodes.begin() + 1, nodes.end()});
    return nodes.size() + 1;
  }

  std::uint32_t put_node(std::vector<std::uint32_t> entries) {
    const Run run = take(1);
    entries.resize(fs_->blocksize / sizeof(std::uint32_t));
    ensure(io_channel_write_blk64(fs_->io, run.first, 1, entries.data()), "an indirect block");
    return static_cast<std::uint32_t>(run.first);
  }

  // ---- directories

  void put_directory(ext2_ino_t number, ext2_ino_t parent, const std::vector<Entry>& entries) {
    std::vector<Entry> all{{number, ".", EXT2_FT_DIR}, {parent, "..", EXT2_FT_DIR}};
    all.insert(all.end(), entries.begin(), entries.end());
    std::vector<Run> runs;
    std::uint64_t bytes = 0;
    for (std::size_t at = 0; at < all.size();) {
      runs.push_back(take(1));
      at = put_names(number, runs.back().first, all, at);
      bytes += fs_->blocksize;
      const std::size_t last = runs.size() - 1;
      if (last > 0 && runs[last - 1].first + runs[last - 1].count == runs[last].first) {
        ++runs[last - 1].count;
        runs.pop_back();
      }
    }
    const auto folders = std::ranges::count(entries, EXT2_FT_DIR, &Entry::type);
    put_inode(number, LINUX_S_IFDIR | 0755, static_cast<std::uint16_t>(2 + folders), bytes, runs);
  }

  // As many as there is room for, from `at` on; where the next block goes on.
  std::size_t put_names(ext2_ino_t number, blk64_t block, const std::vector<Entry>& all,
                        std::size_t at) {
    const bool tail = ext2fs_has_feature_metadata_csum(fs_->super) != 0;
    const std::size_t room = fs_->blocksize - (tail ? sizeof(ext2_dir_entry_tail) : 0);
    std::vector<char> bytes(fs_->blocksize);
    std::size_t used = 0;
    ext2_dir_entry_2* last = nullptr;
    for (; at < all.size(); ++at) {
      const Entry& each = all[at];
      const std::size_t length =
          (8 + each.name.size() + EXT2_DIR_ROUND) & ~std::size_t{EXT2_DIR_ROUND};
      if (used + length > room) break;
      last = reinterpret_cast<ext2_dir_entry_2*>(bytes.data() + used);
      last->inode = each.inode;
      last->rec_len = static_cast<std::uint16_t>(length);
      last->name_len = static_cast<std::uint8_t>(each.name.size());
      last->file_type = static_cast<std::uint8_t>(each.type);
      std::memcpy(last->name, each.name.data(), each.name.size());
      used += length;
    }
    last->rec_len = static_cast<std::uint16_t>(last->rec_len + room - used);
    if (tail) {
      ext2fs_initialize_dirent_tail(fs_,
                                    reinterpret_cast<ext2_dir_entry_tail*>(bytes.data() + room));
    }
    ensure(ext2fs_write_dir_block4(fs_, block, bytes.data(), 0, number), "a directory");
    return at;
  }

  void link_to_root(const std::vector<Entry>& trees) {
    for (const Entry& each : trees) {
      errcode_t error = ext2fs_link(fs_, EXT2_ROOT_INO, each.name.c_str(), each.inode, each.type);
      if (error == EXT2_ET_DIR_NO_SPACE) {
        ensure(ext2fs_expand_dir(fs_, EXT2_ROOT_INO), "the root");
        error = ext2fs_link(fs_, EXT2_ROOT_INO, each.name.c_str(), each.inode, each.type);
      }
      ensure(error, "the root");
    }
    ext2_inode root{};
    ensure(ext2fs_read_inode(fs_, EXT2_ROOT_INO, &root), "the root");
    root.i_links_count = static_cast<std::uint16_t>(root.i_links_count + trees.size());
    ensure(ext2fs_write_inode(fs_, EXT2_ROOT_INO, &root), "the root");
  }

  const Shape& shape_;
  ext2_filsys fs_ = nullptr;
  bool extents_ = false;
  blk64_t next_ = 0;
  std::uint32_t time_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Shape shape;
  CLI::App program("Fills an empty ext2, ext3 or ext4 file system with directories and files.");
  program.add_option("image", shape.image)->required();
  program.add_option("--trees", shape.trees)->capture_default_str();
  program.add_option("--folders", shape.folders)->capture_default_str();
  program.add_option("--files", shape.files)->capture_default_str();
  program.add_option("--file-blocks", shape.file_blocks)->capture_default_str();
  program.add_option("--big-blocks", shape.big_blocks)->capture_default_str();
  program.add_option("--free-percent", shape.free_percent)->capture_default_str();
  CLI11_PARSE(program, argc, argv);
  initialize_ext2_error_table();
  try {
    Filler(shape).fill();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", shape.image, error.what());
    return 1;
  }
  return 0;
}
