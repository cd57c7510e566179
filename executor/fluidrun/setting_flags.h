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

/// The command line flag for a setting of one or more optimizers or schedules.
struct SettingFlag {
  std::string flag;                ///< name of the flag, such as "--weight-decay"
  Attr kind;                       ///< any value of the setting's type
  std::string text;                ///< value on the command line; empty: not given
  std::optional<bool> is_on = {};  ///< value of a bool setting; nullopt: not given

  bool is_set() const { return is_on.has_value() || !text.empty(); }
  /// The flag as on the command line: "--weight-decay 0.1" or "--amsgrad".
  std::string command_line_text() const;
  Attr value() const;
};
using SettingFlags = std::map<std::string, SettingFlag>;  ///< setting name -> flag

/// The name and the settings of an optimizer or a schedule.
struct NamedSettings {
  std::string name;
  std::vector<AttrDef> settings;
};

/// The flag of a setting: "--weight-decay" for "weight_decay".
std::string flag_of(std::string setting);

/// Adds one flag per setting of `choices`, which are optimizers or schedules. The flag is named
/// `flag_of_setting(setting)`. Its help text names the choices that have the setting.
void add_setting_flags(CLI::App& command, const std::vector<NamedSettings>& choices,
                       const std::function<std::string(const std::string&)>& flag_of_setting,
                       SettingFlags& flags);

/// Joins names: "a, b, c".
std::string join_names(const std::vector<std::string>& names);

}  // namespace fluid
