// SPDX-License-Identifier: GPL-2.0-only
// The backing store `mariner` of tgt: a volume of a running marinerd as a logical unit of tgtd's.
// tgtd loads this file from its folder of backing stores and calls `register_bs_module`. It is
// under the GNU General Public License, version 2, because tgt is, and uses nothing of Mariner's
// other parts, which have another licence; it talks to marinerd by iSCSI.
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "server/tgt/abi_check.h"
#include "server/tgt/options.h"
#include "server/tgt/reactor.h"
#include "server/tgt/tgt_abi.h"
#include "server/tgt/unit.h"

namespace mariner::tgt {
namespace {

// What follows a ScsiLu: from `init` to `exit` it points to this.
struct Attachment {
  std::string options;                     // as given; they are read with the volume's name
  std::unique_ptr<Unit> unit;              // from `open` to `close`
  std::array<ServiceAction, 8> actions{};  // of SERVICE ACTION IN(16)
};

BackingStore store{};

Attachment& attachment_of(ScsiLu& lu) { return *static_cast<Attachment*>(lu.private_data); }

void report(const char* volume, const std::string& fault) {
  log_error("bs_mariner: %s: %s\n", volume, fault.c_str());
}

// -- What tgt would answer without asking the store, although the store knows better --------------

int get_lba_status(int /*host_no*/, ScsiCmd* command) {
  const Attachment& attachment = attachment_of(*command->dev);
  const bool there = attachment.unit != nullptr && command->dev->online;
  if (there && attachment.unit->submit(*command)) return kGood;
  sense_data_build(command, 2, 0x3A00);  // not ready, medium not present
  return kCheckCondition;
}

// COMPARE AND WRITE is refused by tgt, whose own stores cannot do it at once; VERIFY without data
// is GOOD to it. Both go the way of reads and writes, with the checks of reservations that these
// have. GET LBA STATUS would seek in the file whose descriptor tgt has.
void take_over(ScsiLu& lu, Attachment& attachment) {
  constexpr std::uint8_t kRead10 = 0x28, kWrite16 = 0x8A, kCompareAndWrite = 0x89;
  constexpr std::uint8_t kVerify10 = 0x2F, kVerify12 = 0xAF, kVerify16 = 0x8F;
  constexpr std::uint8_t kServiceActionIn16 = 0x9E;
  constexpr std::uint32_t kGetLbaStatus = 0x12;
  lu.operations[kCompareAndWrite] = lu.operations[kWrite16];
  for (const std::uint8_t code : {kVerify10, kVerify12, kVerify16}) {
    lu.operations[code] = lu.operations[kRead10];
  }
  ServiceAction*& actions = lu.operations[kServiceActionIn16].service_actions;
  for (std::size_t i = 0; i + 1 < attachment.actions.size(); ++i) {
    attachment.actions[i] = actions[i];
    if (actions[i].perform == nullptr) break;
    if (actions[i].code == kGetLbaStatus) attachment.actions[i].perform = &get_lba_status;
  }
  actions = attachment.actions.data();
}

void update_limits(ScsiLu* lu, void* /*data*/) {
  if (const auto& unit = attachment_of(*lu).unit; unit != nullptr) unit->tell_limits(*lu);
}

// -- What tgt calls ------------------------------------------------------------------------------

int init(ScsiLu* lu, char* options) {
  if (const int type = std::to_integer<int>(lu->device_type[0]); type != kDisk) {
    report("--device-type", "expected disk, found type " + std::to_string(type));
    return kAdminInvalidRequest;
  }
  if (const std::string fault = unit_fault(*lu, store); !fault.empty()) {
    report("this tgtd is not tgt 1.0.85, or built differently", fault + " differ");
    return kAdminInvalidRequest;
  }
  auto attachment = std::make_unique<Attachment>();
  attachment->options = options != nullptr ? options : "";
  take_over(*lu, *attachment);
  lu->vpd[0xB0 - 0x80]->update = &update_limits;
  lu->private_data = attachment.release();
  return kAdminDone;
}

void exit(ScsiLu* lu) {
  delete static_cast<Attachment*>(lu->private_data);
  lu->private_data = nullptr;
}

int open(ScsiLu* lu, char* path, int* fd, std::uint64_t* size) {
  *fd = -1;
  Attachment& attachment = attachment_of(*lu);
  auto options = parse_options(path, attachment.options);
  if (const auto* refusal = std::get_if<Refusal>(&options)) {
    report(path, refusal->why);
    return -1;
  }
  std::string fault;
  if (Reactor* reactor = Reactor::of_tgtd(fault)) {
    attachment.unit = Unit::open(*lu, path, std::get<Options>(options), *reactor, fault);
  }
  if (attachment.unit == nullptr) {
    report(path, fault);
    return -1;
  }
  *fd = attachment.unit->descriptor();
  *size = attachment.unit->bytes();
  return 0;
}

void close(ScsiLu* lu) { attachment_of(*lu).unit.reset(); }

int submit(ScsiCmd* command) {
  const Attachment& attachment = attachment_of(*command->dev);
  return attachment.unit != nullptr && attachment.unit->submit(*command) ? 0 : EIO;
}

// The commands of tgt's own disks.
constexpr unsigned char kOperations[] = {
    0x00, 0x03, 0x04, 0x08, 0x0A, 0x12, 0x15, 0x16, 0x17, 0x1A, 0x1B, 0x1D, 0x1E, 0x25,
    0x28, 0x2A, 0x2E, 0x2F, 0x34, 0x35, 0x41, 0x42, 0x55, 0x5A, 0x5E, 0x5F, 0x88, 0x89,
    0x8A, 0x8B, 0x8E, 0x8F, 0x90, 0x91, 0x93, 0x9E, 0xA0, 0xA3, 0xA8, 0xAA, 0xAE, 0xAF};

}  // namespace
}  // namespace mariner::tgt

extern "C" __attribute__((visibility("default"))) void register_bs_module() {
  using namespace mariner::tgt;
  if (const std::string fault = abi_fault(); !fault.empty()) {
    log_error(
        "bs_mariner: not loaded: this tgtd is not tgt 1.0.85, or built differently: %s differ\n",
        fault.c_str());
    return;
  }
  store.name = "mariner";
  store.private_bytes = sizeof(void*);
  store.open = &open;
  store.close = &close;
  store.init = &init;
  store.exit = &exit;
  store.submit = &submit;
  auto operations = std::to_array(kOperations);
  bs_create_opcode_map(&store, operations.data(), static_cast<int>(operations.size()));
  register_backingstore_template(&store);
}
