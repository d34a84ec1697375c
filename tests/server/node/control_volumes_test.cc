// Volumes as an administrator sees them: server/node/control_volumes.cc.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/server/node/node_fixture.h"

namespace mariner::node {
namespace {

class ControlVolumes : public testing::NodeFixture {
 protected:
  ErrorCode refused(const std::string& name, std::uint64_t bytes, std::uint32_t block_size = 0) {
    api::CreateVolumeRequest request;
    request.set_name(name);
    request.set_size_bytes(bytes);
    request.set_block_size(block_size);
    const Result<api::Volume> created = ask(&NodeControl::volume_create, request);
    return created ? ErrorCode{} : created.error().code;
  }
  Result<api::Volume> show(const std::string& name) {
    return ask(&NodeControl::volume_show, named(name));
  }
  static api::VolumeRequest named(const std::string& name) {
    api::VolumeRequest request;
    request.set_name(name);
    return request;
  }
  int count() { return ask(&NodeControl::volume_list)->volumes_size(); }
};

TEST_F(ControlVolumes, CreateListShow) {
  EXPECT_EQ(count(), 0);
  const api::Volume created = create("db1");
  EXPECT_EQ(created.iqn(), "iqn.2026-11.org.example:db1");
  EXPECT_EQ(created.size_bytes(), kVolumeBytes);
  EXPECT_EQ(created.block_size(), 512u);
  EXPECT_EQ(created.window_s(), 72u * 3600);
  EXPECT_EQ(created.state(), "ready");
  EXPECT_FALSE(created.serial().empty());
  EXPECT_FALSE(created.naa().empty());
  create("db2");
  const Result<api::VolumeList> list = ask(&NodeControl::volume_list);
  ASSERT_TRUE(list);
  ASSERT_EQ(list->volumes_size(), 2);
  EXPECT_EQ(list->volumes(1).name(), "db2");

  ASSERT_EQ(write(created.iqn(), 0, 'a'), scsi::Status::kGood);
  const Result<api::Volume> shown = show("db1");
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->newest().sequence(), 1u);
  EXPECT_EQ(shown->oldest().sequence(), 0u);
  EXPECT_EQ(shown->history_bytes(), kBlockBytes);
  EXPECT_EQ(shown->serial(), created.serial());
  EXPECT_EQ(show("db3").error().code, ErrorCode::kNotFound);
}

TEST_F(ControlVolumes, ADryRunCreatesNothing) {
  api::CreateVolumeRequest request;
  request.set_name("db1");
  request.set_size_bytes(kVolumeBytes);
  request.set_block_size(4096);
  request.set_dry_run(true);
  const Result<api::Volume> planned = ask(&NodeControl::volume_create, request);
  ASSERT_TRUE(planned);
  EXPECT_EQ(planned->state(), "planned");
  EXPECT_EQ(planned->block_size(), 4096u);
  EXPECT_EQ(planned->iqn(), "iqn.2026-11.org.example:db1");
  EXPECT_EQ(count(), 0);
  create("db1");
  EXPECT_EQ(ask(&NodeControl::volume_create, request).error().code, ErrorCode::kAlreadyExists);
}

TEST_F(ControlVolumes, WhatCannotBeCreated) {
  create("db1");
  EXPECT_EQ(refused("db1", kVolumeBytes), ErrorCode::kAlreadyExists);
  for (const char* name : {"", "-x", "Db", "a/b", "..", "a b"}) {
    EXPECT_EQ(refused(name, kVolumeBytes), ErrorCode::kInvalidArgument) << name;
  }
  EXPECT_EQ(refused(std::string(64, 'a'), kVolumeBytes), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused("db2", kVolumeSizeMin.bytes - 1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused("db2", kVolumeSizeMax.bytes + 1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused("db2", kVolumeBytes, 1024), ErrorCode::kInvalidArgument);
  EXPECT_EQ(count(), 1);
}

TEST_F(ControlVolumes, Delete) {
  const api::Volume created = create("db1");
  ASSERT_EQ(write(created.iqn(), 0, 'a'), scsi::Status::kGood);
  EXPECT_EQ(ask(&NodeControl::volume_delete, named("db2")).error().code, ErrorCode::kNotFound);
  api::VolumeRequest request = named("db1");
  request.set_dry_run(true);
  EXPECT_EQ(ask(&NodeControl::volume_delete, request)->name(), "db1");
  EXPECT_EQ(count(), 1);
  request.set_dry_run(false);
  EXPECT_EQ(ask(&NodeControl::volume_delete, request)->name(), "db1");
  EXPECT_EQ(count(), 0);
  EXPECT_FALSE(std::filesystem::exists(created.image_path()));
  EXPECT_NE(create("db1").id(), created.id());
}

TEST_F(ControlVolumes, Resize) {
  const api::Volume created = create("db1");
  api::ResizeRequest request;
  request.set_name("db1");
  request.set_size_bytes(4 * kVolumeBytes);
  request.set_dry_run(true);
  EXPECT_EQ(ask(&NodeControl::volume_resize, request)->size_bytes(), 4 * kVolumeBytes);
  EXPECT_EQ(show("db1")->size_bytes(), kVolumeBytes);
  request.set_dry_run(false);
  EXPECT_EQ(ask(&NodeControl::volume_resize, request)->size_bytes(), 4 * kVolumeBytes);
  EXPECT_EQ(show("db1")->size_bytes(), 4 * kVolumeBytes);
  ASSERT_EQ(write(created.iqn(), 4 * kVolumeBytes / kBlockBytes - 1, 'a'), scsi::Status::kGood);
  EXPECT_TRUE(ask(&NodeControl::volume_resize, request)) << "it has that size";
  for (const bool dry_run : {true, false}) {
    request.set_dry_run(dry_run);
    request.set_size_bytes(kVolumeBytes);
    EXPECT_EQ(ask(&NodeControl::volume_resize, request).error().code, ErrorCode::kInvalidArgument);
    request.set_size_bytes(kVolumeSizeMax.bytes + 1);
    EXPECT_EQ(ask(&NodeControl::volume_resize, request).error().code, ErrorCode::kInvalidArgument);
  }
  request.set_name("db2");
  EXPECT_EQ(ask(&NodeControl::volume_resize, request).error().code, ErrorCode::kNotFound);
}

TEST_F(ControlVolumes, AVolumeWithViewsIsNotDeleted) {
  create("db1");
  api::ExposeRequest expose;
  expose.set_volume("db1");
  expose.set_name("v");
  ASSERT_TRUE(ask(&NodeControl::view_expose, expose));
  api::VolumeRequest request = named("db1");
  request.set_force(true);
  EXPECT_EQ(ask(&NodeControl::volume_delete, request).error().code, ErrorCode::kBusy);
  api::UnexposeRequest unexpose;
  unexpose.set_name("v");
  ASSERT_TRUE(ask(&NodeControl::view_unexpose, unexpose));
  EXPECT_TRUE(ask(&NodeControl::volume_delete, request));
}

TEST_F(ControlVolumes, AVolumeWithALockedMarkIsNotDeleted) {
  create("db1");
  api::MarkRequest mark;
  mark.set_volume("db1");
  mark.set_name("kept");
  mark.set_lock_s(UINT64_MAX);
  ASSERT_TRUE(ask(&NodeControl::mark_add, mark));
  api::VolumeRequest request = named("db1");
  request.set_force(true);
  EXPECT_EQ(ask(&NodeControl::volume_delete, request).error().code, ErrorCode::kBusy);
  ASSERT_TRUE(ask(&NodeControl::mark_remove, mark));
  EXPECT_TRUE(ask(&NodeControl::volume_delete, request));
}

TEST_F(ControlVolumes, AVolumeInUseIsDeletedByForceOnly) {
  const auto session = log_in(create("db1").iqn());
  EXPECT_EQ(show("db1")->sessions(), 1u);
  EXPECT_EQ(ask(&NodeControl::volume_delete, named("db1")).error().code, ErrorCode::kBusy);
  api::VolumeRequest request = named("db1");
  request.set_force(true);
  EXPECT_TRUE(ask(&NodeControl::volume_delete, request));
  EXPECT_EQ(ask(&NodeControl::session_list)->sessions_size(), 0);
}

TEST_F(ControlVolumes, Import) {
  std::ofstream(path("disk.raw")) << std::string(kVolumeBytes, 'i');
  api::ImportRequest request;
  request.set_name("old");
  request.set_path(path("disk.raw"));
  request.set_window_s(60);
  request.set_dry_run(true);
  ASSERT_TRUE(import(request));
  EXPECT_EQ(count(), 0);
  request.set_dry_run(false);
  const Result<api::Volume> imported = import(request);
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->state(), "ready");
  EXPECT_EQ(imported->size_bytes(), kVolumeBytes);
  EXPECT_EQ(imported->window_s(), 60u);
  EXPECT_EQ(read(imported->iqn(), 255), 'i');
  EXPECT_EQ(import(request).error().code, ErrorCode::kAlreadyExists);
  request.set_name("other");
  request.set_path(path("missing.raw"));
  EXPECT_FALSE(import(request));
  EXPECT_EQ(count(), 1);
}

TEST_F(ControlVolumes, Clone) {
  const std::string iqn = create("db1").iqn();
  ASSERT_EQ(write(iqn, 3, 'a'), scsi::Status::kGood);
  ASSERT_EQ(write(iqn, 3, 'b'), scsi::Status::kGood);
  api::CloneRequest request;
  request.set_volume("db1");
  *request.mutable_at() = at_sequence(show("db1")->newest().sequence() - 1);
  request.set_name("db2");
  request.set_dry_run(true);
  EXPECT_EQ(clone(request)->volume().state(), "planned");
  EXPECT_EQ(count(), 1);
  request.set_dry_run(false);
  const Result<api::Clone> cloned = clone(request);
  ASSERT_TRUE(cloned);
  EXPECT_EQ(cloned->source(), "db1");
  EXPECT_EQ(cloned->at().sequence(), request.at().sequence());
  EXPECT_EQ(cloned->volume().state(), "ready");
  EXPECT_EQ(cloned->volume().window_s(), show("db1")->window_s());
  EXPECT_EQ(read(cloned->volume().iqn(), 3), 'a');
  EXPECT_EQ(clone(request).error().code, ErrorCode::kAlreadyExists);
  request.set_name("db3");
  request.set_window_s(60);
  request.mutable_at()->set_now(true);
  EXPECT_EQ(clone(request)->volume().window_s(), 60u);
  EXPECT_EQ(read(show("db3")->iqn(), 3), 'b');
  *request.mutable_at() = at_sequence(UINT64_MAX);
  request.set_name("db4");
  EXPECT_EQ(clone(request).error().code, ErrorCode::kOutsideWindow);
  request.set_volume("nothing");
  EXPECT_EQ(clone(request).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(count(), 3);
}

TEST_F(ControlVolumes, Status) {
  const Result<api::StatusAnswer> status = ask(&NodeControl::status);
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->ready());
  ASSERT_EQ(status->portals_size(), 1);
  EXPECT_TRUE(status->portals(0).starts_with("127.0.0.1:"));
  EXPECT_EQ(status->config_path(), path("marinerd.toml"));
  EXPECT_EQ(status->iqn_base(), "iqn.2026-11.org.example");
  EXPECT_LE(status->started_ns(), status->now_ns());
  EXPECT_GT(status->log_limit_bytes(), status->log_used_bytes());
}

}  // namespace
}  // namespace mariner::node
