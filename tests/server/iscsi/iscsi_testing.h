// What the tests of server/iscsi share: an initiator's PDUs, a device and a directory that do as
// they are told, a clock turned by hand, and a client that talks to one Connection.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/executor.h"
#include "server/iscsi/connection.h"

namespace mariner::iscsi {

using Bytes = std::vector<std::byte>;

[[nodiscard]] Bytes bytes_of(std::string_view text);
[[nodiscard]] std::string text_of(std::span<const std::byte> bytes);
// `count` bytes that differ along the way.
[[nodiscard]] Bytes pattern(std::size_t count, unsigned seed = 1);
// "a=b" "c=d" -> "a=b\0c=d\0"
[[nodiscard]] std::string keys(std::initializer_list<std::string_view> pairs);

// An initiator's PDU.
struct InitiatorPdu {
  Bhs bhs{};
  Bytes ahs;
  Bytes data;

  // Header, additional header, data and padding, with digests where asked for.
  [[nodiscard]] Bytes wire(bool header_digest = false, bool data_digest = false) const;
};

[[nodiscard]] InitiatorPdu login_pdu(std::string_view text, std::uint8_t flags,
                                     std::uint32_t cmd_sn = 1, std::uint16_t tsih = 0);
inline constexpr std::uint8_t kSecurityToOperational = 0x80 | (0 << 2) | 1;
inline constexpr std::uint8_t kSecurityToFull = 0x80 | (0 << 2) | 3;
inline constexpr std::uint8_t kOperationalToFull = 0x80 | (1 << 2) | 3;

struct CommandFields {
  std::uint32_t itt = 1;
  std::uint32_t cmd_sn = 1;
  std::uint64_t lun = 0;
  std::uint32_t expected_bytes = 0;
  std::uint8_t flags = 0x80;
  bool immediate = false;
  std::array<std::uint8_t, 16> cdb{};
  Bytes data;
};
inline constexpr std::uint8_t kFinal = 0x80;
inline constexpr std::uint8_t kRead = 0x40;
inline constexpr std::uint8_t kWrite = 0x20;
[[nodiscard]] InitiatorPdu command_pdu(const CommandFields& fields);
// CDBs of READ(10) and WRITE(10) over 512-byte blocks.
[[nodiscard]] std::array<std::uint8_t, 16> read10(std::uint32_t lba, std::uint16_t blocks);
[[nodiscard]] std::array<std::uint8_t, 16> write10(std::uint32_t lba, std::uint16_t blocks);

struct DataOutFields {
  std::uint32_t itt = 1;
  std::uint32_t ttt = kReservedTag;
  std::uint32_t data_sn = 0;
  std::uint32_t offset = 0;
  bool final = true;
  Bytes data;
};
[[nodiscard]] InitiatorPdu data_out_pdu(const DataOutFields& fields);

struct ManagementFields {
  TaskManagement function = TaskManagement::kAbortTask;
  std::uint32_t itt = 100;
  std::uint32_t referenced_itt = kReservedTag;
  std::uint32_t cmd_sn = 1;
  std::uint32_t ref_cmd_sn = 0;
  std::uint64_t lun = 0;
};
[[nodiscard]] InitiatorPdu management_pdu(const ManagementFields& fields);  // immediate
[[nodiscard]] InitiatorPdu nop_out_pdu(std::uint32_t itt, std::uint32_t ttt, Bytes data = {});
[[nodiscard]] InitiatorPdu text_pdu(std::string_view text, std::uint32_t ttt = kReservedTag,
                                    std::uint8_t flags = kFinal);                   // immediate
[[nodiscard]] InitiatorPdu logout_pdu(LogoutReason reason, std::uint16_t cid = 0);  // immediate

// A target's PDU, taken apart.
struct TargetPdu {
  Bhs bhs{};
  Bytes data;

  [[nodiscard]] Opcode opcode() const;
  [[nodiscard]] std::uint8_t u8(std::size_t at) const;
  [[nodiscard]] std::uint16_t u16(std::size_t at) const;
  [[nodiscard]] std::uint32_t u32(std::size_t at) const;
  [[nodiscard]] std::uint32_t itt() const { return u32(16); }
  [[nodiscard]] std::uint32_t ttt() const { return u32(20); }
  [[nodiscard]] std::uint32_t stat_sn() const { return u32(24); }
  [[nodiscard]] std::uint32_t exp_cmd_sn() const { return u32(28); }
  [[nodiscard]] std::uint32_t max_cmd_sn() const { return u32(32); }
};

// Takes a target's stream apart; checks padding and digests (throws std::runtime_error).
[[nodiscard]] std::vector<TargetPdu> parse_target_stream(std::span<const std::byte> stream,
                                                         bool header_digest, bool data_digest);

class TestNexus final : public scsi::Nexus {};

// Answers at once, or when told. READ(10) returns pattern(); WRITE(10) keeps what it is given.
class TestDevice final : public scsi::TargetDevice {
 public:
  struct Pending {
    scsi::Command command;
    scsi::CommandDone done;
  };
  struct Managed {
    scsi::TaskManagementFunction function;
    std::uint64_t lun = 0;
    UniqueFunction<void()> done;
  };

