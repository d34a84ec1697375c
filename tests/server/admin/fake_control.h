// A Control that notes what it is asked and answers what a test has set.
#pragma once

#include <string>
#include <vector>

#include "server/admin/control.h"
#include "tests/server/admin/fake_files.h"
#include "tests/server/admin/fake_groups.h"
#include "tests/server/admin/fake_past.h"
#include "tests/server/admin/fake_repairs.h"

namespace mariner::admin {

class FakeControl final : public Control {
 public:
  // What was asked, as "function request" with the request in text format.
  std::vector<std::string> asked;
  // Answers everything with this, if set.
  std::optional<Error> error;
  std::optional<Error> reload_error;  // of config_reload, and what follows

  api::StatusAnswer status_answer;
  api::VolumeList volumes;
  api::History history_answer;
  api::PruneAnswer pruned;
  api::MarkList marks;
  api::VerdictList verdicts;
  api::ViewList views;
  api::RollbackAnswer rollback_answer;
  api::SessionList sessions;
  api::Invitation invitation;
  api::Promotion promotion;
  api::ClusterStatus cluster;
  api::DoctorAnswer findings;
  api::ConfigChanges changes;
  api::Access access;
  api::Mark mark_answer;
  api::View view_answer;
  api::Clone clone_answer;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> import_progress;

