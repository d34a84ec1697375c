// A logical unit of type disk: executes decoded commands on a volume's layer (SBC-3).
//
// Owner's thread only. Every change that a command makes is handed to the layer before execute()
// returns, so that Layer::settle() after it covers them all; task management relies on it.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "proto/check.h"
#include "server/scsi/cdb.h"
#include "server/scsi/identity.h"
#include "server/scsi/log_pages.h"
#include "server/scsi/mode.h"
#include "server/scsi/port_groups.h"
#include "server/scsi/removable_medium.h"
#include "server/scsi/reply.h"
#include "server/scsi/sanitizer.h"
#include "server/scsi/self_test.h"
#include "server/scsi/statistics.h"
#include "server/scsi/target_device.h"
#include "server/scsi/unit_access.h"
#include "server/volume/layer.h"

namespace mariner::scsi {

struct DiskOptions {
  Identity identity;
  std::uint32_t block_bytes = 512;  // 512 or 4096
  // Of one READ, WRITE or VERIFY; whole blocks. With parts of blocks at both ends it is to fit into
  // a record of the log.
  std::uint32_t transfer_bytes_max = 2 << 20;
  MonotonicClock clock;  // for what the log pages tell of times; null: they tell nothing
  std::shared_ptr<Sanitizer> sanitizer;  // null: SANITIZE is not known
  bool removable = false;                // whether the medium can be ejected
  // Of a unit that several nodes serve, under one identity; null: this one alone does. In every
  // state the layer tells how long the unit is and whether it is read-only; what it is asked beyond
  // that while the unit is not active here fails with kUnavailable.
  std::shared_ptr<const PortGroups> port_groups;
};

class Disk final : public std::enable_shared_from_this<Disk> {
 public:
  // `layer` must be at least a block long; what remains after the last whole block is not used.
  Disk(DiskOptions options, std::shared_ptr<volume::Layer> layer);
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  // The disk as it is now: the layer may have been resized.
  [[nodiscard]] Geometry geometry() const;
  [[nodiscard]] SenseFormat sense_format() const;

  // Executes a command that decode() returned for the geometry of this moment, or for fewer blocks;
  // but for REQUEST SENSE and REPORT LUNS, which are the device's. `done` runs once; the disk lives
  // until then.
  void execute(const Decoded& decoded, const Command& command, CommandDone done);

  [[nodiscard]] const Identity& identity() const { return options_.identity; }
  // What the states of its ports mean for its commands. execute() is for those that are allowed.
  [[nodiscard]] const UnitAccess& access() const { return access_; }
  // For a copy, which goes past the CDBs: within geometry(), and write_protection() permitting.
  [[nodiscard]] volume::Layer& layer() { return *layer_; }
  [[nodiscard]] const std::shared_ptr<volume::Layer>& shared_layer() const { return layer_; }
  [[nodiscard]] RemovableMedium& medium() { return medium_; }
  // What an initiator that came through this port is told when the layer failed to read or write at
  // `lba`.
  [[nodiscard]] Response failure(const Error& error, Access access, std::uint64_t lba,
                                 std::uint16_t target_port) const;
  // DATA PROTECT, if nothing may be written.
  [[nodiscard]] std::optional<Sense> write_protection() const;

  // Why a command with this operation cannot be carried out now: there is no medium, the unit is
  // stopped, or tests itself in the foreground. INQUIRY, REPORT LUNS and REQUEST SENSE are not
  // asked for.
  [[nodiscard]] std::optional<Sense> not_ready(Operation operation) const;
  // What REQUEST SENSE tells when no unit attention waits (SPC-4 5.11.2).
  [[nodiscard]] Sense pollable_sense() const;
  // `tell` runs when every initiator is to be told of an informational exception (MRIE 2h); at most
  // once for each.
  void when_exception(std::function<void(AdditionalSense)> tell) { tell_ = std::move(tell); }

  // A logical unit reset: mode parameters and counters return to their defaults, self-tests end,
  // a unit that was stopped is started, and nobody prevents the removal of the medium.
  void reset();
  // Ends a self-test in the foreground, of this nexus or, null, of any; with a tag only that of
  // this command, or of one that has none.
  void abort_self_test(const Nexus* of, std::optional<TaskTag> tag = std::nullopt);
  // See Layer::settle().
  void settle(UniqueFunction<void()> done);

  // Counts changes of the mode parameters, so that other initiators can be told of them.
  [[nodiscard]] std::uint64_t mode_generation() const { return mode_generation_; }
  // The same of what LOG SELECT changes.
  [[nodiscard]] std::uint64_t log_generation() const { return log_generation_; }

 private:
  struct Gather;
  // What a command that fails in the layer is answered with: where that was, and to whom.
  struct Origin {
    std::uint64_t lba = 0;
    std::uint16_t target_port = 1;
  };

