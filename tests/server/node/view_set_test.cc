#include "server/node/view_set.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/server/node/node_parts.h"

namespace mariner::node {
namespace {

class ViewSetTest : public ::testing::Test {
 protected:
  ViewSetTest() {
    parts_.create("db1");
    write('1');
    first_ = parts_.newest(volume());
    write('2');
  }
  ServedVolume& volume() { return *parts_.volumes().find("db1"); }
  void write(char byte) { parts_.write(*volume().volume->live_layer(), 0, byte); }
  Result<ServedView*> expose(const std::string& name, bool writable = false,
                             VersionTime expires = {}) {
    NewView view;
    view.name = name;
    view.at = parts_.answers(volume()).moment_of(first_);
    view.writable = writable;
    view.expires = expires;
    return parts_.views().expose(volume(), view);
  }
  void restart() {
    parts_.stop();
    parts_.start();
  }
  char read_view(const ServedView& view) {
    const auto layer = view.overlay != nullptr
                           ? view.overlay->live_layer()
                           : volume().volume->view_layer(SequenceNumber{view.meta.sequence()});
    return parts_.read(*layer, 0);
  }

  testing::NodeParts parts_;
  SequenceNumber first_;
};

TEST_F(ViewSetTest, AViewIsItsMomentUnderANameOfItsOwn) {
  Result<ServedView*> view = expose("old");
  ASSERT_TRUE(view);
  EXPECT_EQ((*view)->iqn, "iqn.2026-11.org.example:view:old");
  EXPECT_NE((*view)->identity.serial, volume().identity.serial);
  EXPECT_EQ(read_view(**view), '1');
  EXPECT_EQ(parts_.views().find_target("iqn.2026-11.org.example:view:old"), *view);
  EXPECT_EQ(parts_.views().count_of(volume().meta.id()), 1u);
  EXPECT_EQ(expose("old").error().code, ErrorCode::kAlreadyExists);
  EXPECT_EQ(expose("No Name").error().code, ErrorCode::kInvalidArgument);
}

TEST_F(ViewSetTest, NamesItselfAfterVolumeAndNumber) {
  EXPECT_EQ((*expose(""))->meta.name(), "db1-1");
  EXPECT_EQ((*expose(""))->meta.name(), "db1-1-2");
  EXPECT_EQ((*expose(""))->meta.name(), "db1-1-3");
}

TEST_F(ViewSetTest, ALongVolumeNameIsCutInTheNameOfItsView) {
  ServedVolume& longest = parts_.create(std::string(63, 'v'));
  NewView view;
  const Result<ServedView*> exposed = parts_.views().expose(longest, view);
  ASSERT_TRUE(exposed);
  EXPECT_LE((*exposed)->meta.name().size(), 63u);
}

TEST_F(ViewSetTest, ViewsSurviveRestarts) {
  const std::string serial = (*expose("old"))->identity.serial;
  Result<ServedView*> writable = expose("lab", true);
  ASSERT_TRUE(writable);
  parts_.write(*(*writable)->overlay->live_layer(), 0, 'w');
  parts_.write(*(*writable)->overlay->live_layer(), 7, 'v');
  for (int i = 0; i < 2; ++i) {
    restart();
    ASSERT_EQ(parts_.views().all().size(), 2u);
    EXPECT_EQ(parts_.views().find("old")->identity.serial, serial);
    EXPECT_EQ(read_view(*parts_.views().find("old")), '1');
    EXPECT_EQ(read_view(*parts_.views().find("lab")), 'w');
    EXPECT_EQ(parts_.read(*parts_.views().find("lab")->overlay->live_layer(), 7), 'v');
    EXPECT_EQ(parts_.read(*volume().volume->live_layer(), 0), '2') << "the origin knows nothing";
  }
}

TEST_F(ViewSetTest, AnUnexposedViewIsGoneWithItsOverlay) {
  Result<ServedView*> view = expose("lab", true);
  ASSERT_TRUE(view);
  parts_.write(*(*view)->overlay->live_layer(), 0, 'w');
  ASSERT_TRUE(parts_.views().unexpose("lab"));
  EXPECT_EQ(parts_.views().find("lab"), nullptr);
  EXPECT_EQ(parts_.views().unexpose("lab").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(parts_.store().volumes()->size(), 1u);
  restart();
  EXPECT_TRUE(parts_.views().all().empty());
  EXPECT_EQ(read_view(**expose("lab", true)), '1') << "a new one begins anew";
}

TEST_F(ViewSetTest, UnexposedWhileItIsRead) {
  ASSERT_TRUE(expose("old"));
  const auto layer = volume().volume->view_layer(first_);
  bool done = false;
  layer->read({0, kBlockBytes}, [&](const Result<PayloadSlice>& r) { done = r.has_value(); });
  ASSERT_TRUE(parts_.views().unexpose("old"));
  parts_.run_until([&] { return done; });
}

TEST_F(ViewSetTest, TellsWhoseTimeIsOver) {
  ASSERT_TRUE(expose("for-ever"));
  ASSERT_TRUE(expose("short", false, VersionTime{1000}));
  ASSERT_TRUE(expose("longer", true, VersionTime{2000}));
  EXPECT_TRUE(parts_.views().expired(VersionTime{999}).empty());
  EXPECT_EQ(parts_.views().expired(VersionTime{1000}), std::vector<std::string>{"short"});
  EXPECT_EQ(parts_.views().expired(VersionTime{2000}).size(), 2u);
  restart();
  EXPECT_EQ(parts_.views().expired(VersionTime{2000}).size(), 2u);
}

TEST_F(ViewSetTest, OverlaysThatNobodyClaimsAreDropped) {
  std::uint32_t id = 0;
  ASSERT_TRUE(parts_.volumes().create_overlay(volume(), first_, id));
  ASSERT_EQ(parts_.store().volumes()->size(), 2u);
  restart();
  EXPECT_EQ(parts_.store().volumes()->size(), 1u);
}

TEST_F(ViewSetTest, AViewWhoseVolumeIsGoneIsDropped) {
  meta::View stray;
  stray.set_name("stray");
  stray.set_volume_id(4711);
  stray.set_uuid(std::string(16, 'u'));
  ASSERT_TRUE(parts_.store().put_view(stray));
  restart();
  EXPECT_TRUE(parts_.views().all().empty());
  EXPECT_TRUE(parts_.store().views()->empty());
}

// What was written to it is not thrown away because something else cannot be read.
TEST_F(ViewSetTest, AViewThatCannotBeServedNowIsKept) {
  Result<ServedView*> view = expose("lab", true);
  ASSERT_TRUE(view);
  parts_.write(*(*view)->overlay->live_layer(), 0, 'w');
  const std::string unit = MetaStore::unit_of_view("lab");
  meta::Reservations damaged;
  damaged.add_registrations()->mutable_nexus()->set_isid("short");
  ASSERT_TRUE(parts_.store().put_reservations(unit, damaged));
  restart();
  ASSERT_NE(parts_.views().find("lab"), nullptr);
  EXPECT_TRUE(parts_.views().find("lab")->failure.has_value());
  EXPECT_EQ(parts_.views().find("lab")->device, nullptr);
  EXPECT_EQ(read_view(*parts_.views().find("lab")), 'w') << "it is kept, with what was written";
  EXPECT_EQ(parts_.store().views()->size(), 1u);
  ASSERT_TRUE(parts_.store().remove_reservations(unit));
  restart();
  ASSERT_NE(parts_.views().find("lab"), nullptr);
  EXPECT_FALSE(parts_.views().find("lab")->failure.has_value());
  EXPECT_NE(parts_.views().find("lab")->device, nullptr);
  EXPECT_EQ(read_view(*parts_.views().find("lab")), 'w');
}

TEST_F(ViewSetTest, AViewThatCannotBeServedCanBeUnexposed) {
  const Result<ServedView*> view = expose("lab", true);
  ASSERT_TRUE(view);
  const std::uint32_t overlay = (*view)->meta.overlay_volume_id();
  meta::Reservations damaged;
  damaged.add_registrations()->mutable_nexus()->set_isid("short");
  ASSERT_TRUE(parts_.store().put_reservations(MetaStore::unit_of_view("lab"), damaged));
  restart();
  ASSERT_NE(parts_.volumes().find_volume(overlay), nullptr) << "the log keeps what was written";
  ASSERT_TRUE(parts_.views().unexpose("lab"));
  EXPECT_EQ(parts_.views().find("lab"), nullptr);
  EXPECT_TRUE(parts_.store().views()->empty());
}

TEST_F(ViewSetTest, AnOverlayIsBoundedAlsoAfterARestart) {
  NewView request;
  request.name = "lab";
  request.at = parts_.answers(volume()).moment_of(first_);
  request.writable = true;
  request.overlay_bytes_max = 2 * kBlockBytes;
  ASSERT_TRUE(parts_.views().expose(volume(), request));
  const auto write_to = [&](std::uint64_t block) {
    const auto layer = parts_.views().find("lab")->overlay->live_layer();
    std::optional<Result<void>> result;
    layer->write({block * kBlockBytes, kBlockBytes}, {Payload::zeroed(kBlockBytes), 0, kBlockBytes},
                 [&](Result<void> r) { result = std::move(r); });
    parts_.run_until([&] { return result.has_value(); });
    return result->has_value() ? std::nullopt : std::optional(result->error().code);
  };
  EXPECT_EQ(write_to(1), std::nullopt);
  EXPECT_EQ(write_to(2), std::nullopt);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(write_to(3), ErrorCode::kNoSpace);
    EXPECT_EQ(write_to(2), std::nullopt);
    restart();
  }
}

TEST_F(ViewSetTest, WhatIsNotAskedForIsTheDefault) {
  parts_.views().set_overlay_default(12345 * kBlockBytes);
  EXPECT_EQ((*expose("lab", true))->meta.overlay_bytes_max(), 12345 * kBlockBytes);
  EXPECT_EQ((*expose("old"))->meta.overlay_bytes_max(), 0u) << "nobody writes to it";
  parts_.views().set_overlay_default(0);
  EXPECT_EQ((*expose("other", true))->meta.overlay_bytes_max(), 0u);
}

TEST_F(ViewSetTest, AsManyAsTheLimit) {
  for (std::size_t i = 0; i < ViewSet::kViewsMax; ++i) ASSERT_TRUE(expose(""));
  EXPECT_EQ(expose("").error().code, ErrorCode::kLimit);
}

}  // namespace
}  // namespace mariner::node
