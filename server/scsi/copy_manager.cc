#include "server/scsi/copy_manager.h"

#include <utility>
#include <variant>

#include "server/scsi/nexus.h"
#include "server/scsi/reply.h"

namespace mariner::scsi {
namespace {

using State = CopyReport::State;
using Units = std::vector<std::shared_ptr<CopyUnit>>;  // of the targets; null: not reachable

const NexusId& initiator_of(const Command& command) {
  return static_cast<const InitiatorNexus&>(*command.nexus).id();
}

// Everything that can be known before is checked before anything is written.
std::optional<Sense> check_segment(const CopySegment& segment, const Units& units,
                                   const NexusId& from) {
  const auto unit_of = [&](std::uint16_t index) {
    return index < units.size() ? units[index].get() : nullptr;
  };
  const CopyUnit* source = unit_of(segment.source);
  const CopyUnit* destination = unit_of(segment.destination);
  if (source == nullptr || destination == nullptr) {
    return copy_aborted(asc::kUnreachableCopyTarget);
  }
  const Geometry here = source->disk->geometry();
  const Geometry there = destination->disk->geometry();
  if (here.block_bytes != there.block_bytes) return copy_aborted(asc::kIncorrectCopyTarget);
  if (check_extent({segment.source_lba, segment.blocks}, here) ||
      check_extent({segment.destination_lba, segment.blocks}, there)) {
    return copy_aborted(asc::kNone);
  }
  if (!is_active(source->disk->access().state(from.target_port)) ||
      !is_active(destination->disk->access().state(from.target_port))) {
    return copy_aborted(asc::kCopyTargetNotReachable);
  }
  if (source->reservations->state().conflicts(ReservationAccess::kReads, from) ||
      destination->reservations->state().conflicts(ReservationAccess::kWrites, from) ||
      source->disk->not_ready(Operation::kRead) ||
      destination->disk->not_ready(Operation::kWrite) || destination->disk->write_protection()) {
    return copy_aborted(asc::kCopyTargetNotReachable);
  }
  return std::nullopt;
}

CopyEngine::Run run_of(const CopySegment& segment, const Units& units) {
  const auto& source = units[segment.source];
  const std::uint64_t block_bytes = source->disk->geometry().block_bytes;
  return {.source = {source, &source->disk->layer()},
          .from = segment.source_lba * block_bytes,
          .destination = units[segment.destination],
          .to = segment.destination_lba * block_bytes,
          .bytes = segment.blocks * block_bytes};
}

}  // namespace

CopyManager::CopyManager(FindCopyUnit find, std::shared_ptr<RodTokens> tokens)
    : context_(std::make_shared<CopyContext>(CopyContext{
          std::move(find), tokens, std::make_shared<CopyEngine>(tokens->clock()), {}})) {}

void CopyManager::execute(const CopyUnit& unit, const Decoded& decoded, const Command& command,
                          CommandDone done) {
  std::visit(
      [&]<typename T>(const T& checked) {
        if constexpr (ThirdPartyCopy<T>) {
          run(checked, unit, command, std::move(done));
        } else {
          CHECK_MSG(false, "not a third-party copy command");
        }
      },
      decoded);
}

bool CopyManager::abort_commands(const NexusId* of, std::optional<TaskTag> tag,
                                 UniqueFunction<void()> ended) {
  return context_->engine->abort({.from = of, .id = {}, .tag = tag, .background_too = false},
                                 std::move(ended));
}

bool CopyManager::reset(UniqueFunction<void()> ended) {
  context_->ledger.forget_all();
  return context_->engine->abort({}, std::move(ended));
}

void CopyManager::run(const ExtendedCopy& copy, const CopyUnit& unit, const Command& command,
                      CommandDone done) {
  if (copy.parameter_bytes == 0) return done(Response{});  // nothing to copy (SPC-4 6.4.1)
  auto list = parse_copy_list(command.data_out.bytes());
  const SenseFormat format = unit.disk->sense_format();
  if (const auto* wrong = std::get_if<Sense>(&list)) return done(check_condition(*wrong, format));
  this->copy(std::get<CopyList>(std::move(list)),
             {.from = initiator_of(command), .format = format, .tag = command.tag},
             std::move(done));
}

void CopyManager::copy(CopyList list, const Asker& asker, CommandDone done) {
  const NexusId& from = asker.from;
  const SenseFormat format = asker.format;
  auto report = std::make_shared<CopyReport>();
  if (list.keeps_status) {
    report = context_->ledger.begin(from, list.id, {});
    if (report == nullptr) {
      return done(check_condition(illegal_request(asc::kOperationInProgress), format));
    }
  }
  const auto end = [report, format](const std::optional<Sense>& failure) {
    report->state = failure ? State::kFailed : State::kDone;
    report->outcome = failure ? check_condition(*failure, format) : Response{};
    return report->outcome;
  };
  Units units;
  for (const CopyTarget& target : list.targets) {
    units.push_back(target.null ? nullptr : context_->find(target, from.initiator));
  }
  CopyEngine::Job job;
  job.from = from;
  if (list.keeps_status) job.id = list.id;
  job.tag = asker.tag;
  for (const CopySegment& segment : list.segments) {
    if (const auto wrong = check_segment(segment, units, from)) return done(end(wrong));
    job.runs.push_back(run_of(segment, units));
  }
  job.moved = [report](std::uint64_t bytes, bool segment_done) {
    report->transferred += bytes;
    ++report->operations;
    if (segment_done) ++report->segments_done;
  };
  job.done = [end, done = std::move(done)](const CopyEngine::Ended& ended) mutable {
    if (ended.how == CopyEngine::End::kDone) return done(end(std::nullopt));
    done(end(copy_aborted(asc::kCopyTargetNotReachable)));
  };
  context_->engine->start(std::move(job));
}

void CopyManager::run(const ReceiveCopyResults& results, const CopyUnit& unit,
                      const Command& command, CommandDone done) {
  using Kind = ReceiveCopyResults::Kind;
  if (results.kind == Kind::kOperatingParameters) {
    return done(parameter_data(copy_operating_parameters(), results.allocation_bytes));
  }
  const auto report = context_->ledger.find(initiator_of(command), results.list_id);
  if (report == nullptr) {
    return done(check_condition(invalid_field_in_cdb(2), unit.disk->sense_format()));
  }
  if (results.kind == Kind::kFailureDetails) {
    if (report->state != State::kFailed || report->failure_told) {
      return done(check_condition(invalid_field_in_cdb(2), unit.disk->sense_format()));
    }
    report->failure_told = true;
    return done(parameter_data(copy_failure(report->outcome), results.allocation_bytes));
  }
  CopyStatus status;
  if (!report->under_way()) {
    const bool good = report->state == State::kDone || report->state == State::kPartly;
    status.state = good ? CopyStatus::State::kDone : CopyStatus::State::kFailed;
  }
  status.segments_done = report->segments_done;
  status.bytes = report->transferred;
  done(parameter_data(copy_status(status), results.allocation_bytes));
}

// An empty parameter list is not an error, and asks for nothing (SBC-4 5.12.1).
void CopyManager::run(const PopulateToken& populate, const CopyUnit& unit, const Command& command,
                      CommandDone done) {
  if (populate.parameter_bytes == 0) return done(Response{});
  populate_token(context_, unit, populate.list_id, command, std::move(done));
}

void CopyManager::run(const WriteUsingToken& write, const CopyUnit& unit, const Command& command,
                      CommandDone done) {
  if (write.parameter_bytes == 0) return done(Response{});
  write_using_token(context_, unit, write.list_id, command, std::move(done));
}

// Answered when what it ends writes no more.
void CopyManager::run(const CopyOperationAbort& abort, const CopyUnit& unit, const Command& command,
                      CommandDone done) {
  auto shared = std::make_shared<CommandDone>(std::move(done));
  const bool any = context_->engine->abort(
      {.from = &initiator_of(command), .id = abort.list_id, .background_too = true},
      [shared] { (*shared)(Response{}); });
  if (!any) (*shared)(check_condition(invalid_field_in_cdb(2), unit.disk->sense_format()));
}

void CopyManager::run(const ReceiveCopyInformation& receive, const CopyUnit& unit,
                      const Command& command, CommandDone done) {
  const NexusId& from = initiator_of(command);
  const auto report = context_->ledger.find(from, receive.list_id);
  if (report == nullptr) {
    return done(check_condition(invalid_field_in_cdb(2), unit.disk->sense_format()));
  }
  const auto data = receive.tokens ? rod_token_information(*report) : copy_status_lid4(*report);
  // Asked for no bytes of it, it is to be forgotten (SPC-4 6.26).
  if (receive.tokens && receive.allocation_bytes == 0) {
    context_->ledger.forget(from, receive.list_id);
  }
  done(parameter_data(data, receive.allocation_bytes));
}

void CopyManager::run(const ReportRodTokens& report, const CopyUnit& unit, const Command&,
                      CommandDone done) {
  context_->tokens->expire();
  done(
      parameter_data(context_->tokens->report(unit.disk->identity().naa), report.allocation_bytes));
}

}  // namespace mariner::scsi
