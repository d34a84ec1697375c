// Shows a tree of the past (HistoryFiles) in a folder, by FUSE, read-only.
//
// The kernel keeps what never changes: names, attributes and contents of what is below a "@". It
// can be exported by NFS: file handles are good as long as it is mounted, and of no other mount.
#pragma once

#include <memory>
#include <string>

#include "proto/error.h"
#include "uvfs/history_files.h"

namespace mariner::uvfs {

class FuseServer {
 public:
  struct Options {
    std::string folder;
    std::string name;          // what is mounted, as mount(8) shows it
    bool allow_other = false;  // than who mounts it
  };
  // `files` outlive it; nothing is asked of them before run(). One thread. kInvalidArgument:
  // nothing can be mounted there; it says on the standard error why.
  [[nodiscard]] static Result<std::unique_ptr<FuseServer>> mount(HistoryFiles& files,
                                                                 const Options& options);
  ~FuseServer();  // unmounts; if this process ends otherwise, the mount keeper does
  FuseServer(const FuseServer&) = delete;
  FuseServer& operator=(const FuseServer&) = delete;

  // Answers until it is unmounted, or a signal ends it.
  [[nodiscard]] Result<void> run();

 private:
  struct Session;
  explicit FuseServer(std::unique_ptr<Session> session);

  std::unique_ptr<Session> session_;
};

}  // namespace mariner::uvfs
