// Many reads of files at once.
//
// Pieces of a file that follow each other closely are read in one call. What the page cache has is
// copied by the caller's thread. From the first piece on that it has not, several threads read: a
// disk that answers one question after the other takes a multiple of the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "proto/error.h"

namespace mariner::ifsck {

struct FileRead {
  int fd = -1;
  std::uint64_t offset = 0;
  std::span<std::byte> to;
  const std::string* path = nullptr;  // for errors
};

inline constexpr std::size_t kReadersMax = 16;  // threads

// Fills all of them, with zeros behind a file's end. They are changed, and in another order
// then. kIo, naming the file.
[[nodiscard]] Result<void> read_files(std::span<FileRead> reads);

}  // namespace mariner::ifsck
