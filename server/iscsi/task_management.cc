#include "server/iscsi/task_management.h"

#include <optional>

namespace mariner::iscsi {
namespace {

using Function = scsi::TaskManagementFunction;

// A function that ends all tasks of a set.
struct SetFunction {
  Function function;
  bool other_sessions;  // ends tasks of every session of the device
  bool whole_target;    // of all its logical units
};

std::optional<SetFunction> set_function(TaskManagement function) {
  switch (function) {
    case TaskManagement::kAbortTaskSet: return SetFunction{Function::kAbortTaskSet, false, false};
    case TaskManagement::kClearTaskSet: return SetFunction{Function::kClearTaskSet, true, false};
    case TaskManagement::kLogicalUnitReset:
      return SetFunction{Function::kLogicalUnitReset, true, false};
    case TaskManagement::kTargetWarmReset:
    case TaskManagement::kTargetColdReset: return SetFunction{Function::kTargetReset, true, true};
    default: return std::nullopt;
  }
}

TaskManagementOutcome outcome_of_other(TaskManagement function) {
  switch (function) {
    // There is no ACA (NormACA is 0), and nothing to reassign at error recovery level 0.
    case TaskManagement::kClearAca: return TaskManagementOutcome::kNotSupported;
    case TaskManagement::kTaskReassign: return TaskManagementOutcome::kReassignmentNotSupported;
    default: return TaskManagementOutcome::kRejected;
  }
}

void abort_one(const std::shared_ptr<Session>& session, std::uint32_t connection,
               const TaskManagementRequest& request, std::uint64_t ticket) {
  const std::uint32_t itt = request.itt;
  if (!session->abort_task(request.referenced_itt, request.lun, ticket)) {
    const bool to_come = session->window().abort_unreceived(request.ref_cmd_sn, request.cmd_sn);
    if (to_come) session->order().run_ready();
    session->respond(connection, {.outcome = to_come ? TaskManagementOutcome::kComplete
                                                     : TaskManagementOutcome::kNoSuchTask,
                                  .itt = itt});
    return;
  }
  session->device()->abort_task(request.lun, scsi::TaskTag{request.referenced_itt},
                                session->nexus(), [session, connection, itt, ticket] {
                                  session->bury(ticket);
                                  session->respond(connection, {.itt = itt});
                                });
}

void abort_set(const std::shared_ptr<Session>& session, std::uint32_t connection,
               const TaskManagementRequest& request, const SetFunction& set, std::uint64_t ticket,
               SessionRegistry& registry) {
  const auto lun = set.whole_target ? std::nullopt : std::optional(request.lun);
  const auto for_each_affected = [other_sessions = set.other_sessions](
                                     Session& own, SessionRegistry& sessions, auto visit) {
    if (!other_sessions) return visit(own);
    sessions.for_each_of(*own.device(), visit);
  };
  for_each_affected(*session, registry, [&](Session& s) { s.abort_tasks(lun, ticket); });
  const bool cold = request.function == static_cast<std::uint8_t>(TaskManagement::kTargetColdReset);
  session->device()->manage(set.function, request.lun, session->nexus(),
                            [session, connection, registry = registry.shared_from_this(),
                             for_each_affected, ticket, itt = request.itt, cold] {
                              for_each_affected(*session, *registry,
                                                [&](Session& s) { s.bury(ticket); });
                              session->respond(connection, {.itt = itt});
                              if (cold)
                                registry->close_device(*session->device(), EndReason::kTargetReset);
                            });
}

}  // namespace

void manage_tasks(const std::shared_ptr<Session>& session, std::uint32_t connection,
                  const TaskManagementRequest& request, SessionRegistry& registry) {
  const auto function = static_cast<TaskManagement>(request.function);
  const auto set = set_function(function);
  const auto answer = [&](TaskManagementOutcome outcome) {
    session->respond(connection, {.outcome = outcome, .itt = request.itt});
  };
  if (function != TaskManagement::kAbortTask && !set) return answer(outcome_of_other(function));
  if (!(set && set->whole_target) && !session->device()->has_lun(request.lun)) {
    return answer(TaskManagementOutcome::kNoSuchLun);
  }
  const std::uint64_t ticket = registry.next_ticket();
  if (!set) return abort_one(session, connection, request, ticket);
  // What affects the whole target takes commands that have not come for received; otherwise it
  // waits for those before it (4.2.3.3, target, b).
  if (set->whole_target) {
    session->window().abort_all_unreceived(request.cmd_sn);
    session->order().run_ready();
  }
  session->order().when_received(request.cmd_sn, CommandOrder::kNoConnection,
                                 [weak = std::weak_ptr(session), connection, request, set = *set,
                                  ticket, registry = registry.weak_from_this()] {
                                   const auto own = weak.lock();
                                   const auto all = registry.lock();
                                   if (own && all)
                                     abort_set(own, connection, request, set, ticket, *all);
                                 });
}

}  // namespace mariner::iscsi
