#include "server/node/metered_device.h"

#include <span>

#include "server/scsi/sense.h"

namespace mariner::node {
namespace {

using web::ScsiOp;
using web::ScsiOutcome;

// Operation codes of SPC-4 and SBC-3.
ScsiOp op_of(std::uint8_t opcode) {
  switch (opcode) {
    case 0x08:
    case 0x28:
    case 0xa8:
    case 0x88: return ScsiOp::kRead;
    case 0x0a:
    case 0x2a:
    case 0xaa:
    case 0x8a:
    case 0x2e:
    case 0xae:
    case 0x8e: return ScsiOp::kWrite;
    case 0x42: return ScsiOp::kUnmap;
    case 0x41:
    case 0x93: return ScsiOp::kWriteSame;
    case 0x89: return ScsiOp::kCompareAndWrite;
    case 0x35:
    case 0x91: return ScsiOp::kFlush;
    default: return ScsiOp::kOther;
  }
}

// SPC-4 4.5: descriptor format, or fixed.
bool is_unit_attention(std::span<const std::uint8_t> sense) {
  if (sense.size() < 3) return false;
  const std::uint8_t key = (sense[0] & 0x7f) >= 0x72 ? sense[1] : sense[2];
  return (key & 0x0f) == static_cast<std::uint8_t>(scsi::SenseKey::kUnitAttention);
}

ScsiOutcome outcome_of(const scsi::Response& response) {
  switch (response.status) {
    case scsi::Status::kGood:
    case scsi::Status::kConditionMet: return ScsiOutcome::kGood;
    case scsi::Status::kCheckCondition:
      return is_unit_attention(response.sense) ? ScsiOutcome::kUnitAttention
                                               : ScsiOutcome::kCheckCondition;
    case scsi::Status::kReservationConflict: return ScsiOutcome::kReservationConflict;
    case scsi::Status::kBusy:
    case scsi::Status::kTaskSetFull: return ScsiOutcome::kBusy;
    case scsi::Status::kTaskAborted: return ScsiOutcome::kAborted;
  }
  return ScsiOutcome::kCheckCondition;
}

}  // namespace

void MeteredDevice::execute(scsi::Command command, scsi::CommandDone done) {
  const ScsiOp op = op_of(command.cdb[0]);
  const std::uint64_t out_bytes = command.data_out.size();
  const auto started = executor_.monotonic_time();
  device_->execute(
      std::move(command), [metrics = metrics_, executor = &executor_, op, out_bytes, started,
                           done = std::move(done)](scsi::Response response) mutable {
        std::uint64_t bytes = out_bytes;
        for (const PayloadSlice& slice : response.data_in) bytes += slice.length;
        metrics->count(op, outcome_of(response), bytes, executor->monotonic_time() - started);
        done(std::move(response));
      });
}

}  // namespace mariner::node
