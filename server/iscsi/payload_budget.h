// What the commands of one initiator hold in memory, over all of its sessions: one bound for each
// initiator, so that many sessions do not multiply it.
//
// A session that finds no room waits here and is called when there may be some again, at the end of
// a turn (feed()) and never from within another session's work. Executor's thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace mariner::iscsi {

class Session;

class PayloadBudget {
 public:
  using Starved = std::vector<std::weak_ptr<Session>>;

  // `starved` is the list that wait() adds to.
  PayloadBudget(std::uint64_t bytes_max, std::shared_ptr<Starved> starved);

  // A command that is larger than the budget fits where nothing is held.
  [[nodiscard]] bool fits(std::uint64_t bytes) const {
    return used_ == 0 || used_ + bytes <= bytes_max_;
  }
  // What held `before` bytes holds `after`.
  void change(std::uint64_t before, std::uint64_t after);
  // Session::budget_freed() is called when there may be room, once.
  void wait(std::weak_ptr<Session> session) { starved_->push_back(std::move(session)); }

  [[nodiscard]] std::uint64_t used() const { return used_; }

 private:
  const std::uint64_t bytes_max_;
  const std::shared_ptr<Starved> starved_;
  std::uint64_t used_ = 0;
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
