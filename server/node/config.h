// The configuration of marinerd (/etc/mariner/marinerd.toml), checked.
//
// What stands here has been validated: addresses parse, sizes are within bounds, names are unique.
// Reading collects every problem, not only the first. Nothing is looked up on the machine: whether
// a directory exists or a port is free is found out by the daemon and by the doctor.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/endpoint.h"
#include "proto/error.h"
#include "server/client/quantity.h"
#include "server/client/retention.h"
#include "trm-multicast/group.h"

namespace mariner {

inline constexpr std::string_view kDefaultConfigPath = "/etc/mariner/marinerd.toml";
inline constexpr std::size_t kConfigBytesMax = 1u << 20;

// [[server.portal_group]]: portals that are a target port of their own.
struct PortalGroupConfig {
  std::uint16_t tag = 0;
  std::vector<Endpoint> portals;  // never empty
  friend bool operator==(const PortalGroupConfig&, const PortalGroupConfig&) = default;
};

// What a node does. A standalone node is target, logger and storage in one, and knows no other.
enum class Role { kStandalone, kTarget, kLogger, kStorage, kManager };

struct ServerConfig {
  std::string iqn_base = "iqn.2026-11.org.mariner";
  std::vector<Endpoint> portals;                 // never empty; portal group 1
  std::vector<PortalGroupConfig> portal_groups;  // the others, in the order of their tags
  std::string admin_socket = "/run/mariner/admin.sock";
  std::optional<Endpoint> http;  // none: not served
  std::string state_dir = "/var/lib/mariner";
  // Accounts, of which one is to log in for discovery; empty: none needs to.
  std::vector<std::string> discovery_auth;
  std::size_t sessions_max = 1024;
  std::size_t sessions_per_initiator_max = 512;
  // What the commands of one initiator's sessions may hold in memory.
  ByteSize initiator_memory{256ull << 20};
  // How long to look for what comes next before sleeping, while it comes often; 0: not at all;
  // none: as suits the machine, and only for what hosts send (BusyPoll).
  std::optional<std::chrono::nanoseconds> busy_poll;
  // Threads that sockets are lent to while the loop works for that share of the time or more
  // (iscsi::SocketThreads); none: as many as suit the machine (default_socket_threads()).
  std::optional<std::size_t> socket_threads;
  double socket_threads_load = 0.9;
};

// For a machine with so many processors. None below four: the loop, the host's commands and the
// workers that write images and commit indexes have use for three.
[[nodiscard]] constexpr std::size_t default_socket_threads(std::size_t processors) {
  return std::min<std::size_t>(processors / 4, 8);
}

// What happens when the log is full. Locked marks are never dropped.
enum class OnFull {
  kStopWrites,     // writes fail with SPACE ALLOCATION FAILED
  kShortenWindow,  // the oldest history goes first
  kThrottle,       // hosts are slowed in time, so that all of it fits; in the end as kStopWrites
};
// Tracks that a log has at least for kThrottle.
inline constexpr std::uint64_t kTracksThrottledMin = 16;

// How a write to a log disk is made durable.
enum class LogDurability {
  kAuto,   // whichever way the disk does faster, measured at start
  kFua,    // each write forced to the medium
  kFlush,  // a flush behind each write
};

// [log] compact*: whether cold history is compacted, and how.
struct CompactConfig {
  bool enabled = false;
  std::chrono::nanoseconds after = std::chrono::hours(1);  // a track is cold when it is that old
  double cpu_share = 0.25;                                 // of one core
};

struct LogConfig {
  // At least one where a log is kept: standalone, or a logger. Of a storage node that is no logger:
  // where it keeps journals; empty: it keeps none.
  std::vector<std::string> disks;
  std::vector<std::string> lost;  // former disks that will never come back
  ByteSize max_size{8ull << 30};
  ByteSize track_size{64ull << 20};
  OnFull on_full = OnFull::kShortenWindow;
  std::chrono::nanoseconds t_wait = std::chrono::microseconds(200);
  LogDurability durability = LogDurability::kAuto;
  // Whether to look for the end of lone writes, where that is faster than to sleep (Patience). It
  // takes some of a processor while one host writes alone.
  bool polling = true;
  // Bytes per second at which old tracks are verified; 0: not at all; none: by the log's size.
  std::optional<ByteSize> scrub_rate;
  CompactConfig compact;
};

struct StorageConfig {
  ByteSize pending_memory{256ull << 20};
  ByteSize lag_max{4ull << 30};
  // How long a committed write may wait for others before the image is brought up to date.
  std::chrono::nanoseconds apply_delay = std::chrono::seconds(2);
};

struct ViewsConfig {
  // What hosts may fill of a writable view's overlay, if nothing else was asked for; none: a share
  // of the log (view_rules.h).
  std::optional<ByteSize> overlay_max;
};

// [rollback]: how what a rollback changed gets into the images of this node.
struct RollbackConfig {
  // Bytes a second at most, of all volumes together. 0: as fast as it goes.
  ByteSize rate_max{0};
};

struct IndexConfig {
  std::string file;  // of the version indexes; empty: "index" in the state directory
  ByteSize memory{256ull << 20};
  // Records, about, that a start may have to replay into them: some seconds. With less, leaves are
  // committed for fewer updates each, and more is written per version.
  std::int64_t replay_max = 8'000'000;
};

// [volume.faults]: what a test wants to go wrong. Shares are 0 to 1.
struct FaultConfig {
  double read_errors = 0;
  double write_errors = 0;
  std::chrono::nanoseconds read_delay{0};
  std::chrono::nanoseconds write_delay{0};
};

// [auth.NAME]: who logs in by CHAP, and as whom the target answers. Secrets stand in files.
struct AuthConfig {
  std::string name;
  std::string user;
  std::string secret_file;
  std::string mutual_user;  // empty: the target does not answer
  std::string mutual_secret_file;
  friend bool operator==(const AuthConfig&, const AuthConfig&) = default;
};

struct VolumeConfig {
  std::string name;
  ByteSize size;  // a multiple of 4096
  std::chrono::seconds window = std::chrono::hours(72);
  Retention retain;                // behind the window
  std::uint32_t block_size = 512;  // of the LUN: 512 or 4096
  std::vector<std::string> acl;    // initiator names; empty: any
  std::vector<std::string> auth;   // accounts, of which one is to log in; empty: none needs to
  std::string redirect;            // "ADDRESS:PORT" where it is to be used; empty: here
  bool redirect_permanent = false;
  bool sanitize = false;   // whether initiators may erase it with its history
  bool removable = false;  // whether initiators may eject it
  std::optional<FaultConfig> faults;
  // In a cluster, by the nodes' names; both empty in a standalone node.
  std::string logger;
  std::vector<std::string> storage;  // one or two different ones
  // That may serve it, different ones; the first is preferred. Empty: its storages.
  std::vector<std::string> targets;
  bool promote = true;  // whether another target may take over by itself, or waits to be told to
  bool redirect_to_server = false;  // logins at a node that does not serve
  std::optional<trm::Group> group;  // of its own; none: [replication] group
};

// [[cluster.node]]: one node of the cluster, this one included.
struct ClusterNodeConfig {
  std::uint32_t id = 0;             // 1 to kClusterNodeIdMax, never given to another node
  std::string name;                 // as in its certificate
  std::vector<Endpoint> addresses;  // where others reach it; never empty
  friend bool operator==(const ClusterNodeConfig&, const ClusterNodeConfig&) = default;
};

// [cluster]: how nodes know each other. Which of `nodes` this one is, its certificate says.
// `listen`, `etcd` and `nodes` are empty only in a standalone node that does not name them.
struct ClusterConfig {
  std::string pki;                // the folder of certificates; "pki" in the state directory
  std::optional<Endpoint> enrol;  // where new nodes get theirs; none: not here
  std::vector<Endpoint> listen;   // where other nodes reach this one
  std::vector<Endpoint> etcd;     // its members, spoken to by plain HTTP
  std::chrono::seconds lease{3};  // how long others wait for a coordinator that is silent
  // How long a volume's writes wait for a logger that does not answer before its storage nodes keep
  // them in their journals. 0: they wait as long as it takes.
  std::chrono::seconds logger_patience{3};
  // How long a storage node may be away before the log gives up what it lacks.
  std::chrono::seconds absent_max = std::chrono::hours(1);
  // How many bytes a second this node fetches at most of what its images missed. 0: as fast as it
  // goes.
  ByteSize catch_up_max{0};
  std::vector<ClusterNodeConfig> nodes;  // with ids and names of their own
};

// [replication]: how a volume's coordinator sends writes to the nodes that are to have them.
struct ReplicationConfig {
  bool multicast = false;
  trm::Group group;  // with multicast, there
  // Of what a coordinator multicasts, payloads alone, bits a second; 0: up to 10 Gbit, as fast as
  // receivers take it.
  std::uint64_t rate_limit_bits = 0;
  // The IPv4 address of this node by whose network multicast goes, and comes. Empty: nothing was
  // said, and it is not to be guessed; never with multicast.
  std::string interface;
  bool encrypt = true;  // false: payloads are authenticated only
  friend bool operator==(const ReplicationConfig&, const ReplicationConfig&) = default;
};

struct Config {
  std::vector<Role> roles{Role::kStandalone};  // never empty, no duplicates, as they are written
  ServerConfig server;
  LogConfig log;
  StorageConfig storage;
  ViewsConfig views;
  RollbackConfig rollback;
  IndexConfig index;
  ClusterConfig cluster;
  ReplicationConfig replication;
  std::vector<AuthConfig> auth;
  std::vector<VolumeConfig> volumes;

