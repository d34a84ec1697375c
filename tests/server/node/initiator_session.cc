#include "tests/server/node/initiator_session.h"

extern "C" {
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
}

#include "proto/check.h"

namespace mariner::node::testing {
namespace {

// Of the volumes that are read so.
constexpr std::uint32_t kLunBlockBytes = 512;

}  // namespace

InitiatorSession::InitiatorSession(const std::string& address, const std::string& target)
    : context_(iscsi_create_context(kName)) {
  CHECK(context_ != nullptr);
  CHECK(iscsi_set_targetname(context_, target.c_str()) == 0);
  CHECK(iscsi_set_session_type(context_, ISCSI_SESSION_NORMAL) == 0);
  iscsi_set_noautoreconnect(context_, 1);
  CHECK_MSG(iscsi_full_connect_sync(context_, address.c_str(), 0) == 0, iscsi_get_error(context_));
}

InitiatorSession::~InitiatorSession() {
  if (iscsi_is_logged_in(context_) != 0) iscsi_logout_sync(context_);
  iscsi_destroy_context(context_);
}

void InitiatorSession::use() {
  scsi_task* task =
      iscsi_read16_sync(context_, 0, 0, kLunBlockBytes, kLunBlockBytes, 0, 0, 0, 0, 0);
  CHECK(task != nullptr);
  scsi_free_scsi_task(task);
}

}  // namespace mariner::node::testing
