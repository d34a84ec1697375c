// A block device or file whose single sectors are accessed and timed: TimedDisk on the operating
// system, past the page cache (O_DIRECT).
//
// kRead changes nothing. Linux cannot ask a drive to read past its own buffer, so a drive that has
// one may answer from it, and then no rotation shows. kRewrite reads the sector and writes the same
// bytes back, durably (O_DSYNC: FUA or a flush), which no buffer answers; the contents stay what
// they are as long as nobody else writes the device, so it is opened exclusively.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "logging/phase_meter.h"

namespace mariner::logging {

class TimedDevice final : public TimedDisk {
 public:
  enum class Access { kRead, kRewrite };

  // kInvalidArgument: neither a block device nor a regular file, empty, of sectors that are neither
  // 512 nor 4096 bytes, or a file to be rewritten (it has no geometry that would be worth it).
  // kBusy: a running marinerd or, with kRewrite, a mount holds it.
  static Result<std::unique_ptr<TimedDevice>> open(const std::string& path, Access access);
  ~TimedDevice() override;
  TimedDevice(const TimedDevice&) = delete;
  TimedDevice& operator=(const TimedDevice&) = delete;

  [[nodiscard]] bool is_file() const { return is_file_; }
  // The device's physical sector; 4096 for a file. What does not fill a sector is left out.
  [[nodiscard]] std::uint32_t sector_bytes() const { return sector_bytes_; }
  [[nodiscard]] std::uint64_t sectors() const { return sectors_; }

  Result<Time> access(std::uint64_t sector) override;

 private:
  TimedDevice(std::string path, Access access) : path_(std::move(path)), access_(access) {}
  Result<void> open_it();
  Result<void> look_at();

  const std::string path_;
  const Access access_;
  int fd_ = -1;
  bool is_file_ = false;
  std::uint32_t sector_bytes_ = 0;
  std::uint64_t sectors_ = 0;
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  std::unique_ptr<std::byte[], Free> sector_;  // aligned for O_DIRECT
};

}  // namespace mariner::logging
