// Goes on in the background, once there is something to see: who started the program gets its
// errors, and its prompt back when all is well.
#pragma once

#include <utility>

#include "proto/error.h"
#include "uvfs/program/host_place.h"

namespace mariner::uvfs {

class Background {
 public:
  // Returns in another process, of a session of its own, whose folder is "/". The first one waits
  // for ready(), and ends with 0; or with that one, and its exit code. One thread. kIo.
  [[nodiscard]] static Result<Background> begin();

  // Nothing is read or printed from here on. kAborted: nobody waits any more.
  [[nodiscard]] Result<void> ready();

 private:
  Background(HostFd channel, HostFd null) : channel_(std::move(channel)), null_(std::move(null)) {}

  HostFd channel_;
  HostFd null_;
};

}  // namespace mariner::uvfs
