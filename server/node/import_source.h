// What a volume is imported from: a raw image, a file or a block device of the daemon's machine.
#pragma once

#include <cstdint>
#include <string>

#include "proto/error.h"

namespace mariner::node {

class ImportSource {
 public:
  ImportSource() = default;
  ~ImportSource();
  ImportSource(ImportSource&& other) noexcept;
  ImportSource& operator=(ImportSource&& other) noexcept;

  // Blocking, but never on a pipe or a terminal. kInvalidArgument for what is neither file nor
  // block device, for an image in another format and for descriptors of the daemon itself
  // (/dev/fd, /proc); kNotFound, kIo.
  static Result<ImportSource> open(const std::string& path);

  [[nodiscard]] int descriptor() const { return file_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  int file_ = -1;
  std::uint64_t bytes_ = 0;
};

}  // namespace mariner::node
