// Who may use which target, and where: the access lists, accounts and redirections of the volumes,
// which the views of a volume share with it; and how far a copy reaches.
//
// What the configuration says of a volume it declares is said there and nowhere else; of every
// other volume commands decide. Loop's thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/iscsi/target_directory.h"
#include "server/node/accounts.h"
#include "server/node/config.h"
#include "server/node/view_set.h"
#include "server/node/volume_set.h"

namespace mariner::node {

// Whether the volume's access list lets this initiator in. `initiator` is in lower case, as a login
// gives it (RFC 7143 4.2.7.2).
[[nodiscard]] bool admits(const meta::Volume& volume, std::string_view initiator);
// Whether a discovery tells of it. Who has logged in for discovery sees what that account opens,
// and what needs none; empty: nobody had to.
[[nodiscard]] bool shown(const meta::Volume& volume, std::string_view initiator,
                         std::string_view account);
// Those of `names` that there are. kUnavailable when there is none of several: an account that the
// configuration does not have any more lets nobody in.
[[nodiscard]] Result<std::vector<iscsi::ChapAccount>> accounts_named(
    const Accounts& accounts, const std::vector<std::string>& names);

class Access {
 public:
  // Bounds of one volume's lists.
  static constexpr int kInitiatorsMax = 1024;
  static constexpr int kAccountsMax = 64;

  struct Parts {  // all outlive this
    const Config& config;
    const std::string& config_path;
    const Accounts& accounts;
    VolumeSet& volumes;
    ViewSet& views;
    MetaStore& store;
  };
  explicit Access(const Parts& parts) : parts_(parts) {}

  // As iscsi::TargetDirectory has them.
  [[nodiscard]] std::vector<std::string> discoverable(std::string_view initiator,
                                                      std::string_view account) const;
  [[nodiscard]] Result<std::shared_ptr<scsi::TargetDevice>> open(std::string_view target,
                                                                 std::string_view initiator) const;
  [[nodiscard]] std::optional<iscsi::Redirection> redirection(std::string_view target) const;
  [[nodiscard]] Result<std::vector<iscsi::ChapAccount>> accounts(std::string_view target) const;

  // The unit that an initiator of volume `from` may copy from or to; null if there is none.
  [[nodiscard]] std::shared_ptr<scsi::CopyUnit> find_copy_unit(
      std::uint32_t from, const scsi::CopyTarget& target,
      const scsi::InitiatorPort& initiator) const;

  // The volume of a target: its own, or that of a view. Null if there is no such target.
  [[nodiscard]] const ServedVolume* volume_of(std::string_view target) const;
  // Whether an initiator that has logged in to `target` may not use it any more.
  [[nodiscard]] bool forbids(std::string_view target, std::string_view initiator) const;

  // The file that declares this volume; empty if none does.
  [[nodiscard]] std::string declared_in(const ServedVolume& volume) const;
  // kReadOnly if the configuration declares the volume: it names the file and the key to change.
  [[nodiscard]] Result<void> check_changeable(const ServedVolume& volume,
                                              std::string_view key) const;
  [[nodiscard]] Result<void> check_account(const std::string& name) const;
  // From now on `changed`, the record of `volume` with other access, holds; durable on return.
  Result<void> change(ServedVolume& volume, const meta::Volume& changed);
  // The same, as the configuration declares it.
  Result<void> declare(ServedVolume& volume, const VolumeConfig& wanted);

 private:
  [[nodiscard]] static bool may_reach(const ServedVolume& from, const ServedVolume& to,
                                      const scsi::InitiatorPort& initiator);

  const Parts parts_;
};

}  // namespace mariner::node
