# Reads the fenced blocks of a Markdown page. A block begins with a fence, three backquotes and an info string:
#   sh                    commands, which the page's test runs
#   sh no-test: REASON    commands that it does not run
#   cpp                   a whole program, with a main(): a target and a test of its own
#   cpp fragment          a part of one
# and any other info string for what nobody runs. -v want=sh prints the page with all other lines blank, so that a line
# keeps its number; -v want=cpp prints the programs, each after a line "#line N PAGE". -v page=NAME is for messages.
function refuse(why) {
  printf "%s:%d: %s\n", page, FNR, why > "/dev/stderr"
  bad = 1
}
/^ *```/ && !inside {
  info = $0
  sub(/^ *```/, "", info)
  inside = 1
  kind = info
  sub(/ .*/, "", kind)
  if (info == "") refuse("a fence without an info string: use text for what a program prints")
  if (kind == "bash" || kind == "shell" || kind == "console") refuse("commands are in blocks of sh")
  if (kind == "sh" && info != "sh" && info !~ /^sh no-test: ./) refuse("after sh only \"no-test: REASON\" may follow")
  if (kind == "cpp" && info != "cpp" && info != "cpp fragment") refuse("after cpp only \"fragment\" may follow")
  if (want == "sh" && info ~ /^sh no-test/) printf "%s:%d: not run, %s\n", page, FNR, substr(info, 13) > "/dev/stderr"
  text = "#line " FNR + 1 " \"" page "\"\n"
  if (want == "sh") print ""
  next
}
/^ *```/ && inside {
  inside = 0
  if (info == "cpp" && text !~ /int main\(/) refuse("no main() above: a fragment has the info string cpp fragment")
  if (want == "cpp" && info == "cpp") printf "%s", text
  if (want == "sh") print ""
  next
}
{
  if (inside) text = text $0 "\n"
  if (want == "sh") print(inside && info == "sh" ? $0 : "")
}
END {
  if (inside) refuse("a block does not end")
  exit bad
}