  [[nodiscard]] bool has(Role role) const { return std::ranges::find(roles, role) != roles.end(); }
  [[nodiscard]] bool standalone() const { return has(Role::kStandalone); }
  // A node of a cluster that logs nothing has a log, if at all, for its journals.
  [[nodiscard]] bool has_log() const {
    return !log.disks.empty() && (standalone() || has(Role::kLogger) || has(Role::kStorage));
  }
};

// Bounds of what is configured. Sizes of volumes created through the admin API obey them too.
inline constexpr ByteSize kVolumeSizeMin{1ull << 20};
inline constexpr ByteSize kVolumeSizeMax{1ull << 50};
inline constexpr std::chrono::seconds kWindowMin{1};
inline constexpr std::chrono::seconds kWindowMax = std::chrono::hours(24 * 3660);
inline constexpr ByteSize kOverlayMin{1ull << 20};
inline constexpr ByteSize kIndexMemoryMin{64ull << 20};
// Of a node that keeps only journals: what is written while a logger is away.
inline constexpr ByteSize kJournalSize{4ull << 30};
inline constexpr ByteSize kJournalIndexMemory = kIndexMemoryMin;
inline constexpr std::int64_t kReplayMaxMin = 100;
inline constexpr ByteSize kTrackSizeMin{8ull << 20};
inline constexpr ByteSize kTrackSizeMax{1ull << 30};
inline constexpr std::uint64_t kTracksMin = 4;  // a log that holds fewer cannot reclaim any
inline constexpr std::size_t kVolumesMax = 1024;
inline constexpr std::size_t kPortalsMax = 32;               // in all groups together
inline constexpr std::size_t kSessionsMax = 65534;           // a TSIH has 16 bits
inline constexpr ByteSize kInitiatorMemoryMin{16ull << 20};  // the longest command
inline constexpr std::size_t kLogDisksMax = 64;
inline constexpr std::uint32_t kClusterNodeIdMax = 4095;
// Of a portal group: with every node's number before it, a tag has 16 bits (front.h).
inline constexpr std::uint16_t kClusterPortalGroupTagMax = 16;
inline constexpr std::size_t kClusterNodesMax = 64;
inline constexpr std::size_t kNodeAddressesMax = 8;  // of one node, and what it listens on
inline constexpr std::size_t kEtcdMembersMax = 9;
inline constexpr std::size_t kVolumeStoragesMax = 2;
inline constexpr std::chrono::seconds kLeaseMin{2};
inline constexpr std::chrono::seconds kLeaseMax{60};
inline constexpr std::chrono::seconds kLoggerPatienceMax{3600};
inline constexpr ByteSize kFetchRateMin{8u << 20};  // a second; one piece may be as long
inline constexpr ByteSize kFetchRateMax{1ull << 40};
inline constexpr std::chrono::seconds kAbsentMin{1};
inline constexpr std::chrono::seconds kAbsentMax = std::chrono::hours(24 * 365);

inline constexpr std::uint64_t kRateLimitMinBits = 1'000'000;
inline constexpr std::uint64_t kRateLimitMaxBits = 100'000'000'000;

struct ConfigProblem {
  enum class Level { kWarning, kError };
  Level level = Level::kError;
  std::string file;
  std::uint32_t line = 0;  // from 1; 0: the file as a whole
  std::string key;         // "log.max_size"; empty: no single one
  std::string message;
};

// "/etc/mariner/marinerd.toml:7: log.maxsize: unknown key; ...".
[[nodiscard]] std::string to_string(const ConfigProblem& problem);

struct ConfigReading {
  std::optional<Config> config;         // present if no problem is an error
  std::vector<ConfigProblem> problems;  // in the order of lines
};

// `file` is named in problems only.
[[nodiscard]] ConfigReading parse_config(std::string_view text, const std::string& file);

// What is in the file. kIo: it cannot be read; kInvalidArgument: it is longer than
// kConfigBytesMax. The message does not name it.
[[nodiscard]] Result<std::string> read_config_text(const std::string& file);

// Reads and parses the file. A file that cannot be read is a problem like the others.
[[nodiscard]] ConfigReading load_config(const std::string& file);

}  // namespace mariner
