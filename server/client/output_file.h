// A file that a command makes: it has its name once it is whole and durable, and before that none,
// so that whatever ends the command leaves nothing that looks complete. Or a block device, which is
// written in place.
//
// Where a file system has no files without a name, it has one beside the other until then
// (".NAME.partial-NUMBER"); only a killed command leaves that. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "proto/error.h"
#include "proto/units.h"

namespace mariner::client {

class OutputFile {
 public:
  enum class Kind { kNew, kReplaced, kDevice };

  // What would be written to. kAlreadyExists: it is there, and not to be replaced (`force`);
  // kInvalidArgument: neither a file nor a block device, or no name.
  [[nodiscard]] static Result<Kind> look(const std::string& path, bool force);
  // The same errors; and kBusy of a device that is in use.
  [[nodiscard]] static Result<std::unique_ptr<OutputFile>> open(const std::string& path,
                                                                bool force);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  [[nodiscard]] bool is_device() const { return is_device_; }
  [[nodiscard]] std::uint64_t device_bytes() const { return device_bytes_; }

  [[nodiscard]] Result<void> write(std::uint64_t offset, std::span<const std::byte> bytes);
  // Where nothing was written: it reads as zeros.
  [[nodiscard]] Result<void> clear(ByteRange range);
  // Owner and mode are those of the file that is replaced; else it is the caller's, of mode 0600.
  [[nodiscard]] Result<void> keep_owner_and_mode();
  // A file is as long as this.
  [[nodiscard]] Result<void> set_length(std::uint64_t bytes);
  // Makes all of it durable, and gives it its name. kAlreadyExists: somebody else has that by now,
  // and it is not to be replaced.
  [[nodiscard]] Result<void> commit();

 private:
  explicit OutputFile(std::string path, bool force);
  Result<void> open_device();
  Result<void> open_file();
  Result<void> take_name();
  void begin_writeback(ByteRange written);
  [[nodiscard]] Error failed(const char* what) const;

  const std::string path_;
  const bool force_;
  std::string name_;       // in its folder
  std::string temporary_;  // the same; empty: it has no name
  int folder_ = -1;
  int fd_ = -1;
  bool is_device_ = false;
  std::uint64_t device_bytes_ = 0;
  ByteRange unwritten_;  // whose writeback was not begun
};

// What is in the range of the open file or device reads as zeros afterwards, and takes no space
// where that can be. errno, or 0.
[[nodiscard]] int zero_range(int fd, ByteRange range);

}  // namespace mariner::client
