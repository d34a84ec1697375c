#include "ifsck/program/fsck_report.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <vector>

#include "server/client/quantity.h"
#include "server/client/table.h"
#include "server/client/time_text.h"

namespace mariner::ifsck {
namespace {

// What was done about each finding.
class Repairs {
 public:
  explicit Repairs(const MomentReport& report)
      : listed_(report.findings.begin(), report.findings.end()) {
    for (const Repair& each : report.repairs) {
      done_.emplace(each.finding, &each);
      // Found when others were mended.
      if (!listed_.contains(each.finding)) later_.push_back(&each);
    }
  }
  // Null: nothing.
  [[nodiscard]] const Repair* of(const Finding& finding) const {
    const auto found = done_.find(finding);
    return found == done_.end() ? nullptr : found->second;
  }
  [[nodiscard]] const std::vector<const Repair*>& later() const { return later_; }

 private:
  std::set<Finding> listed_;
  std::map<Finding, const Repair*> done_;
  std::vector<const Repair*> later_;
};

void put(const Finding& finding, const Repair* repair, api::FsckFinding& to) {
  to.set_code(std::string(finding_code_name(finding.code)));
  to.set_meaning(describe(finding));
  to.set_inode(finding.inode);
  to.set_block(finding.block);
  to.set_group(finding.group);
  to.set_expected(finding.expected);
  to.set_found(finding.found);
  if (repair != nullptr) to.set_repair(std::string(repair_text(repair->done)));
}

std::string colored(const client::Console& console, Verdict verdict) {
  const std::string name(verdict_name(verdict));
  switch (verdict) {
    case Verdict::kClean: return console.green(name);
    case Verdict::kRepairable: return console.yellow(name);
    case Verdict::kDamaged: return console.red(name);
  }
  return name;
}

std::string journal_text(const MomentReport& report) {
  const Replay& replay = report.replay;
  if (!report.journal_damage.empty()) return "given up: " + report.journal_damage;
  if (!replay.needed) return "nothing to replay";
  std::string text =
      fmt::format("replayed: {} transactions, {} blocks", replay.transactions, replay.blocks);
  if (replay.revoked > 0) text += fmt::format(", {} revoked", replay.revoked);
  if (replay.fast_commits > 0) {
    text += fmt::format(", {} fast commits of {} operations", replay.fast_commits,
                        replay.fast_operations);
  }
  if (replay.cut) text += "; it ends within a transaction";
  return text;
}

std::string looked_at(const MomentReport& report) {
  if (report.full) return fmt::format("everything; {} blocks read", report.read.blocks_read);
  return fmt::format("what changed from #{} on: {} blocks; {} read", report.since.value,
                     report.changed_blocks, report.read.blocks_read);
}

}  // namespace

api::Moment to_message(const client::Context& context, SequenceNumber at, VersionTime time) {
  api::Moment moment;
  moment.set_sequence(at.value);
  moment.set_time_ns(time.ns);
  if (time.ns != 0) {
    moment.set_utc(context.utc_time(time.ns));
    moment.set_local(context.local_time(time.ns));
  }
  return moment;
}

api::FsckReport to_message(const client::Context& context, const CheckedMoment& checked) {
  const MomentReport& report = checked.report;
  api::FsckReport to;
  to.set_volume(checked.name);
  *to.mutable_at() = to_message(context, report.at, report.time);
  to.set_level(report.level);
  to.set_path(checked.path);
  to.set_verdict(std::string(verdict_name(report.verdict)));
  auto& journal = *to.mutable_journal();
  journal.set_needed(report.replay.needed);
  journal.set_transactions(report.replay.transactions);
  journal.set_blocks(report.replay.blocks);
  journal.set_revoked(report.replay.revoked);
  journal.set_fast_commits(report.replay.fast_commits);
  journal.set_cut(report.replay.cut);
  journal.set_given_up(report.journal_damage);
  to.set_full(report.full);
  to.set_since(report.since.value);
  to.set_changed_blocks(report.changed_blocks);
  to.set_findings_all(report.findings_all);
  const Repairs repairs(report);
  for (const Finding& each : report.findings) put(each, repairs.of(each), *to.add_findings());
  for (const Repair* each : repairs.later()) put(each->finding, each, *to.add_findings());
  for (const CompletedOperation& each : report.completed) to.add_completed(describe(each));
  to.set_completed_as_of(report.completed_as_of.value);
  to.set_undone_because(report.undone_because);
  for (const Finding& each : report.left) put(each, nullptr, *to.add_left());
  to.set_blocks_mended(report.blocks_mended);
  to.set_blocks_read(report.read.blocks_read);
  to.set_questions(report.read.questions);
  to.set_duration_ns(static_cast<std::uint64_t>(checked.took.count()));
  return to;
}

std::string to_text(const client::Context& context, const CheckedMoment& checked) {
  const MomentReport& report = checked.report;
  const client::Console& console = context.console;
  client::Facts facts;
  facts.add("moment",
            checked.name + "  " + context.moment(to_message(context, report.at, report.time)));
  facts.add("journal", journal_text(report));
  facts.add("looked at", looked_at(report));
  facts.add("took", format_duration(checked.took));
  std::string text = facts.text(console);
  if (report.findings_all > 0) {
    text += "\n";
    const Repairs repairs(report);
    for (const Finding& each : report.findings) {
      const Repair* const repair = repairs.of(each);
      text += fmt::format("{}  {}{}\n", console.dim(finding_code_name(each.code)), describe(each),
                          repair == nullptr ? "" : ": " + std::string(repair_text(repair->done)));
    }
    if (report.findings_all > report.findings.size()) {
      text += fmt::format("and {} more\n", report.findings_all - report.findings.size());
    }
    for (const Repair* each : repairs.later()) {
      text += fmt::format("{}  {}\n", console.dim(finding_code_name(each->finding.code)),
                          describe(*each));
    }
  }
  if (!report.completed.empty()) {
    text +=
        fmt::format("\nWas under way, and is complete as of #{}:\n", report.completed_as_of.value);
    for (const CompletedOperation& each : report.completed) text += describe(each) + "\n";
  }
  if (!report.undone_because.empty()) {
    text += fmt::format("\nWhat was under way was undone: {}\n", report.undone_because);
  }
  if (!report.left.empty()) {
    text += "\nCannot be mended:\n";
    for (const Finding& each : report.left) {
      text += fmt::format("{}  {}\n", console.dim(finding_code_name(each.code)), describe(each));
    }
  }
  text += fmt::format("\n{}: {} findings, {} blocks mended\n", colored(console, report.verdict),
                      report.findings_all, report.blocks_mended);
  return text;
}

}  // namespace mariner::ifsck
