#include "proto/unique_function.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

namespace mariner {
namespace {

// Counts how many of it live, in one of two sizes: within the function, and on the heap.
template <std::size_t kBytes>
struct Counted {
  explicit Counted(int& count) : live(&count) { ++*live; }
  Counted(Counted&& other) noexcept : live(other.live) { ++*live; }
  Counted(const Counted&) = delete;
  Counted& operator=(Counted&&) = delete;
  ~Counted() { --*live; }
  int operator()(int n) const { return n + 1; }
  int* live;
  std::array<std::byte, kBytes> ballast{};
};

template <typename C>
class UniqueFunctionTest : public ::testing::Test {};
using Sizes = ::testing::Types<Counted<8>, Counted<500>>;
TYPED_TEST_SUITE(UniqueFunctionTest, Sizes);

TYPED_TEST(UniqueFunctionTest, CallsAndDestroysOnce) {
  int live = 0;
  {
    UniqueFunction<int(int)> f = TypeParam(live);
    EXPECT_EQ(live, 1);
    EXPECT_TRUE(f);
    EXPECT_EQ(f(1), 2);
    EXPECT_EQ(f(2), 3);
  }
  EXPECT_EQ(live, 0);
}

TYPED_TEST(UniqueFunctionTest, MovesAndLeavesNothingBehind) {
  int live = 0;
  UniqueFunction<int(int)> from = TypeParam(live);
  UniqueFunction<int(int)> to = std::move(from);
  EXPECT_FALSE(from);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(to(1), 2);
  EXPECT_EQ(live, 1);
  int other = 0;
  to = TypeParam(other);
  EXPECT_EQ(live, 0);
  EXPECT_EQ(other, 1);
  UniqueFunction<int(int)>& same = to;
  to = std::move(same);
  EXPECT_EQ(to(4), 5);
  to.reset();
  EXPECT_FALSE(to);
  EXPECT_EQ(other, 0);
}

TEST(UniqueFunction, TakesWhatCannotBeCopied) {
  UniqueFunction<std::unique_ptr<int>(std::unique_ptr<int>)> f =
      [held = std::make_unique<int>(2)](std::unique_ptr<int> given) {
        return std::make_unique<int>(*held + *given);
      };
  EXPECT_EQ(*f(std::make_unique<int>(3)), 5);
}

TEST(UniqueFunction, ArgumentsByReferenceArriveAsSuch) {
  UniqueFunction<void(std::string&, const std::string&)> f = [](std::string& a,
                                                                const std::string& b) { a += b; };
  std::string text = "a";
  f(text, "b");
  EXPECT_EQ(text, "ab");
}

TEST(UniqueFunction, MayDropWhatItReturns) {
  int called = 0;
  UniqueFunction<void()> f = [&called] { return ++called; };
  f();
  EXPECT_EQ(called, 1);
}

TEST(UniqueFunction, NullIsEmpty) {
  const UniqueFunction<void()> none = nullptr;
  EXPECT_FALSE(none);
}

TEST(UniqueFunctionDeath, CallingNothingIsABug) {
  UniqueFunction<void()> none;
  EXPECT_DEATH(none(), "CHECK failed");
}

}  // namespace
}  // namespace mariner
