// Views as an administrator sees them: server/node/control_views.cc.
#include <gtest/gtest.h>

#include "tests/server/node/node_fixture.h"

namespace mariner::node {
namespace {

// A volume whose first block was 'a', then 'b'.
class ControlViews : public testing::NodeFixture {
 protected:
  ControlViews() {
    iqn_ = create("db1").iqn();
    EXPECT_EQ(write(iqn_, 0, 'a'), scsi::Status::kGood);
    EXPECT_EQ(write(iqn_, 0, 'b'), scsi::Status::kGood);
  }
  static api::ExposeRequest request(const std::string& name, bool writable = false) {
    api::ExposeRequest request;
    request.set_volume("db1");
    request.set_name(name);
    request.set_writable(writable);
    *request.mutable_at() = at_sequence(1);
    return request;
  }
  Result<api::View> expose(const api::ExposeRequest& request) {
    return ask(&NodeControl::view_expose, request);
  }
  static api::UnexposeRequest named(const std::string& name) {
    api::UnexposeRequest request;
    request.set_name(name);
    return request;
  }
  int count() { return ask(&NodeControl::view_list)->views_size(); }

  std::string iqn_;
};

TEST_F(ControlViews, ARepairedViewHasItsRepairsAndNobodyWritesToIt) {
  api::ExposeRequest mended = request("mended");
  mended.set_repairs(hand_over("db1", 1, {3, 4, 9}, 'r'));
  mended.set_dry_run(true);
  EXPECT_EQ(expose(mended)->repaired_blocks(), 3u);
  mended.set_dry_run(false);
  const Result<api::View> view = expose(mended);
  ASSERT_TRUE(view) << to_string(view.error());
  EXPECT_FALSE(view->writable());
  EXPECT_EQ(view->repaired_blocks(), 3u);
  EXPECT_EQ(expose(mended).error().code, ErrorCode::kNotFound) << "they were used";
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(read(view->iqn(), 0), 'a');
    EXPECT_EQ(read(view->iqn(), 4), 'r');
    EXPECT_EQ(read(view->iqn(), 9), 'r');
    EXPECT_EQ(write(view->iqn(), 0, 'x'), scsi::Status::kCheckCondition);
    stop();
    start();
  }
  EXPECT_EQ(read(iqn_, 4), '\0') << "the volume is as it was";
  ASSERT_TRUE(ask(&NodeControl::view_unexpose, named("mended")));
  EXPECT_EQ(count(), 0);
}

TEST_F(ControlViews, ARepairedViewMayBeWritten) {
  api::ExposeRequest mended = request("mended", true);
  mended.set_repairs(hand_over("db1", 1, {3}, 'r'));
  const Result<api::View> view = expose(mended);
  ASSERT_TRUE(view) << to_string(view.error());
  EXPECT_EQ(read(view->iqn(), 3), 'r');
  EXPECT_EQ(write(view->iqn(), 3, 'x'), scsi::Status::kGood);
  EXPECT_EQ(read(view->iqn(), 3), 'x');
}

TEST_F(ControlViews, AnOverlayHasItsBoundAndAViewIsKept) {
  api::ExposeRequest bounded = request("lab", true);
  bounded.set_overlay_bytes_max(1u << 20);
  bounded.set_keep(true);
  bounded.set_dry_run(true);
  EXPECT_EQ(expose(bounded)->overlay_bytes_max(), 1u << 20);
  bounded.set_dry_run(false);
  ASSERT_TRUE(expose(bounded));
  for (int i = 0; i < 2; ++i) {
    const auto view = ask(&NodeControl::view_list)->views(0);
    EXPECT_EQ(view.overlay_bytes_max(), 1u << 20);
    EXPECT_TRUE(view.keep());
    EXPECT_EQ(write(view.iqn(), 0, 'x'), scsi::Status::kGood);
    EXPECT_EQ(write(view.iqn(), 0, 'y'), scsi::Status::kGood);
    EXPECT_EQ(ask(&NodeControl::view_list)->views(0).overlay_bytes(), 4096u) << "overwritten";
    stop();
    start();
  }
  EXPECT_GT(expose(request("other", true))->overlay_bytes_max(), 1u << 20)
      << "a quarter of the log";
  bounded = request("third");
  bounded.set_overlay_bytes_max(1u << 20);
  EXPECT_EQ(expose(bounded).error().code, ErrorCode::kInvalidArgument) << "it is read-only";
}

TEST_F(ControlViews, RepairsOfAnotherMomentAreRefused) {
  api::ExposeRequest mended = request("mended");
  mended.set_repairs(hand_over("db1", 2, {3}, 'r'));
  EXPECT_EQ(expose(mended).error().code, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(expose(request("taken")));
  mended = request("taken");
  mended.set_repairs(hand_over("db1", 1, {3}, 'r'));
  EXPECT_EQ(expose(mended).error().code, ErrorCode::kAlreadyExists);
  mended.set_repairs("17");
  EXPECT_EQ(expose(mended).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(count(), 1);
}

TEST_F(ControlViews, AReadOnlyView) {
  const Result<api::View> view = expose(request(""));
  ASSERT_TRUE(view);
  EXPECT_EQ(view->name(), "db1-1");
  EXPECT_EQ(view->volume(), "db1");
  EXPECT_EQ(view->at().sequence(), 1u);
  EXPECT_FALSE(view->writable());
  EXPECT_EQ(view->expires_ns(), 0u);
  EXPECT_EQ(read(view->iqn(), 0), 'a');
  EXPECT_EQ(write(view->iqn(), 0, 'x'), scsi::Status::kCheckCondition);
  EXPECT_EQ(read(iqn_, 0), 'b');
}

TEST_F(ControlViews, AWritableViewKeepsItsWritesToItself) {
  const Result<api::View> view = expose(request("copy", true));
  ASSERT_TRUE(view);
  EXPECT_TRUE(view->writable());
  EXPECT_EQ(view->overlay_bytes(), 0u);
  EXPECT_EQ(write(view->iqn(), 1, 'x'), scsi::Status::kGood);
  EXPECT_EQ(read(view->iqn(), 0), 'a');
  EXPECT_EQ(read(view->iqn(), 1), 'x');
  EXPECT_EQ(read(iqn_, 1), 0);
  const Result<api::ViewList> list = ask(&NodeControl::view_list);
  ASSERT_TRUE(list);
  ASSERT_EQ(list->views_size(), 1);
  EXPECT_EQ(list->views(0).overlay_bytes(), kBlockBytes);
}

TEST_F(ControlViews, EachTellsItsSize) {
  EXPECT_EQ(expose(request("before"))->size_bytes(), kVolumeBytes);
  EXPECT_EQ(expose(request("before-w", true))->size_bytes(), kVolumeBytes);
  api::ResizeRequest larger;
  larger.set_name("db1");
  larger.set_size_bytes(2 * kVolumeBytes);
  ASSERT_TRUE(ask(&NodeControl::volume_resize, larger));
  api::ExposeRequest planned = request("after");
  planned.set_dry_run(true);
  EXPECT_EQ(expose(planned)->size_bytes(), 2 * kVolumeBytes);
  EXPECT_EQ(expose(request("later"))->size_bytes(), 2 * kVolumeBytes);
  const Result<api::ViewList> list = ask(&NodeControl::view_list);
  ASSERT_EQ(list->views_size(), 3);
  EXPECT_EQ(list->views(0).size_bytes(), kVolumeBytes);
  EXPECT_EQ(list->views(1).size_bytes(), kVolumeBytes);
  EXPECT_EQ(list->views(2).size_bytes(), 2 * kVolumeBytes);
}

TEST_F(ControlViews, NowUnlessAnotherMomentIsGiven) {
  api::ExposeRequest now = request("now");
  now.clear_at();
  const Result<api::View> view = expose(now);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->at().sequence(), 2u);
  EXPECT_NE(view->at().asked_ns(), 0u);
  ASSERT_EQ(write(iqn_, 0, 'c'), scsi::Status::kGood);
  EXPECT_EQ(read(view->iqn(), 0), 'b');
}

TEST_F(ControlViews, ViewsThatAreRefused) {
  ASSERT_TRUE(expose(request("v")));
  EXPECT_EQ(expose(request("v")).error().code, ErrorCode::kAlreadyExists);
  EXPECT_EQ(expose(request("V!")).error().code, ErrorCode::kInvalidArgument);
  api::ExposeRequest other = request("w");
  *other.mutable_at() = at_sequence(3);
  EXPECT_EQ(expose(other).error().code, ErrorCode::kOutsideWindow);
  *other.mutable_at() = at_mark("none");
  EXPECT_EQ(expose(other).error().code, ErrorCode::kNotFound);
  other.set_volume("db2");
  EXPECT_EQ(expose(other).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(count(), 1);
}

TEST_F(ControlViews, ADryRunExposesNothing) {
  api::ExposeRequest planned = request("v", true);
  planned.set_dry_run(true);
  const Result<api::View> view = expose(planned);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->at().sequence(), 1u);
  EXPECT_TRUE(view->writable());
  EXPECT_TRUE(view->iqn().empty());
  EXPECT_EQ(count(), 0);
}

TEST_F(ControlViews, Unexpose) {
  const Result<api::View> view = expose(request("v", true));
  ASSERT_TRUE(view);
  api::UnexposeRequest dry = named("v");
  dry.set_dry_run(true);
  EXPECT_EQ(ask(&NodeControl::view_unexpose, dry)->name(), "v");
  EXPECT_EQ(count(), 1);
  EXPECT_EQ(ask(&NodeControl::view_unexpose, named("v"))->name(), "v");
  EXPECT_EQ(count(), 0);
  const std::string gone = view->iqn();
  EXPECT_EQ(on_loop([&] { return node().open(gone, "iqn.2026-11.org.example:a").error().code; }),
            ErrorCode::kNotFound);
  EXPECT_EQ(ask(&NodeControl::view_unexpose, named("v")).error().code, ErrorCode::kNotFound);
}

TEST_F(ControlViews, AViewInUseIsUnexposedByForceOnly) {
  const Result<api::View> view = expose(request("v"));
  ASSERT_TRUE(view);
  const auto session = log_in(view->iqn());
  EXPECT_EQ(ask(&NodeControl::session_list)->sessions(0).view(), "v");
  EXPECT_EQ(ask(&NodeControl::view_unexpose, named("v")).error().code, ErrorCode::kBusy);
  api::UnexposeRequest force = named("v");
  force.set_force(true);
  EXPECT_EQ(ask(&NodeControl::view_unexpose, force)->sessions(), 1u);
  EXPECT_EQ(count(), 0);
}

TEST_F(ControlViews, ATimeToLive) {
  api::ExposeRequest brief = request("brief");
  brief.set_ttl_s(1);
  const Result<api::View> view = expose(brief);
  ASSERT_TRUE(view);
  EXPECT_GT(view->expires_ns(), view->created_ns());
  EXPECT_LE(view->expires_ns(), view->created_ns() + 1'000'000'000);
  api::ExposeRequest endless = request("endless");
  endless.set_ttl_s(UINT64_MAX);
  EXPECT_EQ(expose(endless)->expires_ns(), 0u) << "longer than time can be told: never";
  EXPECT_TRUE(eventually([&] { return count() != 2; }));
  const Result<api::ViewList> list = ask(&NodeControl::view_list);
  ASSERT_EQ(list->views_size(), 1);
  EXPECT_EQ(list->views(0).name(), "endless");
}

TEST_F(ControlViews, SurviveARestart) {
  ASSERT_TRUE(expose(request("v")));
  stop();
  start();
  const Result<api::ViewList> list = ask(&NodeControl::view_list);
  ASSERT_EQ(list->views_size(), 1);
  EXPECT_EQ(read(list->views(0).iqn(), 0), 'a');
}

}  // namespace
}  // namespace mariner::node