  std::shared_ptr<scsi::Nexus> attach(const scsi::NexusId& id) override;
  [[nodiscard]] scsi::Transfer transfer_of(std::uint64_t lun,
                                           std::span<const std::uint8_t, 16> cdb) const override;
  void execute(scsi::Command command, scsi::CommandDone done) override;
  void manage(scsi::TaskManagementFunction function, std::uint64_t lun,
              const std::shared_ptr<scsi::Nexus>& nexus, UniqueFunction<void()> done) override;
  void abort_task(std::uint64_t lun, scsi::TaskTag tag, const std::shared_ptr<scsi::Nexus>& of,
                  UniqueFunction<void()> done) override {
    aborted = tag;
    manage(scsi::TaskManagementFunction::kAbortTask, lun, of, std::move(done));
  }
  [[nodiscard]] bool has_lun(std::uint64_t lun) const override { return lun == 0 || lun == kLun1; }

  static constexpr std::uint64_t kLun1 = 0x0001000000000000;

  // Answers the oldest held command as it would have been answered at once.
  void answer_oldest();
  [[nodiscard]] scsi::Response response_to(const scsi::Command& command) const;

  bool hold = false;         // keep commands in `pending`
  bool hold_manage = false;  // keep functions in `managed`
  std::deque<Pending> pending;
  std::deque<Managed> managed;
  std::vector<scsi::TaskManagementFunction> functions;  // all that came
  std::optional<scsi::TaskTag> aborted;                 // by the last ABORT TASK
  std::vector<Payload> written;
  std::vector<const std::byte*> read_from;  // where the data-in of each read lies
  std::uint64_t executed = 0;
  std::uint64_t unit_blocks = 0;  // what transfer_of() says
  std::weak_ptr<scsi::Nexus> nexus;
  scsi::NexusId attached;  // the last one
  mutable std::map<std::string, std::weak_ptr<scsi::Nexus>> ports;
};

class TestDirectory final : public TargetDirectory {
 public:
  static constexpr std::string_view kName = "iqn.2026-11.org.mariner:disk";

  [[nodiscard]] std::vector<std::string> discoverable(std::string_view,
                                                      std::string_view account) const override {
    discovered_by = account;
    return names;
  }
  [[nodiscard]] std::optional<Redirection> redirection(std::string_view,
                                                       std::string_view portal) const override {
    came = portal;
    return elsewhere;
  }
  [[nodiscard]] Result<std::shared_ptr<scsi::TargetDevice>> open(
      std::string_view target, std::string_view initiator) override;
  [[nodiscard]] Result<std::vector<ChapAccount>> accounts(std::string_view,
                                                          std::string_view) const override {
    return chap_accounts;
  }

  std::vector<ChapAccount> chap_accounts;
  std::optional<Redirection> elsewhere;
  mutable std::string came;  // the portal of the last one that was asked for its redirection
  mutable std::string discovered_by;  // the account of the last one
  std::vector<std::string> names{std::string(kName)};
  std::shared_ptr<TestDevice> device = std::make_shared<TestDevice>();
};

class TestObserver final : public Observer {
 public:
  void session_opened(const SessionInfo& session) override { opened.push_back(session); }
  void connection_joined(const SessionInfo& session, const Endpoints&) override {
    joined.push_back(session);
  }
  void connection_ended(const ConnectionEnd& end) override { ended.push_back(end); }
  void portal_failed(std::string_view, std::string_view what) override {
    failures.emplace_back(what);
  }

  std::vector<SessionInfo> opened;
  std::vector<SessionInfo> joined;
  std::vector<ConnectionEnd> ended;
  std::vector<std::string> failures;
};

class TestExecutor final : public Executor {
 public:
  void post(UniqueFunction<void()> work) override { queue_.push_back(std::move(work)); }
  void defer(UniqueFunction<void()> work) override { queue_.push_back(std::move(work)); }
  void after(std::chrono::nanoseconds, UniqueFunction<void()> work) override {
    queue_.push_back(std::move(work));
  }
  [[nodiscard]] VersionTime wall_time() const override { return {1'000'000'000}; }
  [[nodiscard]] std::chrono::nanoseconds monotonic_time() const override { return now; }

  std::chrono::nanoseconds now = std::chrono::hours(1);

 private:
  std::deque<UniqueFunction<void()>> queue_;
};

// The server's side of all connections of one test.
struct TestServer {
  explicit TestServer(Options opts = {})
      : options(std::move(opts)), registry(std::make_shared<SessionRegistry>(options)) {}
  ~TestServer() {
    // A held command keeps its session, which keeps the device that holds it.
    device().pending.clear();
    device().managed.clear();
  }

  Options options;
  TestDirectory directory;
  TestObserver observer;
  TestExecutor executor;
  std::shared_ptr<SessionRegistry> registry;

  [[nodiscard]] TestDevice& device() { return *directory.device; }
};

// An initiator on a connection of its own.
class TestClient final : public ConnectionHost {
 public:
  explicit TestClient(TestServer& server, std::uint16_t portal_group = 1);
  ~TestClient() override;

  // Sends and returns what the server says.
  std::vector<TargetPdu> send(const InitiatorPdu& pdu);
  // Sends, as far as the connection reads.
  void feed(std::span<const std::byte> bytes);
  std::vector<TargetPdu> send_bytes(std::span<const std::byte> bytes);
  // What the server has said since.
  std::vector<TargetPdu> take();
  // The same, as bytes.
  Bytes take_bytes();

  // Logs in to TestDirectory::kName in one request; expects success.
  void login(std::string_view more_keys = {}, std::uint8_t isid = 1);
  void login_discovery();

  void output_ready() override { ++output_calls; }

  Connection connection;
  bool header_digest = false;
  bool data_digest = false;
  std::size_t output_calls = 0;            // how often it was told to send
  std::size_t chunk_bytes_max = SIZE_MAX;  // of what one "recvmsg" gives
};

}  // namespace mariner::iscsi
