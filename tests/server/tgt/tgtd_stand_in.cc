// SPDX-License-Identifier: GPL-2.0-only
#include "tests/server/tgt/tgtd_stand_in.h"

#include <cstdarg>
#include <cstring>

namespace mariner::tgt {

StandIn stand_in;

namespace {

// Where a function writes that has another layout.
std::uint8_t* shifted(void* structure, const char* function) {
  auto* bytes = static_cast<std::uint8_t*>(structure);
  return stand_in.differs == function ? bytes + 8 : bytes;
}

}  // namespace

extern "C" {

BackingStore* get_backingstore_template(const char* name) {
  stand_in.null_store.name = name;
  auto* at = shifted(&stand_in.null_store, "get_backingstore_template");
  int (*submit)(ScsiCmd*) = &bs_null_cmd_submit;
  stand_in.null_store.submit = nullptr;
  std::memcpy(at + offsetof(BackingStore, submit), &submit, sizeof submit);
  return &stand_in.null_store;
}

void bs_create_opcode_map(BackingStore* store, unsigned char* codes, int count) {
  auto* at = shifted(store, "bs_create_opcode_map");
  for (int i = 0; i < count; ++i) {
    at[offsetof(BackingStore, supported_operations) + codes[i] / 8] |=
        static_cast<std::uint8_t>(1u << codes[i] % 8);
  }
}

int bs_null_cmd_submit(ScsiCmd* command) {
  std::memset(shifted(command, "bs_null_cmd_submit") + offsetof(ScsiCmd, result), 0, 4);
  return 0;
}

int spc_inquiry(int /*host_no*/, ScsiCmd* command) {
  auto* in = reinterpret_cast<DataBuffer*>(shifted(&command->in, "spc_inquiry"));
  in->transfer_len = 0;
  in->resid = static_cast<std::int32_t>(in->length);
  return 2;
}

void sense_data_build(ScsiCmd* command, std::uint8_t key, std::uint16_t code) {
  auto* to = reinterpret_cast<ScsiCmd*>(shifted(command, "sense_data_build"));
  if (command->dev->descriptor_sense) {
    to->sense[0] = 0x72;
    to->sense[1] = key;
    to->sense_bytes = 8;
  } else {
    to->sense[0] = 0x70;
    to->sense[2] = key;
    to->sense[12] = static_cast<std::uint8_t>(code >> 8);
    to->sense_bytes = 18;
  }
}

void update_lbppbe(ScsiLu* lu, int physical_block_bytes) {
  auto* to = reinterpret_cast<ScsiLu*>(shifted(lu, "update_lbppbe"));
  to->physical_block_exponent = 0;
  while (physical_block_bytes >> (lu->block_shift + to->physical_block_exponent) > 1) {
    ++to->physical_block_exponent;
  }
}

int target_cmd_perform(int /*tid*/, ScsiCmd* /*command*/) { return 0; }

int tgt_event_add(int fd, int /*events*/, EventHandler handler, void* data) {
  stand_in.event_fd = fd;
  stand_in.handler = handler;
  stand_in.handler_data = data;
  return 0;
}

}  // extern "C"

}  // namespace mariner::tgt
