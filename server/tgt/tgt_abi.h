// SPDX-License-Identifier: GPL-2.0-only
// What of tgt's insides a backing store touches: the layout of four structures as tgt 1.0.85 has
// them on a 64-bit machine, and the functions that tgtd exports. There is no header of tgt's to
// include, so these are declarations of our own; `abi_check.h` compares them with the tgtd that
// runs. Everything here is used by tgtd's one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace mariner::tgt {

static_assert(sizeof(void*) == 8 && sizeof(long) == 8, "known of 64-bit machines alone");

struct ListHead {
  ListHead* next;
  ListHead* prev;
};

struct ScsiCmd;
struct ScsiLu;

// One direction of a command's data. tgt owns the memory, which stays until the command is done.
struct DataBuffer {
  std::uint64_t address;
  std::uint32_t length;        // what the initiator offers or expects
  std::uint32_t transfer_len;  // of what goes to the initiator, how much is sent
  std::int32_t resid;          // positive: less than `length` was moved; negative: there was more
};

enum DataDirection : int { kNoData = 0, kDataOut = 1, kDataIn = 2 };

inline constexpr unsigned long kCommandIsAsync = 1UL << 2;
inline constexpr std::size_t kSenseBytesMax = 252;

struct ScsiCmd {
  void* target;
  ListHead c_hlist;
  ListHead qlist;
  std::uint64_t dev_id;
  ScsiLu* dev;
  unsigned long state;  // kCommandIsAsync: it is ended by target_cmd_io_done
  int data_direction;
  DataBuffer in;
  DataBuffer out;
  std::uint64_t nexus_id;  // of its initiator; never 0
  std::uint64_t offset;
  std::uint32_t tl;
  std::uint8_t* cdb;
  int cdb_bytes;
  std::uint8_t lun[8];
  int attribute;
  std::uint64_t tag;
  int result;
  void* management_request;  // that aborts it; null: none
  std::uint8_t sense[kSenseBytesMax];
  int sense_bytes;  // sent with whatever status, unless it is 0
  ListHead bs_list;
  void* nexus;
  void* nexus_lu_info;
};
static_assert(offsetof(ScsiCmd, dev) == 0x30 && offsetof(ScsiCmd, state) == 0x38);
static_assert(offsetof(ScsiCmd, data_direction) == 0x40 && offsetof(ScsiCmd, in) == 0x48);
static_assert(offsetof(ScsiCmd, out) == 0x60 && offsetof(ScsiCmd, nexus_id) == 0x78);
static_assert(offsetof(ScsiCmd, cdb) == 0x90 && offsetof(ScsiCmd, cdb_bytes) == 0x98);
static_assert(offsetof(ScsiCmd, management_request) == 0xb8);
static_assert(offsetof(ScsiCmd, result) == 0xb0 && offsetof(ScsiCmd, sense) == 0xc0);
static_assert(offsetof(ScsiCmd, sense_bytes) == 0x1bc && offsetof(ScsiCmd, bs_list) == 0x1c0);

struct ServiceAction {
  std::uint32_t code;
  int (*perform)(int host_no, ScsiCmd* command);
};

// What a unit does with one operation code.
struct Operation {
  int (*perform)(int host_no, ScsiCmd* command);
  ServiceAction* service_actions;  // ends with one whose function is null
  std::uint8_t reservation_conflicts;
};
static_assert(sizeof(Operation) == 24);

struct BackingStore {
  const char* name;
  int private_bytes;  // that follow each ScsiLu
  int (*open)(ScsiLu* lu, char* path, int* fd, std::uint64_t* size);
  void (*close)(ScsiLu* lu);
  int (*init)(ScsiLu* lu, char* options);
  void (*exit)(ScsiLu* lu);
  int (*submit)(ScsiCmd* command);
  int open_flags_supported;
  std::array<unsigned long, 4> supported_operations;
  ListHead siblings;
};
static_assert(offsetof(BackingStore, submit) == 0x30);
static_assert(offsetof(BackingStore, supported_operations) == 0x40);
static_assert(sizeof(BackingStore) == 0x70);

