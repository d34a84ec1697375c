// SPDX-License-Identifier: GPL-2.0-only
#include "server/tgt/abi_check.h"

#include <cstring>
#include <memory>

namespace mariner::tgt {
namespace {

constexpr unsigned char kOperationCode = 0xA5;
constexpr std::size_t kBlockLimitsBytes = 60;

// Blank structures with room behind them, for a tgtd whose own are longer.
struct Blank {
  ScsiCmd command{};
  std::byte behind_command[4096]{};
  ScsiLu lu{};
  std::byte behind_lu[16384]{};
  BackingStore store{};
  std::byte behind_store[256]{};

  Blank() { command.dev = &lu; }
};

bool null_store_is_where_expected() {
  const BackingStore* store = get_backingstore_template("null");
  return store != nullptr && store->name != nullptr && std::strcmp(store->name, "null") == 0 &&
         store->submit == &bs_null_cmd_submit;
}

bool operations_are_where_expected(Blank& blank) {
  unsigned char code = kOperationCode;
  bs_create_opcode_map(&blank.store, &code, 1);
  return blank.store.supported_operations[kOperationCode / 64] == 1UL << kOperationCode % 64;
}

bool sense_is_where_expected(Blank& blank) {
  ScsiCmd& command = blank.command;
  sense_data_build(&command, 5, 0x2400);
  if (command.sense[0] != 0x70 || command.sense[2] != 5 || command.sense[12] != 0x24) return false;
  if (command.sense_bytes != 18) return false;
  blank.lu.descriptor_sense = 1;
  sense_data_build(&command, 6, 0x2900);
  blank.lu.descriptor_sense = 0;
  return command.sense[0] == 0x72 && command.sense[1] == 6 && command.sense_bytes == 8;
}

bool result_is_where_expected(Blank& blank) {
  blank.command.result = -1;
  return bs_null_cmd_submit(&blank.command) == 0 && blank.command.result == 0;
}

// INQUIRY for a page without EVPD is refused, and moves nothing.
bool buffers_are_where_expected(Blank& blank) {
  std::uint8_t cdb[16] = {0x12, 0, 0x80, 0, 96};
  std::uint8_t data[96] = {};
  ScsiCmd& command = blank.command;
  command.cdb = cdb;
  command.cdb_bytes = sizeof cdb;
  command.data_direction = kDataIn;
  command.in = {.address = reinterpret_cast<std::uintptr_t>(data),
                .length = sizeof data,
                .transfer_len = sizeof data,
                .resid = 0};
  const int status = spc_inquiry(0, &command);
  return status == 2 && command.in.length == sizeof data && command.in.transfer_len == 0 &&
         command.in.resid == sizeof data;
}

bool blocks_are_where_expected(Blank& blank) {
  blank.lu.block_shift = 9;
  update_lbppbe(&blank.lu, 4096);
  return blank.lu.physical_block_exponent == 3;
}

}  // namespace

std::string abi_fault() {
  const auto blank = std::make_unique<Blank>();
  if (!null_store_is_where_expected()) return "the functions of a backing store";
  if (!operations_are_where_expected(*blank)) return "a backing store's operations";
  if (!sense_is_where_expected(*blank)) return "the sense data of a command";
  if (!result_is_where_expected(*blank)) return "the result of a command";
  if (!buffers_are_where_expected(*blank)) return "the buffers of a command";
  if (!blocks_are_where_expected(*blank)) return "the block size of a unit";
  return "";
}

std::string unit_fault(const ScsiLu& lu, const BackingStore& store) {
  if (lu.store != &store) return "the backing store of a unit";
  if (lu.perform != &target_cmd_perform) return "the end of a unit";
  const VpdPage* limits = lu.vpd[0xB0 - 0x80];
  if (limits == nullptr || limits->bytes != kBlockLimitsBytes) return "the block limits of a unit";
  const ServiceAction* actions = lu.operations[0x9E].service_actions;
  if (actions == nullptr || actions->perform == nullptr) return "the operations of a unit";
  return "";
}

}  // namespace mariner::tgt
