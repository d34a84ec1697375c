#include "logging/pack_window.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/logging/pack_testing.h"

namespace mariner::logging {
namespace {

using test::Bytes;
using test::MemoryTracks;
using test::noise;

const PackPause kNoPause;

TEST(PackWindow, ShowsEveryPlace) {
  MemoryTracks tracks;
  tracks.begin_track((1u << 20) + 1536);
  tracks.add_header(noise(1, (1u << 20) + 1024));
  PackPace pace(kNoPause);
  PackWindow window(tracks.tracks(), tracks, pace, PackWindow::kBytesMin);
  for (std::uint64_t at = 0; at + 4096 <= tracks.tracks()[0].used; at += 512) {
    const auto bytes = window.at(0, at, 4096);
    ASSERT_TRUE(bytes);
    ASSERT_TRUE(std::ranges::equal(*bytes, tracks.contents(0).subspan(at, 4096))) << at;
  }
}

TEST(PackWindow, ReadsAMebibyteAndThenWhatComesBehindIt) {
  MemoryTracks tracks;
  tracks.begin_track(8u << 20);
  tracks.add_header(noise(1, 4u << 20));
  tracks.begin_track(8u << 20);
  tracks.add_header(noise(2, 4096));
  PackPace pace(kNoPause);
  PackWindow window(tracks.tracks(), tracks, pace);
  for (std::uint64_t at = 0; at < (4u << 20); at += 4096) ASSERT_TRUE(window.at(0, at, 4096));
  // 1 MiB, then 736 KiB each.
  EXPECT_EQ(tracks.reads, 6u);
  ASSERT_TRUE(window.at(1, 0, 4096));
  EXPECT_EQ(tracks.reads, 7u);
  EXPECT_TRUE(std::ranges::equal(*window.at(1, 0, 4096), noise(2, 4096)));
}

TEST(PackWindow, HasWhatWasLookedAtBeforeWhenItMovesOn) {
  MemoryTracks tracks;
  tracks.begin_track(8u << 20);
  tracks.add_header(noise(1, 4u << 20));
  PackPace pace(kNoPause);
  PackWindow window(tracks.tracks(), tracks, pace);
  const std::uint64_t behind = PackWindow::kBehindBytes - 4096;
  for (std::uint64_t at = behind; at < (4u << 20); at += 4096) {
    ASSERT_TRUE(window.at(0, at, 4096));
    const auto bytes = window.at(0, at - behind, 4096);
    ASSERT_TRUE(bytes);
    ASSERT_TRUE(std::ranges::equal(*bytes, tracks.contents(0).subspan(at - behind, 4096))) << at;
  }
  EXPECT_LE(tracks.reads, 7u);
}

TEST(PackWindow, MovesOnByAnyLength) {
  MemoryTracks tracks;
  tracks.begin_track(4u << 20);
  tracks.add_header(noise(1, (4u << 20) - 1536));
  for (const std::size_t window_bytes : {PackWindow::kBytesMin, std::size_t{64} << 10}) {
    for (const std::size_t step : {512u, 4096u, 5120u, 12288u, 65536u}) {
      PackPace pace(kNoPause);
      PackWindow window(tracks.tracks(), tracks, pace, window_bytes);
      const std::size_t bytes = window_bytes - kBlockBytes;
      for (std::uint64_t at = 0; at + bytes <= tracks.tracks()[0].used; at += step) {
        const auto found = window.at(0, at, bytes);
        ASSERT_TRUE(found);
        ASSERT_TRUE(std::ranges::equal(*found, tracks.contents(0).subspan(at, bytes))) << at;
      }
    }
  }
}

TEST(PackWindow, AfterAFailedReadItReadsAgain) {
  MemoryTracks tracks;
  tracks.begin_track(8u << 20);
  tracks.add_header(noise(1, 4u << 20));
  PackPace pace(kNoPause);
  PackWindow window(tracks.tracks(), tracks, pace);
  ASSERT_TRUE(window.at(0, 0, 10));
  tracks.fail_at_read = 1;
  EXPECT_EQ(window.at(0, 2u << 20, 10).error().code, ErrorCode::kIo);
  tracks.fail_at_read = UINT64_MAX;
  EXPECT_TRUE(std::ranges::equal(*window.at(0, 0, 10), tracks.contents(0).first(10)));
  EXPECT_EQ(tracks.reads, 3u);
}

TEST(PackWindow, WhatComesNextIsReadBesideAndTheSame) {
  MemoryTracks tracks;
  for (const std::uint32_t bytes : {(5u << 20) - 1536, 0u, 4096u, 3u << 20}) {
    tracks.begin_track(8u << 20);
    tracks.add_header(noise(1 + bytes, bytes));
  }
  Beside beside("window-test");
  for (const std::size_t step : {4096u, 65536u, 300'000u}) {
    PackPace pace(kNoPause);
    PackWindow window(tracks.tracks(), tracks, pace, PackWindow::kBytes, &beside);
    for (std::size_t track = 0; track < tracks.tracks().size(); ++track) {
      const std::uint64_t used = tracks.tracks()[track].used;
      for (std::uint64_t at = 0; at < used; at += step) {
        const std::size_t bytes = std::min<std::uint64_t>(step, used - at);
        const auto found = window.at(track, at, bytes);
        ASSERT_TRUE(found);
        ASSERT_TRUE(std::ranges::equal(*found, tracks.contents(track).subspan(at, bytes))) << at;
      }
    }
    // Back, where nobody expected it, and on from there.
    for (const std::uint64_t at : {4u << 20, 1u << 20, 1u << 21}) {
      ASSERT_TRUE(
          std::ranges::equal(*window.at(0, at, 4096), tracks.contents(0).subspan(at, 4096)));
    }
  }
}

TEST(PackWindow, WhatCouldNotBeReadAheadIsTriedAgain) {
  MemoryTracks tracks;
  tracks.begin_track(8u << 20);
  tracks.add_header(noise(1, 4u << 20));
  Beside beside("window-test");
  PackPace pace(kNoPause);
  tracks.fail_at_read = 1;
  PackWindow window(tracks.tracks(), tracks, pace, PackWindow::kBytes, &beside);
  ASSERT_TRUE(window.at(0, 0, 4096));
  ASSERT_TRUE(beside.begin([] { return Result<void>{}; }).get());  // what is read ahead has failed
  EXPECT_EQ(tracks.reads, 2u);
  tracks.fail_at_read = UINT64_MAX;
  for (std::uint64_t at = 0; at < (4u << 20); at += 4096) {
    ASSERT_TRUE(std::ranges::equal(*window.at(0, at, 4096), tracks.contents(0).subspan(at, 4096)));
  }
}

TEST(PackPace, CallsEachTimeThatSoMuchWasDone) {
  int calls = 0;
  const PackPause pause = [&calls]() -> Result<void> {
    if (++calls == 3) return Error{ErrorCode::kAborted, "enough"};
    return {};
  };
  PackPace pace(pause);
  EXPECT_TRUE(pace.did(PackPace::kBytes - 1));
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(pace.did(1));
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(pace.did(PackPace::kBytes));
  EXPECT_FALSE(pace.did(PackPace::kBytes));
}

TEST(PackTracks, AtTheirBoundsAreTaken) {
  EXPECT_TRUE(check_pack_tracks(std::vector<PackTrack>(4, {.bytes = 1u << 30})));
  EXPECT_TRUE(check_pack_tracks(std::vector<PackTrack>(1u << 16)));
  EXPECT_TRUE(check_pack_tracks(
      std::vector<PackTrack>{{.bytes = 1u << 20,
                              .used = 12800,
                              .payloads = {{.at = 0, .blocks = 1}, {.at = 4608, .blocks = 2}}}}));
}

}  // namespace
}  // namespace mariner::logging