// A page of vital product data; its content, without the header of 4 bytes, follows it.
struct VpdPage {
  std::uint16_t bytes;
  void (*update)(ScsiLu* lu, void* data);  // what tgt calls when a setting of the unit changes
};
static_assert(sizeof(VpdPage) == 16);

// A logical unit. What no backing store needs to know is padding.
struct ScsiLu {
  int fd;
  std::uint64_t address;
  std::uint64_t size;  // bytes
  std::uint64_t lun;
  char* path;
  int open_flags;
  unsigned block_shift;
  std::byte queues[0x78 - 0x30];
  std::byte device_type[56];  // its type (0: a disk), and functions
  std::array<Operation, 256> operations;
  ListHead device_type_siblings;
  BackingStore* store;
  void* target;
  std::uint8_t mode_block_descriptor[8];
  ListHead mode_pages;
  std::byte identity[0x1972 - 0x18e8];
  char removable;
  char read_only;
  char software_write_protected;
  char thin_provisioning;
  char online;
  char descriptor_sense;
  std::uint8_t physical_block_exponent;
  char physical_block_exponent_is_set;  // by the administrator
  std::byte alignment[0x1980 - 0x197a];
  std::array<VpdPage*, 128> vpd;  // page 0x80 + its place
  std::byte reservations[0x1da8 - 0x1d80];
  int (*perform)(int tid, ScsiCmd* command);
  void (*done)(void* target, ScsiCmd* command);
  void* private_data;  // the store's own `private_bytes`
};
static_assert(offsetof(ScsiLu, size) == 0x10 && offsetof(ScsiLu, block_shift) == 0x2c);
static_assert(offsetof(ScsiLu, operations) == 0xb0 && offsetof(ScsiLu, store) == 0x18c0);
static_assert(offsetof(ScsiLu, mode_block_descriptor) == 0x18d0);
static_assert(offsetof(ScsiLu, descriptor_sense) == 0x1977);
static_assert(offsetof(ScsiLu, physical_block_exponent) == 0x1978);
static_assert(offsetof(ScsiLu, vpd) == 0x1980 && offsetof(ScsiLu, perform) == 0x1da8);
static_assert(offsetof(ScsiLu, private_data) == 0x1db8);

using EventHandler = void (*)(int fd, int events, void* data);

// What tgtd exports. A loader that does not find one of them refuses the module and names it.
extern "C" {
int register_backingstore_template(BackingStore* store);
BackingStore* get_backingstore_template(const char* name);
void bs_create_opcode_map(BackingStore* store, unsigned char* codes, int count);
int bs_null_cmd_submit(ScsiCmd* command);
int spc_inquiry(int host_no, ScsiCmd* command);
void sense_data_build(ScsiCmd* command, std::uint8_t key, std::uint16_t code);
void update_lbppbe(ScsiLu* lu, int physical_block_bytes);
int target_cmd_perform(int tid, ScsiCmd* command);
// Ends a command that is async. Frees it, and may submit others before it returns.
void target_cmd_io_done(ScsiCmd* command, int status);
// A unit attention for every initiator of the unit but the one of `nexus_id` (0: for all).
void ua_sense_add_other_it_nexus(std::uint64_t nexus_id, ScsiLu* lu, std::uint16_t code);
// `events` are those of epoll. The loop may call a handler that has been deleted in the same turn.
int tgt_event_add(int fd, int events, EventHandler handler, void* data);
__attribute__((format(printf, 1, 2))) void log_error(const char* format, ...);
__attribute__((format(printf, 1, 2))) void log_warning(const char* format, ...);
}

inline constexpr int kDisk = 0;

// Answers of tgt's administration.
inline constexpr int kAdminDone = 0;
inline constexpr int kAdminInvalidRequest = 17;

}  // namespace mariner::tgt
