#include "uvfs/program/file_tree.h"

#include <ext2fs/ext2_fs.h>
#include <fmt/format.h>

#include <unordered_set>
#include <utility>

namespace mariner::uvfs {
namespace {

class Reader {
 public:
  Reader(FilesHistory& history, const FileTree::Options& options)
      : history_(history), options_(options) {}

  Result<FileTree> read() {
    if (const auto loaded = history_.load(std::span(&options_.root, 1)); !loaded) {
      return loaded.error();
    }
    tree_.entries.push_back({0, "", options_.root, state(options_.root)});
    directories_.insert(options_.root);
    // Level by level: so that all of one are asked for at once.
    for (std::size_t begin = 0; begin < tree_.entries.size();) {
      const std::size_t end = tree_.entries.size();
      if (const auto added = add_level(begin, end); !added) return added.error();
      begin = end;
      if (options_.one_level) break;
    }
    return std::move(tree_);
  }

 private:
  [[nodiscard]] ObjectState state(ObjectNumber inode) const {
    return history_.state(inode, options_.at);
  }

  Result<void> add_level(std::size_t begin, std::size_t end) {
    std::vector<FileTree::Entry> children;
    std::vector<ObjectNumber> numbers;
    for (std::size_t i = begin; i < end; ++i) {
      const FileTree::Entry& parent = tree_.entries[i];
      if (!LINUX_S_ISDIR(parent.object.mode)) continue;
      const NameHistory* const names = history_.names(parent.inode);
      if (names == nullptr) continue;
      if (names->is_damaged()) {
        tree_.damaged = true;
        const std::string path = tree_.path_of(i);
        tree_.skipped.push_back(fmt::format("{} is damaged: names in it may be missing",
                                            path.empty() ? "the directory" : path));
      }
      names->for_each([&](std::string_view name, std::span<const NameHistory::Span>) {
        const ObjectNumber inode = names->find(name, options_.at);
        if (inode == 0) return;
        children.push_back({i, std::string(name), inode, {}});
        numbers.push_back(inode);
      });
      if (tree_.entries.size() + children.size() > FileTree::kEntriesMax) {
        return Error{ErrorCode::kLimit,
                     fmt::format("more than {} files are below this directory: take one further "
                                 "down",
                                 FileTree::kEntriesMax)};
      }
    }
    if (const auto loaded = history_.load(numbers); !loaded) return loaded.error();
    for (FileTree::Entry& each : children) add(std::move(each));
    return {};
  }

  void add(FileTree::Entry entry) {
    if (!is_safe_name(entry.name)) return skip(entry, "this is not the name of a file");
    const bool can_be = history_.find(entry.inode) != nullptr;
    if (can_be) entry.object = state(entry.inode);
    if (!entry.object.exists) {
      tree_.damaged = true;
      return skip(entry, can_be ? "its inode is not in use" : "there is no such inode");
    }
    if (LINUX_S_ISDIR(entry.object.mode) && !directories_.insert(entry.inode).second) {
      return skip(entry, "this directory has another name already");
    }
    tree_.entries.push_back(std::move(entry));
  }

  void skip(const FileTree::Entry& entry, std::string_view why) {
    const std::string above = tree_.path_of(entry.parent);
    tree_.skipped.push_back(fmt::format("{}{}{} is left out: {} (inode {})", above,
                                        above.empty() ? "" : "/", entry.name, why,
                                        shown_number(entry.inode)));
  }

  FilesHistory& history_;
  const FileTree::Options options_;
  FileTree tree_;
  std::unordered_set<ObjectNumber> directories_;
};

}  // namespace

Result<FileTree> FileTree::read(FilesHistory& history, const Options& options) {
  return Reader(history, options).read();
}

std::string FileTree::path_of(std::size_t entry) const {
  std::vector<std::size_t> way;
  for (; entry != 0; entry = entries[entry].parent) way.push_back(entry);
  std::string path;
  for (; !way.empty(); way.pop_back()) {
    if (!path.empty()) path += '/';
    path += entries[way.back()].name;
  }
  return path;
}

}  // namespace mariner::uvfs
