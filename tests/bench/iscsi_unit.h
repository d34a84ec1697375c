// A LUN that is logged in to, through libiscsi. A lost connection is final. Not thread-safe.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "proto/error.h"

struct iscsi_context;
struct iscsi_url;
struct scsi_task;

namespace mariner::bench {

class IscsiUnit {
 public:
  struct Options {
    std::string url;  // iscsi://HOST:PORT/IQN/LUN
    std::string initiator;
    bool immediate_data = true;
    bool initial_r2t = false;
    std::optional<std::uint32_t>
        isid;  // the lower 24 bits of a random one; none: as libiscsi likes
  };
  using Done = std::function<void(Result<void>)>;

  IscsiUnit() = default;
  ~IscsiUnit();
  IscsiUnit(const IscsiUnit&) = delete;
  IscsiUnit& operator=(const IscsiUnit&) = delete;

  // Logs in and reads the capacity. Once.
  Result<void> connect(const Options& options);
  void logout();

  // The same without waiting. serve() calls `done` once, unless the unit ends first; `done` must
  // not end it.
  Result<void> begin_connect(const Options& options, Done done);
  Result<void> begin_logout(Done done);

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
  // A new context, and where its options lead.
  Result<iscsi_url*> prepare(const Options& options);
  [[nodiscard]] bool take_capacity(scsi_task* task);
  void finish(Result<void> result);
  static void connected(iscsi_context* context, int status, void* data, void* unit);
  static void capacity_read(iscsi_context* context, int status, void* task, void* unit);
  static void logged_out(iscsi_context* context, int status, void* data, void* unit);

  Done done_;
  iscsi_context* context_ = nullptr;
  int lun_ = 0;
  std::uint64_t size_bytes_ = 0;
  std::uint32_t lba_bytes_ = 0;
};

}  // namespace mariner::bench
