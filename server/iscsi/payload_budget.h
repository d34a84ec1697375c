// What the commands of one initiator hold in memory, over all of its sessions: one bound for each
// initiator, so that many sessions do not multiply it.
//
// Unsolicited data comes whether or not there is room for its command. What is kept of it for
// commands that wait counts, too: less is left for those that are admitted, but for one, so that
// the data of waiting commands alone never stops them all. It may hold a quarter of the bound where
// the admitted hold all of it, so that the whole never exceeds five quarters and a command. So does
// the data of other requests that wait for those before them.
//
// A session that finds no room waits here and is called when there may be some again, at the end of
// a turn (feed()) and never from within another session's work. Executor's thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace mariner::iscsi {

class Session;

class PayloadBudget {
 public:
  using Starved = std::vector<std::weak_ptr<Session>>;

  // `starved` is the list that wait() adds to.
  PayloadBudget(std::uint64_t bytes_max, std::shared_ptr<Starved> starved);

  // A command that is to be admitted; larger than the budget, it fits where no other is.
  // `kept_bytes` of it are kept already.
  [[nodiscard]] bool fits(std::uint64_t bytes, std::uint64_t kept_bytes = 0) const {
    return used_ == 0 || used_ + kept_ - kept_bytes + bytes <= bytes_max_;
  }
  // Unsolicited data of a command that waits; false: there is no room, and nothing was counted.
  [[nodiscard]] bool keep(std::uint64_t bytes) {
    if (kept_ + bytes > bytes_max_ / 4 && used_ + kept_ + bytes > bytes_max_) return false;
    kept_ += bytes;
    return true;
  }
  // It does not wait any more.
  void unkeep(std::uint64_t bytes);
  // What held `before` bytes holds `after`.
  void change(std::uint64_t before, std::uint64_t after);
  // Session::budget_freed() is called when there may be room, once.
  void wait(std::weak_ptr<Session> session) { starved_->push_back(std::move(session)); }

  // By admitted commands and what waits to be sent; by commands that wait.
  [[nodiscard]] std::uint64_t used() const { return used_; }
  [[nodiscard]] std::uint64_t kept() const { return kept_; }

 private:
  const std::uint64_t bytes_max_;
  const std::shared_ptr<Starved> starved_;
  std::uint64_t used_ = 0;
  std::uint64_t kept_ = 0;
};

// What is kept, for as long as this lives.
class KeptBytes {
 public:
  KeptBytes() = default;
  // PayloadBudget::keep() has been true for these.
  KeptBytes(std::shared_ptr<PayloadBudget> budget, std::uint64_t bytes)
      : budget_(std::move(budget)), bytes_(bytes) {}
  KeptBytes(KeptBytes&& other) noexcept = default;
  KeptBytes& operator=(KeptBytes&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~KeptBytes() {
    if (budget_) budget_->unkeep(bytes_);
  }

 private:
  std::shared_ptr<PayloadBudget> budget_;  // null: nothing
  std::uint64_t bytes_ = 0;
};

class PayloadBudgets {
 public:
  explicit PayloadBudgets(std::uint64_t initiator_bytes_max) : bytes_max_(initiator_bytes_max) {}

  // The budget of this initiator; the same one while a session holds it.
  [[nodiscard]] std::shared_ptr<PayloadBudget> of(const std::string& initiator);
  // Calls each session that has waited since the last time.
  void feed();

 private:
  const std::uint64_t bytes_max_;
  const std::shared_ptr<PayloadBudget::Starved> starved_ =
      std::make_shared<PayloadBudget::Starved>();
  std::map<std::string, std::weak_ptr<PayloadBudget>> budgets_;
};

}  // namespace mariner::iscsi