  // Commands that are answered at once.
  Response answer(const Sense& sense, const Command& command);
  Response answer(const TestUnitReady& test, const Command& command);
  Response answer(const RequestSense& request, const Command& command);
  Response answer(const ReportLuns& report, const Command& command);
  Response answer(const PreventAllow& prevent, const Command& command);
  Response answer(const Prefetch& prefetch, const Command& command);
  Response answer(const Inquiry& inquiry, const Command& command);
  Response answer(const ModeSense& sense, const Command& command);
  Response answer(const ModeSelect& select, const Command& command);
  Response answer(const ReadCapacity& read, const Command& command);
  Response answer(const ReportPortGroups& report, const Command& command);
  Response answer(const ReportOpcodes& report, const Command& command);
  Response answer(const ReportTaskManagement& report, const Command& command);
  Response answer(const ReadDefectData& read, const Command& command);
  Response answer(const LogSense& sense, const Command& command);
  Response answer(const LogSelect& select, const Command& command);
  Response answer(const ReceiveDiagnostic& receive, const Command& command);
  // The device answers these.
  template <typename Reserve>
    requires std::same_as<Reserve, Reserve6> || std::same_as<Reserve, Release6> ||
             std::same_as<Reserve, PersistentReserveIn> ||
             std::same_as<Reserve, PersistentReserveOut> || ThirdPartyCopy<Reserve> ||
             std::same_as<Reserve, Sanitize> || std::same_as<Reserve, FormatUnit> ||
             std::same_as<Reserve, ReadBuffer> || std::same_as<Reserve, WriteBuffer>
  Response answer(const Reserve&, const Command&) {
    CHECK_MSG(false, "reservations, copies and echo buffers are the device's");
  }

  // Commands that wait for the layer.
  void run(const Read& read, const Command& command, CommandDone done);
  void run(const Write& write, const Command& command, CommandDone done);
  void run(const WriteAndVerify& write, const Command& command, CommandDone done);
  void run(const CompareAndWrite& write, const Command& command, CommandDone done);
  void run(const OrWrite& write, const Command& command, CommandDone done);
  void run(const Verify& verify, const Command& command, CommandDone done);
  void run(const WriteSame& write, const Command& command, CommandDone done);
  void run(const Unmap& unmap, const Command& command, CommandDone done);
  void run(const GetLbaStatus& get, const Command& command, CommandDone done);
  void run(const SynchronizeCache& synchronize, const Command& command, CommandDone done);
  void run(const StartStopUnit& start_stop, const Command& command, CommandDone done);
  void run(const SendDiagnostic& send, const Command& command, CommandDone done);

  [[nodiscard]] Response refuse(const Sense& sense) const;
  // The part of `extent` for which `command` brings data; a Sense if that ends within a block.
  [[nodiscard]] std::variant<Sense, Extent> received(const Extent& extent,
                                                     const Command& command) const;
  [[nodiscard]] ByteRange bytes_of(const Extent& extent) const;
  // Begins to count a command that goes to the layer; with `performance` also among those whose
  // number and time are told.
  [[nodiscard]] Statistics::Work count(Traffic traffic, const Extent& extent, bool performance);
  // Ends that, and answers GOOD when a change there succeeded.
  [[nodiscard]] volume::Done when_written(Statistics::Work work, const Origin& origin,
                                          CommandDone done);
  // The answer to a command that failed in the layer, which is counted, unless it was the state of
  // its port that changed.
  [[nodiscard]] Response failed(const Error& error, Traffic traffic, const Origin& origin);
  // The informational exception that is there; kNone without (SBC-3 6.5.8).
  [[nodiscard]] AdditionalSense exception() const;
  // Tells of it, if it is to be told and was not.
  void tell_exception();
  void begin_test(SelfTest::Kind kind, const Command& command, CommandDone done);
  void start();
  void stop(const StartStopUnit& stop, std::uint16_t target_port, CommandDone done);
  struct Expected {
    Extent extent;
    PayloadSlice data;  // repeated as often as it fits; empty: to be read only
    std::uint16_t target_port = 1;
  };
  // Reads the extent and compares it.
  void compare(Expected expected, CommandDone done);
  void flush(std::uint16_t target_port, CommandDone done);

  const DiskOptions options_;
  const std::shared_ptr<volume::Layer> layer_;
  const UnitAccess access_;
  ModeParameters mode_;
  std::uint64_t mode_generation_ = 0;
  Statistics statistics_;
  std::uint64_t log_generation_ = 0;
  const std::shared_ptr<SelfTest> self_test_;
  std::weak_ptr<Nexus> tester_;        // who waits for the one in the foreground
  std::optional<TaskTag> tester_tag_;  // with which command
  bool background_test_failed_ = false;
  std::function<void(AdditionalSense)> tell_;
  AdditionalSense told_ = asc::kNone;
  bool stopped_ = false;
  std::uint64_t starts_ = 0;  // what started the unit; a stop that was begun before is undone by it
  RemovableMedium medium_;
};

}  // namespace mariner::scsi
