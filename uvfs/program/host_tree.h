// Writes a file, a link or a whole tree of the past to this host.
//
// Names and numbers come from a foreign file system. Every step goes down by one name from a
// directory that is held open, follows no link, and makes what was not there. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "proto/error.h"
#include "uvfs/program/file_source.h"
#include "uvfs/program/file_tree.h"
#include "uvfs/program/host_place.h"

namespace mariner::uvfs {

class HostTree {
 public:
  struct Options {
    SequenceNumber at;
    // Of an object of the moment; the history's if this is null.
    std::function<Result<FileContents>(ObjectNumber number)> contents{};
    // Owners, set-user-ID, devices and fifos, too.
    bool privileged = false;
    std::function<void(std::size_t entries, std::uint64_t bytes)> progress{};
  };
  struct Done {
    std::uint64_t files = 0;
    std::uint64_t directories = 0;
    std::uint64_t links = 0;
    std::uint64_t others = 0;
    std::uint64_t bytes = 0;         // written
    std::vector<std::string> notes;  // what is not as it was, and why
    bool failed = false;             // ... because it could not be read whole, or not be made here
  };

  // All of them outlive it.
  HostTree(OpenHistory& history, const FileTree& tree, HostPlace& place, const Options& options)
      : history_(history), tree_(tree), place_(place), options_(options) {}

  // To the place's temporary name; what cannot be made, or not be read of one of them, is noted.
  // Errors: of the past, and what would go wrong with all that follows (kNoSpace, kIo).
  [[nodiscard]] Result<Done> write();

 private:
  using Entry = FileTree::Entry;

  [[nodiscard]] Result<FileContents> contents_of(std::size_t entry);
  // What is in the directory that an entry is in; good until another one is asked for.
  [[nodiscard]] Result<int> folder_of(std::size_t entry);
  [[nodiscard]] Result<HostFd> walk_to(std::size_t directory) const;
  [[nodiscard]] const std::string& name_of(std::size_t entry) const;
  [[nodiscard]] std::string shown(std::size_t entry) const;
  void note(std::size_t entry, std::string_view what);
  // This host does not make it: noted. What is in a directory goes with it.
  void not_made(std::size_t entry, int error);
  // It cannot be read: noted, if that is a matter of this one, and if there are others.
  [[nodiscard]] Result<void> leave_out(std::size_t entry, const Error& why);

  [[nodiscard]] Result<void> make(std::size_t entry);
  [[nodiscard]] Result<void> make_directory(std::size_t entry);
  [[nodiscard]] Result<void> make_file(std::size_t entry);
  // False: it cannot be done, which is noted.
  [[nodiscard]] Result<bool> fill(std::size_t entry, FileContents& contents, int fd);
  [[nodiscard]] Result<void> make_link(std::size_t entry);
  [[nodiscard]] Result<void> make_other(std::size_t entry);
  // True: it is another name of a file that was made already.
  [[nodiscard]] Result<bool> make_hard_link(std::size_t entry);
  [[nodiscard]] Result<void> finish_directories();
  // Attributes, owner, mode and times, of an open file or directory.
  [[nodiscard]] Result<void> settle(std::size_t entry, int fd);
  [[nodiscard]] Result<void> set_attributes(std::size_t entry, int fd);
  // The same of what cannot be opened.
  void settle_by_name(std::size_t entry, int folder);

  OpenHistory& history_;
  const FileTree& tree_;
  HostPlace& place_;
  const Options options_;
  Done done_;
  std::vector<bool> made_;
  std::unordered_map<ObjectNumber, std::size_t> by_inode_;  // with several names
  HostFd folder_;
  std::size_t folder_entry_ = 0;
};

}  // namespace mariner::uvfs