  void status(Answer<api::StatusAnswer> done) override {
    reply("status", status_answer, std::move(done));
  }
  void log_compact(Answer<api::CompactAnswer> done) override {
    reply("log_compact", api::CompactAnswer{}, std::move(done));
  }
  void volume_list(Answer<api::VolumeList> done) override {
    reply("volume_list", volumes, std::move(done));
  }
  void volume_show(const api::VolumeRequest& request, Answer<api::Volume> done) override {
    for (const auto& volume : volumes.volumes()) {
      if (volume.name() == request.name())
        return reply(note("volume_show", request), volume, std::move(done));
    }
    note("volume_show", request);
    done(error.value_or(
        Error{ErrorCode::kNotFound, "there is no volume \"" + request.name() + "\""}));
  }
  void volume_create(const api::CreateVolumeRequest& request, Answer<api::Volume> done) override {
    api::Volume volume;
    volume.set_name(request.name());
    volume.set_size_bytes(request.size_bytes());
    volume.set_iqn("iqn.2026-11.org.mariner:" + request.name());
    reply(note("volume_create", request), volume, std::move(done));
  }
  void volume_retain(const api::RetainRequest& request, Answer<api::Volume> done) override {
    api::Volume volume;
    volume.set_name(request.name());
    volume.set_retain(request.retain());
    reply(note("volume_retain", request), volume, std::move(done));
  }
  void history_prune(const api::PruneRequest& request, Answer<api::PruneAnswer> done) override {
    note("history_prune", request);
    done(error ? Result<api::PruneAnswer>(*error) : pruned);
  }
  void volume_resize(const api::ResizeRequest& request, Answer<api::Volume> done) override {
    api::Volume volume;
    volume.set_name(request.name());
    volume.set_size_bytes(request.size_bytes());
    reply(note("volume_resize", request), volume, std::move(done));
  }
  void volume_delete(const api::VolumeRequest& request, Answer<api::Volume> done) override {
    api::Volume volume;
    volume.set_name(request.name());
    reply(note("volume_delete", request), volume, std::move(done));
  }
  void volume_import(const api::ImportRequest& request,
                     UniqueFunction<void(std::uint64_t, std::uint64_t)> progress,
                     Answer<api::Volume> done) override {
    for (const auto& [bytes, all] : import_progress) progress(bytes, all);
    api::Volume volume;
    volume.set_name(request.name());
    reply(note("volume_import", request), volume, std::move(done));
  }
  void volume_clone(const api::CloneRequest& request,
                    UniqueFunction<void(std::uint64_t, std::uint64_t)> progress,
                    Answer<api::Clone> done) override {
    for (const auto& [bytes, all] : import_progress) progress(bytes, all);
    reply(note("volume_clone", request), clone_answer, std::move(done));
  }
  void history(const api::HistoryRequest& request, Answer<api::History> done) override {
    reply(note("history", request), history_answer, std::move(done));
  }
  void mark_add(const api::MarkRequest& request, Answer<api::Mark> done) override {
    reply(note("mark_add", request), mark_answer, std::move(done));
  }
  void mark_list(const api::MarkRequest& request, Answer<api::MarkList> done) override {
    reply(note("mark_list", request), marks, std::move(done));
  }
  void mark_remove(const api::MarkRequest& request, Answer<api::Mark> done) override {
    reply(note("mark_remove", request), mark_answer, std::move(done));
  }
  void verdicts_save(const api::SaveVerdictsRequest& request,
                     Answer<api::VerdictList> done) override {
    reply(note("verdicts_save", request), verdicts, std::move(done));
  }
  void verdict_list(const api::VerdictsRequest& request, Answer<api::VerdictList> done) override {
    reply(note("verdict_list", request), verdicts, std::move(done));
  }
  void view_expose(const api::ExposeRequest& request, Answer<api::View> done) override {
    reply(note("view_expose", request), view_answer, std::move(done));
  }
  void view_list(Answer<api::ViewList> done) override {
    reply("view_list", views, std::move(done));
  }
  void view_unexpose(const api::UnexposeRequest& request, Answer<api::View> done) override {
    reply(note("view_unexpose", request), view_answer, std::move(done));
  }
  void rollback(const api::RollbackRequest& request, Answer<api::RollbackAnswer> done) override {
    note("rollback", request);
    if (request.dry_run() || !rollback_error) return reply("", rollback_answer, std::move(done));
    done(*rollback_error);
  }
  void access_show(const api::AccessRequest& request, Answer<api::Access> done) override {
    reply(note("access_show", request), access, std::move(done));
  }
  void acl_add(const api::AclRequest& request, Answer<api::Access> done) override {
    reply(note("acl_add", request), access, std::move(done));
  }
  void acl_remove(const api::AclRequest& request, Answer<api::Access> done) override {
    reply(note("acl_remove", request), access, std::move(done));
  }
  void auth_set(const api::AuthRequest& request, Answer<api::Access> done) override {
    reply(note("auth_set", request), access, std::move(done));
  }
  void redirect_set(const api::RedirectRequest& request, Answer<api::Access> done) override {
    reply(note("redirect_set", request), access, std::move(done));
  }
  void session_list(Answer<api::SessionList> done) override {
    reply("session_list", sessions, std::move(done));
  }
  void session_kick(const api::SessionRequest& request, Answer<api::Session> done) override {
    reply(note("session_kick", request), api::Session{}, std::move(done));
  }
  void node_invite(const api::InviteRequest& request, Answer<api::Invitation> done) override {
    reply(note("node_invite", request), invitation, std::move(done));
  }
  void node_promote(const api::PromoteRequest& request, Answer<api::Promotion> done) override {
    reply(note("node_promote", request), promotion, std::move(done));
  }
  void cluster_status(Answer<api::ClusterStatus> done) override {
    reply("cluster_status", cluster, std::move(done));
  }
  void config_compare(const api::ConfigCompareRequest& request,
                      Answer<api::ConfigChanges> done) override {
    reply(note("config_compare", request), changes, std::move(done));
  }
  void config_reload(Answer<api::ConfigChanges> done) override {
    if (reload_error) error = reload_error;
    reply("config_reload", changes, std::move(done));
  }
  void doctor(Answer<api::DoctorAnswer> done) override {
    reply("doctor", findings, std::move(done));
  }
  [[nodiscard]] FakeGroups& groups() override { return of_groups; }
  [[nodiscard]] FakePast& past() override { return of_the_past; }
  [[nodiscard]] FakeRepairs& repairs() override { return handed_over; }
  [[nodiscard]] FakeFiles& files() override { return of_files; }

  FakeGroups of_groups{asked, error};
  FakePast of_the_past;
  FakeRepairs handed_over;
  FakeFiles of_files;
  // What a rollback that is not a dry run answers, if set.
  std::optional<Error> rollback_error;

 private:
  // Notes the request; returns nothing left to note.
  template <typename Message>
  std::string note(const std::string& function, const Message& request) {
    const auto text = request.ShortDebugString();
    asked.push_back(text.empty() ? function : function + " " + text);
    return "";
  }

  template <typename T>
  void reply(const std::string& function, const T& value, Answer<T> done) {
    if (!function.empty()) asked.push_back(function);
    if (error) return done(*error);
    done(value);
  }
};

}  // namespace mariner::admin
