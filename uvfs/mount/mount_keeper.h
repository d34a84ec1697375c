// Unmounts what this process has mounted once it ends, however that comes.
//
// It is another process: the one that answers reads a foreign file system, and gives up the right
// to unmount before (server/client/sandbox.h); and if that ends it, nobody is to wait for answers.
#pragma once

#include <sys/types.h>

#include <functional>
#include <utility>

#include "proto/error.h"

namespace mariner::uvfs {

class MountKeeper {
 public:
  // `unmount` runs in the other process, which has no descriptor of this one open but
  // `descriptor`, ignores the signals that end this one, and is of a session of its own. One
  // thread. kIo.
  [[nodiscard]] static Result<MountKeeper> begin(int descriptor,
                                                 const std::function<void()>& unmount);
  MountKeeper() = default;
  ~MountKeeper() { end(); }
  MountKeeper(MountKeeper&& other) noexcept { swap(other); }
  MountKeeper& operator=(MountKeeper&& other) noexcept {
    swap(other);
    return *this;
  }

  // Returns when it has run.
  void end();

 private:
  MountKeeper(int channel, pid_t process) : channel_(channel), process_(process) {}
  void swap(MountKeeper& other) {
    std::swap(channel_, other.channel_);
    std::swap(process_, other.process_);
  }

  int channel_ = -1;  // the other process reads the end of it
  pid_t process_ = -1;
};

}  // namespace mariner::uvfs
