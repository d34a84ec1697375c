// Where something is restored to on this host: a name in a directory. What is written goes to
// another name beside it first, and takes the place when it is whole.
//
// Nothing is written through a symbolic link that stands there: it would be replaced itself.
#pragma once

#include <string>
#include <utility>

#include "proto/error.h"

namespace mariner::uvfs {

// A descriptor that is closed with it.
class HostFd {
 public:
  explicit HostFd(int fd = -1) : fd_(fd) {}
  ~HostFd();
  HostFd(HostFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  HostFd& operator=(HostFd&& other) noexcept;
  [[nodiscard]] int fd() const { return fd_; }
  // errno of closing it: what was written may not have been.
  [[nodiscard]] int close();

 private:
  int fd_;
};

class HostPlace {
 public:
  // `path` names what is to be; the directory that it is in exists. kInvalidArgument: it has no
  // name ("/", ".."). kAlreadyExists: something is there, and `replace` is not set, or it is a
  // directory with something in it. kIo.
  [[nodiscard]] static Result<HostPlace> open(const std::string& path, bool replace);
  ~HostPlace();  // what was not taken into place is removed
  HostPlace(HostPlace&& other) noexcept;
  HostPlace& operator=(HostPlace&&) = delete;

  [[nodiscard]] int folder() const { return folder_.fd(); }
  // The name to write to, in folder(); nobody else has it.
  [[nodiscard]] const std::string& temporary_name() const { return temporary_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  // What is to be is a directory, or is none: kAlreadyExists, if what is there is not replaced by
  // such a thing.
  [[nodiscard]] Result<void> check(bool directory) const;
  // Gives it its name. Replaced is what is not a directory with anything in it. kAlreadyExists,
  // kIo.
  [[nodiscard]] Result<void> take_place();

 private:
  HostPlace(std::string path, HostFd folder, std::string name, bool replace);

  std::string path_;
  HostFd folder_;
  std::string name_;
  std::string temporary_;
  bool replace_;
  bool done_ = false;
};

// Removes `name` in a directory with all that is in it, as far as that is possible; follows no
// link.
void remove_tree(int folder, const std::string& name);

}  // namespace mariner::uvfs
