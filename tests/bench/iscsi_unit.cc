#include "tests/bench/iscsi_unit.h"

extern "C" {
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
}

#include <utility>

#include "proto/check.h"

namespace mariner::bench {

IscsiUnit::~IscsiUnit() {
  done_ = nullptr;
  if (context_ != nullptr) iscsi_destroy_context(context_);
}

Error IscsiUnit::failure(const std::string& what) const {
  return {ErrorCode::kUnavailable, what + ": " + iscsi_get_error(context_)};
}

Result<iscsi_url*> IscsiUnit::prepare(const Options& options) {
  CHECK(context_ == nullptr);
  context_ = iscsi_create_context(options.initiator.c_str());
  CHECK(context_ != nullptr);
  iscsi_url* url = iscsi_parse_full_url(context_, options.url.c_str());
  if (url == nullptr) return failure(options.url);
  lun_ = url->lun;
  iscsi_set_noautoreconnect(context_, 1);
  iscsi_set_targetname(context_, url->target);
  iscsi_set_session_type(context_, ISCSI_SESSION_NORMAL);
  iscsi_set_header_digest(context_, ISCSI_HEADER_DIGEST_NONE);
  iscsi_set_immediate_data(
      context_, options.immediate_data ? ISCSI_IMMEDIATE_DATA_YES : ISCSI_IMMEDIATE_DATA_NO);
  iscsi_set_initial_r2t(context_,
                        options.initial_r2t ? ISCSI_INITIAL_R2T_YES : ISCSI_INITIAL_R2T_NO);
  if (options.isid) iscsi_set_isid_random(context_, *options.isid, 0);
  return url;
}

bool IscsiUnit::take_capacity(scsi_task* task) {
  const auto* answer = static_cast<scsi_readcapacity16*>(scsi_datain_unmarshall(task));
  if (task->status == SCSI_STATUS_GOOD && answer != nullptr) {
    lba_bytes_ = answer->block_length;
    size_bytes_ = (answer->returned_lba + 1) * answer->block_length;
  }
  scsi_free_scsi_task(task);
  return size_bytes_ != 0;
}

Result<void> IscsiUnit::connect(const Options& options) {
  const auto url = prepare(options);
  if (!url) return url.error();
  const int connected = iscsi_full_connect_sync(context_, (*url)->portal, (*url)->lun);
  iscsi_destroy_url(*url);
  if (connected != 0) return failure("login");

  scsi_task* task = iscsi_readcapacity16_sync(context_, lun_);
  if (task == nullptr || !take_capacity(task)) return failure("READ CAPACITY(16)");
  return {};
}

void IscsiUnit::logout() { iscsi_logout_sync(context_); }

Result<void> IscsiUnit::begin_connect(const Options& options, Done done) {
  const auto url = prepare(options);
  if (!url) return url.error();
  done_ = std::move(done);
  const int begun =
      iscsi_full_connect_async(context_, (*url)->portal, (*url)->lun, connected, this);
  iscsi_destroy_url(*url);
  if (begun != 0) return failure("login");
  return {};
}

Result<void> IscsiUnit::begin_logout(Done done) {
  done_ = std::move(done);
  if (iscsi_logout_async(context_, logged_out, this) != 0) return failure("logout");
  return {};
}

void IscsiUnit::finish(Result<void> result) {
  if (const Done done = std::exchange(done_, nullptr)) done(std::move(result));
}

void IscsiUnit::connected(iscsi_context* context, int status, void* /*data*/, void* unit) {
  auto& self = *static_cast<IscsiUnit*>(unit);
  if (!self.done_) return;  // the unit ends
  if (status != 0) return self.finish(self.failure("login"));
  if (iscsi_readcapacity16_task(context, self.lun_, capacity_read, unit) == nullptr) {
    self.finish(self.failure("READ CAPACITY(16)"));
  }
}

void IscsiUnit::capacity_read(iscsi_context* /*context*/, int status, void* task, void* unit) {
  auto& self = *static_cast<IscsiUnit*>(unit);
  const bool taken = task != nullptr && self.take_capacity(static_cast<scsi_task*>(task));
  if (status == SCSI_STATUS_GOOD && taken) return self.finish({});
  self.finish(self.failure("READ CAPACITY(16)"));
}

void IscsiUnit::logged_out(iscsi_context* /*context*/, int status, void* /*data*/, void* unit) {
  auto& self = *static_cast<IscsiUnit*>(unit);
  self.finish(status == 0 ? Result<void>{} : self.failure("logout"));
}

pollfd IscsiUnit::events() const {
  return {iscsi_get_fd(context_), static_cast<short>(iscsi_which_events(context_)), 0};
}

bool IscsiUnit::serve(short revents) {
  if (iscsi_service(context_, revents) < 0) return false;
  return (iscsi_which_events(context_) & POLLOUT) == 0 || (revents & POLLOUT) != 0 ||
         iscsi_service(context_, POLLOUT) >= 0;
}

}  // namespace mariner::bench
