// What the verbs of moments do when their object is a group of volumes: `group:NAME` in the place
// of a volume's name, which has no colon.
#pragma once

#include <optional>
#include <string>

#include "server/client/context.h"

namespace mariner::client {

// The group's name; nothing: it is a volume.
[[nodiscard]] std::optional<std::string> group_of(const std::string& object);

// As the requests say of a volume.
Result<ExitCode> add_group_mark(Context& context, const std::string& group,
                                const api::MarkRequest& request);
Result<ExitCode> list_group_marks(Context& context, const std::string& group);
Result<ExitCode> remove_group_mark(Context& context, const std::string& group,
                                   const std::string& name);
Result<ExitCode> expose_group(Context& context, const std::string& group,
                              const api::ExposeRequest& request);
Result<ExitCode> roll_back_group(Context& context, const std::string& group,
                                 const api::RollbackRequest& request);
Result<ExitCode> show_group_restoring(Context& context, const std::string& group);

}  // namespace mariner::client
