// A LUN that is logged in to, through libiscsi. A lost connection is final. Not thread-safe.
#pragma once

#include <poll.h>

#include <cstdint>
#include <string>

#include "proto/error.h"

struct iscsi_context;

namespace mariner::bench {

class IscsiUnit {
 public:
  struct Options {
    std::string url;  // iscsi://HOST:PORT/IQN/LUN
    std::string initiator;
    bool immediate_data = true;
    bool initial_r2t = false;
  };

  IscsiUnit() = default;
  ~IscsiUnit();
  IscsiUnit(const IscsiUnit&) = delete;
  IscsiUnit& operator=(const IscsiUnit&) = delete;

  // Logs in and reads the capacity. Once.
  Result<void> connect(const Options& options);
  void logout();

  [[nodiscard]] iscsi_context* context() const { return context_; }
  [[nodiscard]] int lun() const { return lun_; }
  [[nodiscard]] std::uint64_t size_bytes() const { return size_bytes_; }
  [[nodiscard]] std::uint32_t lba_bytes() const { return lba_bytes_; }

  // What to wait for, as poll() takes it.
  [[nodiscard]] pollfd events() const;
  // Moves data and runs completions; what they queue leaves at once, without another turn through
  // poll(). False: the connection is lost.
  [[nodiscard]] bool serve(short revents);

  // "<what>: <what libiscsi says>".
  [[nodiscard]] Error failure(const std::string& what) const;

 private:
  iscsi_context* context_ = nullptr;
  int lun_ = 0;
  std::uint64_t size_bytes_ = 0;
  std::uint32_t lba_bytes_ = 0;
};

}  // namespace mariner::bench
