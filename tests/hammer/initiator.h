// One iSCSI session with many commands outstanding, on libiscsi's asynchronous interface.
//
// Single-threaded: completions run inside poll(). A lost connection is final: every command that is
// outstanding then completes with a status other than GOOD, and poll() returns an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "proto/error.h"
#include "tests/hammer/journal.h"
#include "tests/hammer/model.h"

struct iscsi_context;

namespace mariner::hammer {

struct InitiatorOptions {
  std::string url;  // iscsi://HOST:PORT/IQN/LUN
  std::string name = "iqn.2026-11.org.mariner:hammer";
  // A command that meets a unit attention is sent again, as hosts do; otherwise that is its status.
  bool repeat_attentions = false;
};

class Initiator {
 public:
  // `status` is the SCSI status, or one of libiscsi's own above 255. `data` is what a read
  // returned.
  using Done = std::function<void(int status, std::span<const std::byte> data)>;
  static constexpr int kGood = 0;

  // Logs in, waits until the LUN is ready, and reads its capacity.
  static Result<std::unique_ptr<Initiator>> connect(const InitiatorOptions& options);
  ~Initiator();
  Initiator(const Initiator&) = delete;
  Initiator& operator=(const Initiator&) = delete;

  [[nodiscard]] std::uint64_t cells() const { return cells_; }
  [[nodiscard]] std::uint32_t block_bytes() const { return block_bytes_; }
  [[nodiscard]] std::size_t outstanding() const { return outstanding_; }

  // Sends `write`. `payload` is what fill_payload() made and must live until `done` ran.
  Result<void> send(const Write& write, std::span<std::byte> payload, Done done);
  Result<void> read(CellRange range, Done done);
  // Moves data and runs completions; returns after an event or `timeout_ms`.
  Result<void> poll(int timeout_ms);
  // Ends the session in order. Nothing may be outstanding.
  void logout();

 private:
  struct Command;
  explicit Initiator(iscsi_context* context) : context_(context) {}
  Result<void> read_capacity();
  Error failure(const std::string& what) const;
  Result<void> start(std::unique_ptr<Command> command);

  iscsi_context* context_;
  int lun_ = 0;
  bool repeat_attentions_ = false;
  std::uint64_t cells_ = 0;
  std::uint32_t block_bytes_ = 0;
  std::size_t outstanding_ = 0;
  bool lost_ = false;
};

// The bytes of `range`, read with many commands outstanding.
Result<std::vector<std::byte>> read_range(Initiator& initiator, CellRange range);

}  // namespace mariner::hammer
