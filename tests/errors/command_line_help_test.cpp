// --help, completion scripts and man pages: all of them come from the same description of options.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/fluidrun_test.h"

namespace fluid::command_line_help_test {
namespace {

using CommandLineHelp = FluidrunTest;

const std::vector<std::string> kCommands = {
    "train",   "eval",   "predict", "run",  "merge", "quantize", "data",       "launch", "show",
    "summary", "verify", "opt",     "plan", "bench", "devices",  "completion", "man"};
const std::set<std::string> kGroups = {
    "Data",      "Training",    "Optimizer", "Schedule", "Parameters", "Files",  "Compiler",
    "Precision", "Distributed", "Memory",    "Device",   "Debugging",  "General"};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The options in a --help text with their groups. Fails for a line that is too long and for an
/// option without a group or a description.
std::map<std::string, std::string> options_in(const std::string& help) {
  std::map<std::string, std::string> groups;
  std::string group, undescribed;
  const std::regex option("  ((-[a-zA-Z], )?--?[-a-zA-Z0-9]+)(\\[=[A-Z]+\\]| [^ ]+)?(  +(.*))?");
  for (const std::string& line : lines_of(help)) {
    EXPECT_LE(line.size(), 100u) << line;
    if (!undescribed.empty()) {
      EXPECT_TRUE(line.starts_with(std::string(30, ' '))) << undescribed << " has no description";
    }
    undescribed.clear();
    if (!line.empty() && line.front() != ' ') group = line.substr(0, line.size() - 1);
    std::smatch found;
    if (!std::regex_match(line, found, option)) continue;
    const std::string names = found[1];
    EXPECT_TRUE(kGroups.contains(group)) << names << " is in '" << group << "'";
    groups[names.substr(names.rfind(' ') + 1)] = group;
    if (!found[5].matched) undescribed = names;
  }
  return groups;
}

TEST_F(CommandLineHelp, GroupsOptionsWithin100Columns) {
  for (const std::string& command : kCommands) {
    const Result help = run(command + " --help");
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_EQ(options_in(help.output)["--help"], "General") << command;
    EXPECT_NE(help.output.find("\nExamples:\n  "), std::string::npos) << command;
    EXPECT_NE(help.output.find("fluidrun " + command), std::string::npos) << command;
    EXPECT_NE(help.output.find("\nExit codes:\n  0: "), std::string::npos) << command;
    EXPECT_EQ(help.output.find("\nOptions:\n"), std::string::npos) << command;
  }
  std::map<std::string, std::string> train = options_in(run("train --help").output);
  EXPECT_GT(train.size(), 50u);
  for (const auto& [option, group] :
       std::map<std::string, std::string>{{"--data", "Data"},
                                          {"--epochs", "Training"},
                                          {"--save", "Files"},
                                          {"--amp", "Precision"},
                                          {"--zero", "Distributed"},
                                          {"--memory", "Memory"},
                                          {"--place", "Device"},
                                          {"--profile", "Debugging"}}) {
    EXPECT_EQ(train[option], group) << option;
  }
}

TEST_F(CommandLineHelp, ListsCommandsByPurpose) {
  const Result bare = run(""), help = run("--help");
  EXPECT_EQ(bare.code, 1);
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(bare.output, help.output);
  EXPECT_EQ(run("2> /dev/null").output, "");
  options_in(help.output);
  size_t at = 0;
  for (const char* part :
       {"\nTrain and evaluate:\n", "\n  train ", "\n  launch ", "\nInspect:\n", "\n  show ",
        "\nCompile and measure:\n", "\n  opt ", "\nShell and documentation:\n", "\n  man "}) {
    const size_t found = help.output.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << help.output;
    at = found;
  }
  for (const std::string& command : kCommands) {
    EXPECT_NE(help.output.find("\n  " + command + " "), std::string::npos) << command;
  }
}

TEST_F(CommandLineHelp, CompletesInBash) {
  ASSERT_EQ(run("completion bash > script.sh").code, 0);
  const auto complete = [&](const std::string& words) {
    std::ofstream(dir_.file("ask.sh"))
        << "source ./script.sh\nCOMP_WORDS=(" << words << ")\n"
        << "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_fluidrun\necho \"${COMPREPLY[*]}\"\n";
    return run_command("bash -u ask.sh").output;
  };
  EXPECT_EQ(complete("fluidrun tr"), "train\n");
  EXPECT_EQ(complete("fluidrun --ver"), "--version\n");
  EXPECT_EQ(complete("fluidrun train --epo"), "--epochs\n");
  EXPECT_EQ(complete("fluidrun train line.fir --amp o"), "off o1 o2\n");
  EXPECT_EQ(complete("fluidrun train --amp = a"), "auto\n");
  EXPECT_EQ(complete("fluidrun train --amp ="), "off o1 o2 auto\n");
  EXPECT_EQ(complete("fluidrun train --place c"), "cpu cuda\n");
  EXPECT_EQ(complete("fluidrun launch --nproc 2 -- tra"), "train\n");
  EXPECT_EQ(complete("fluidrun launch --nproc 2 -- train --pati"), "--patience\n");
  EXPECT_EQ(complete("fluidrun completion z"), "zsh\n");
  EXPECT_EQ(complete("fluidrun show --format s"), "svg\n");
  EXPECT_EQ(complete("fluidrun train --params li"), "\n");  // readline then completes files
}

TEST_F(CommandLineHelp, CompletesInOtherShells) {
  const std::string zsh = run("completion zsh").output, fish = run("completion fish").output;
  EXPECT_TRUE(zsh.starts_with("#compdef fluidrun\n")) << zsh.substr(0, 80);
  EXPECT_NE(zsh.find("'*--amp["), std::string::npos);
  EXPECT_NE(zsh.find(":(off o1 o2 auto)'"), std::string::npos);
  EXPECT_NE(zsh.find("'*--save["), std::string::npos);
  EXPECT_NE(fish.find("-n '__fish_seen_subcommand_from train' -l amp -x -a 'off o1 o2 auto' -d '"),
            std::string::npos);
  EXPECT_NE(fish.find("-n '__fish_seen_subcommand_from train' -l save -r -F -d '"),
            std::string::npos);
  EXPECT_NE(fish.find("-n '__fish_seen_subcommand_from train' -l resume -d '"), std::string::npos);
  for (const std::string& command : kCommands) {
    EXPECT_NE(zsh.find("\n    " + command + ")\n"), std::string::npos) << command;
    EXPECT_NE(fish.find(" -a " + command + " -d '"), std::string::npos) << command;
  }
  expect_error(
      "completion bsh",
      "no completion script for 'bsh' (did you mean 'bash'?); shells are bash, zsh and fish");
  expect_error("completion", "shell is required");
}

TEST_F(CommandLineHelp, PrintsManPages) {
  const auto plain = [](std::string page) {
    return std::regex_replace(page, std::regex("\\\\f[BIR]|\\\\(?=-)"), "");
  };
  const std::string page = plain(run("man train").output);
  for (const char* part :
       {"\n.TH \"FLUIDRUN-TRAIN\" 1 ", "\n.SH NAME\nfluidrun-train - ",
        "\n.SH SYNOPSIS\nfluidrun train [OPTIONS] program\n", "\n.SH OPTIONS\n.SS \"Data\"\n",
        "\n.SH \"EXAMPLES\"\n.nf\nfluidrun train ",
        "\n.SH \"EXIT STATUS\"\n.nf\n0: ", "\n.SH \"SEE ALSO\"\nfluidrun(1)\n"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part << " in " << page.substr(0, 600);
  }
  for (const auto& [option, group] : options_in(run("train --help").output)) {
    EXPECT_TRUE(std::regex_search(page, std::regex("\n\\.TP\n(-h, )?" + option + "([ [].*)?\n")))
        << option;
    EXPECT_NE(page.find(".SS \"" + group + "\"\n"), std::string::npos) << group;
  }
  const std::string whole = plain(run("man").output);
  for (const std::string& command : kCommands) {
    EXPECT_NE(whole.find("\n.TP\n" + command + "\n"), std::string::npos) << command;
    EXPECT_NE(whole.find("fluidrun-" + command + "(1)"), std::string::npos) << command;
    EXPECT_EQ(run("man " + command + " | grep -c '^\\.TH'").output, "1\n") << command;
    EXPECT_EQ(run("man " + command).output.find("/.cache/fluid ("), std::string::npos) << command;
  }
  expect_error("man trai", "no command 'trai' (did you mean 'train'?)");
}

}  // namespace
}  // namespace fluid::command_line_help_test
