#include "server/admin/group_routes.h"

#include <array>

namespace mariner::admin {
namespace {

using web::HttpMethod;

void get_groups(Call& call) {
  call.control.groups().list(answer<api::GroupList>(std::move(call.reply)));
}

void post_group(Call& call) {
  const auto request = read<api::GroupRequest>(call);
  if (request) call.control.groups().create(*request, answer<api::Group>(std::move(call.reply)));
}

void get_group(Call& call) {
  auto request = read<api::GroupRequest>(call);
  if (!request) return;
  request->set_name(call.names[0]);
  call.control.groups().show(*request, answer<api::Group>(std::move(call.reply)));
}

void delete_group(Call& call) {
  auto request = read<api::GroupRequest>(call);
  if (!request) return;
  request->set_name(call.names[0]);
  call.control.groups().erase(*request, answer<api::Group>(std::move(call.reply)));
}

void post_member(Call& call) {
  auto request = read<api::GroupRequest>(call);
  if (!request) return;
  request->set_name(call.names[0]);
  call.control.groups().add(*request, answer<api::Group>(std::move(call.reply)));
}

void delete_member(Call& call) {
  auto request = read<api::GroupRequest>(call);
  if (!request) return;
  request->set_name(call.names[0]);
  request->clear_volumes();
  request->add_volumes(call.names[1]);
  call.control.groups().remove(*request, answer<api::Group>(std::move(call.reply)));
}

void get_group_marks(Call& call) {
  auto request = read<api::GroupMarkRequest>(call);
  if (!request) return;
  request->set_group(call.names[0]);
  call.control.groups().mark_list(*request, answer<api::GroupMarkList>(std::move(call.reply)));
}

void post_group_mark(Call& call) {
  auto request = read<api::GroupMarkRequest>(call);
  if (!request) return;
  request->set_group(call.names[0]);
  call.control.groups().mark_add(*request, answer<api::GroupMark>(std::move(call.reply)));
}

void delete_group_mark(Call& call) {
  auto request = read<api::GroupMarkRequest>(call);
  if (!request) return;
  request->set_group(call.names[0]);
  request->set_name(call.names[1]);
  call.control.groups().mark_remove(*request, answer<api::GroupMark>(std::move(call.reply)));
}

void post_group_view(Call& call) {
  auto request = read<api::GroupExposeRequest>(call);
  if (!request) return;
  request->set_group(call.names[0]);
  call.control.groups().expose(*request, answer<api::GroupView>(std::move(call.reply)));
}

void post_group_rollback(Call& call) {
  auto request = read<api::GroupRollbackRequest>(call);
  if (!request) return;
  request->set_group(call.names[0]);
  call.control.groups().rollback(*request, answer<api::GroupRollbackAnswer>(std::move(call.reply)));
}

constexpr std::array kGroupRoutes{
    Route{HttpMethod::kGet, "/v1/groups", get_groups},
    Route{HttpMethod::kPost, "/v1/groups", post_group},
    Route{HttpMethod::kGet, "/v1/groups/*", get_group},
    Route{HttpMethod::kDelete, "/v1/groups/*", delete_group},
    Route{HttpMethod::kPost, "/v1/groups/*/members", post_member},
    Route{HttpMethod::kDelete, "/v1/groups/*/members/*", delete_member},
    Route{HttpMethod::kGet, "/v1/groups/*/marks", get_group_marks},
    Route{HttpMethod::kPost, "/v1/groups/*/marks", post_group_mark},
    Route{HttpMethod::kDelete, "/v1/groups/*/marks/*", delete_group_mark},
    Route{HttpMethod::kPost, "/v1/groups/*/views", post_group_view},
    Route{HttpMethod::kPost, "/v1/groups/*/rollback", post_group_rollback},
};

}  // namespace

std::span<const Route> group_routes() { return kGroupRoutes; }

}  // namespace mariner::admin
