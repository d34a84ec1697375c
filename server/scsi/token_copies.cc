#include "server/scsi/token_copies.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "server/scsi/nexus.h"
#include "server/scsi/reply.h"
#include "server/scsi/token_lists.h"

namespace mariner::scsi {
namespace {

constexpr std::uint8_t kPopulateToken = 0x10;
constexpr std::uint8_t kWriteUsingToken = 0x11;
constexpr std::uint8_t kNaa = 3;

using State = CopyReport::State;

const NexusId& initiator_of(const Command& command) {
  return static_cast<const InitiatorNexus&>(*command.nexus).id();
}

// A copy that its command waits for, or that was answered already.
struct TokenCopy {
  std::shared_ptr<CopyContext> context;
  CopyUnit unit;
  std::shared_ptr<CopyReport> report;
  std::uint16_t target_port = 1;  // through which it was asked for
  CommandDone done;               // null in the background

  void end(State state, Response outcome) {
    report->state = state;
    report->outcome = outcome;
    if (done) std::exchange(done, nullptr)(std::move(outcome));
  }
  void fail(const Sense& sense) {
    end(State::kFailed, check_condition(sense, unit.disk->sense_format()));
  }
};

// Enters the copy into the ledger. Of one that nobody waits for `done` is left to the caller, to be
// run when the copy is under way: whoever hears it may ask for the copy or end it from within.
// Null: it was refused, and that was answered.
std::shared_ptr<TokenCopy> begin(const std::shared_ptr<CopyContext>& context, const CopyUnit& unit,
                                 std::uint32_t list_id, const Command& command,
                                 std::uint8_t service_action, bool immediate, CommandDone& done) {
  if (immediate && context->engine->in_background() >= kBackgroundCopiesMax) {
    done(Response{.status = Status::kBusy, .sense = {}, .data_in = {}});
    return nullptr;
  }
  CopyReport report;
  report.state = immediate ? State::kInBackground : State::kInForeground;
  report.service_action = service_action;
  report.block_bytes = unit.disk->geometry().block_bytes;
  auto entered = context->ledger.begin(initiator_of(command), list_id, std::move(report));
  if (entered == nullptr) {
    done(check_condition(illegal_request(asc::kOperationInProgress), unit.disk->sense_format()));
    return nullptr;
  }
  auto copy = std::make_shared<TokenCopy>(
      TokenCopy{context, unit, std::move(entered), target_port_of(command), nullptr});
  if (!immediate) copy->done = std::move(done);
  return copy;
}

std::vector<ByteRange> byte_ranges(const std::vector<Extent>& extents, std::uint32_t block_bytes) {
  std::vector<ByteRange> ranges;
  for (const Extent& extent : extents) {
    ranges.push_back({extent.lba * block_bytes, extent.blocks * block_bytes});
  }
  return ranges;
}

std::uint64_t sum(const std::vector<ByteRange>& ranges) {
  std::uint64_t bytes = 0;
  for (const ByteRange& range : ranges) bytes += range.length;
  return bytes;
}

// The first part of `to` filled with the ROD from `offset` on, block by block: where the ROD ends
// within a block, the rest of that is zeros (SBC-4 5.59.2). Without a ROD all is zeros.
std::vector<CopyEngine::Run> runs_of(const Rod* rod, std::uint64_t offset,
                                     const std::vector<ByteRange>& to,
                                     const std::shared_ptr<CopyUnit>& unit) {
  const std::uint64_t block_bytes = unit->disk->geometry().block_bytes;
  std::vector<CopyEngine::Run> runs;
  std::size_t range = 0;
  std::uint64_t within = offset;
  if (rod != nullptr) {
    while (within >= rod->ranges[range].length) within -= rod->ranges[range++].length;
  }
  for (const ByteRange& destination : to) {
    for (std::uint64_t done = 0; done < destination.length;) {
      CopyEngine::Run run{nullptr, 0, unit, destination.offset + done, destination.length - done};
      if (rod != nullptr && range == rod->ranges.size()) {
        run.bytes = (block_bytes - done % block_bytes) % block_bytes;
        if (run.bytes > 0) runs.push_back(std::move(run));
        return runs;
      }
      if (rod != nullptr) {
        const ByteRange& from = rod->ranges[range];
        run.source = rod->moment;
        run.from = from.offset + within;
        run.bytes = std::min(run.bytes, from.length - within);
        within += run.bytes;
        if (within == from.length) {
          ++range;
          within = 0;
        }
      }
      done += run.bytes;
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

// The LBA that comes after that many bytes of the ranges.
std::uint64_t lba_after(std::uint64_t bytes, const std::vector<ByteRange>& ranges,
                        std::uint32_t block_bytes) {
  for (const ByteRange& range : ranges) {
    if (bytes < range.length) return (range.offset + bytes) / block_bytes;
    bytes -= range.length;
  }
  return 0;
}

void ended(TokenCopy& copy, const CopyEngine::Ended& how, const std::vector<ByteRange>& to,
           std::shared_ptr<RodTokens::Use> use, bool delete_token) {
  using End = CopyEngine::End;
  const bool gone = how.how == End::kUnreadable && how.error->code == ErrorCode::kOutsideWindow;
  if (use != nullptr && delete_token && how.how != End::kOutOfTime) use->delete_token();
  if (use != nullptr && gone) use->cancel_token();
  use.reset();  // over, before anybody hears of it
  const SenseFormat format = copy.unit.disk->sense_format();
  switch (how.how) {
    case End::kDone:
    case End::kOutOfTime:
      return copy.end(copy.report->transferred == sum(to) ? State::kDone : State::kPartly, {});
    case End::kAborted:
      return copy.end(State::kTerminated,
                      check_condition(copy_aborted(asc::kCommandsClearedByDeviceServer), format));
    case End::kFenced:
      return copy.end(State::kTerminated,
                      {.status = Status::kReservationConflict, .sense = {}, .data_in = {}});
    case End::kNoMedium: return copy.fail({SenseKey::kNotReady, asc::kMediumNotPresentTrayOpen});
    case End::kUnreadable:
      // Its moment was given up, or its volume is.
      return copy.fail(gone ? illegal_request(asc::kTokenCancelled)
                            : copy_aborted(asc::kThirdPartyDeviceFailure));
    case End::kUnwritable: {
      const std::uint32_t block_bytes = copy.unit.disk->geometry().block_bytes;
      return copy.end(State::kFailed,
                      copy.unit.disk->failure(*how.error, Access::kWrite,
                                              lba_after(copy.report->transferred, to, block_bytes),
                                              copy.target_port));
    }
  }
}

}  // namespace

void populate_token(const std::shared_ptr<CopyContext>& context, const CopyUnit& unit,
                    std::uint32_t list_id, const Command& command, CommandDone done) {
  const Geometry geometry = unit.disk->geometry();
  auto parsed = parse_populate_list(command.data_out.bytes(), geometry);
  if (const auto* wrong = std::get_if<Sense>(&parsed)) {
    return done(check_condition(*wrong, unit.disk->sense_format()));
  }
  const auto& list = std::get<PopulateList>(parsed);
  auto copy = begin(context, unit, list_id, command, kPopulateToken, list.immediate, done);
  if (copy == nullptr) return;
  Rod rod;
  rod.unit = {.type = kNaa, .designator = unit.disk->identity().naa};
  rod.ranges = byte_ranges(list.extents, geometry.block_bytes);
  rod.bytes = sum(rod.ranges);
  unit.disk->layer().snapshot(
      [copy, rod = std::move(rod), block_bytes = geometry.block_bytes,
       inactivity = list.inactivity](Result<std::shared_ptr<volume::Layer>> moment) mutable {
        if (!moment) {
          return copy->end(State::kFailed, copy->unit.disk->failure(moment.error(), Access::kRead,
                                                                    0, copy->target_port));
        }
        const std::uint64_t bytes = rod.bytes;
        rod.moment = *std::move(moment);
        auto made = copy->context->tokens->create(std::move(rod), copy->unit.disk->identity(),
                                                  block_bytes, inactivity);
        if (const auto* wrong = std::get_if<Sense>(&made)) return copy->fail(*wrong);
        copy->report->token = std::get<RodTokenBytes>(made);
        copy->report->transferred = bytes;
        copy->end(State::kDone, {});
      });
  if (list.immediate) done(Response{});
}

void write_using_token(const std::shared_ptr<CopyContext>& context, const CopyUnit& unit,
                       std::uint32_t list_id, const Command& command, CommandDone done) {
  const Geometry geometry = unit.disk->geometry();
  const auto refuse = [&](const Sense& sense) {
    done(check_condition(sense, unit.disk->sense_format()));
  };
  auto parsed = parse_write_list(command.data_out.bytes(), geometry);
  if (const auto* wrong = std::get_if<Sense>(&parsed)) return refuse(*wrong);
  const auto& list = std::get<WriteList>(parsed);
  if (auto sense = unit.disk->write_protection()) return refuse(*sense);

  std::shared_ptr<RodTokens::Use> use;
  const Rod* rod = nullptr;
  std::uint64_t offset = 0;
  if (rod_type_of(list.token) != RodType::kBlockDeviceZero || !has_rod_length(list.token)) {
    auto used = context->tokens->use(list.token);
    if (const auto* wrong = std::get_if<Sense>(&used)) return refuse(*wrong);
    use = std::get<std::shared_ptr<RodTokens::Use>>(std::move(used));
    rod = &use->rod();
    // Who may not read the unit does not read what it held either.
    if (context->find(rod->unit, initiator_of(command).initiator) == nullptr) {
      return refuse(illegal_request(asc::kInvalidTokenOperation));
    }
    if (list.offset_blocks >= (rod->bytes + geometry.block_bytes - 1) / geometry.block_bytes) {
      return refuse(invalid_parameter(8));
    }
    offset = list.offset_blocks * geometry.block_bytes;
  }
  auto copy = begin(context, unit, list_id, command, kWriteUsingToken, list.immediate, done);
  if (copy == nullptr) return;
  std::vector<ByteRange> to = byte_ranges(list.extents, geometry.block_bytes);
  CopyEngine::Job job;
  job.from = initiator_of(command);
  job.id = list_id;
  job.tag = command.tag;
  job.background = list.immediate;
  job.runs = runs_of(rod, offset, to, std::make_shared<CopyUnit>(unit));
  if (!list.immediate) job.time_max = kForegroundMax;
  job.moved = [report = copy->report](std::uint64_t bytes, bool) {
    report->transferred += bytes;
    ++report->operations;
  };
  job.done = [copy, to = std::move(to), use = std::move(use),
              delete_token = list.delete_token](const CopyEngine::Ended& how) mutable {
    ended(*copy, how, to, std::move(use), delete_token);
  };
  context->engine->start(std::move(job));
  if (list.immediate) done(Response{});
}

}  // namespace mariner::scsi
