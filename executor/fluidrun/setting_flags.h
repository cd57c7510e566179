#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ops/op_def.h"

namespace CLI {
class App;
}

namespace fluid {

/// A command line flag for a setting that one or more optimizers or schedules have.
struct SettingFlag {
  std::string flag;                ///< name of the flag, such as "--weight-decay"
  Attr kind;                       ///< a value of the setting's type; only the type matters
  std::string text;                ///< value on the command line; empty: not given
  std::optional<bool> is_on = {};  ///< value of a bool setting; nullopt: not given

  bool is_given() const { return is_on.has_value() || !text.empty(); }
  /// The flag as given: "--weight-decay 0.1" or "--amsgrad".
  std::string given() const;
  Attr value() const;
};
using SettingFlags = std::map<std::string, SettingFlag>;  ///< setting name -> flag

/// An optimizer or a schedule, and its settings.
struct SettingOwner {
  std::string name;
  std::vector<AttrDef> settings;
};

/// The flag of a setting: "--weight-decay" for "weight_decay".
std::string flag_of(std::string setting);

/// Adds a flag named `flag_of_setting(setting)` for each setting. The help text of the flag names
/// the optimizers or schedules (`owners`) that have the setting.
void add_setting_flags(CLI::App& command, const std::vector<SettingOwner>& owners,
                       const std::function<std::string(const std::string&)>& flag_of_setting,
                       SettingFlags& flags);

/// Joins names: "a, b, c".
std::string list_of(const std::vector<std::string>& names);

}  // namespace fluid
