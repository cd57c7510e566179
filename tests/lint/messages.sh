#!/usr/bin/env bash
# Every message that a user may get is thrown by a test: messages.sh FILE, in which thrown_messages.so
# logged the messages of a whole run of the tests. For each call of require(), fail(), damaged(), unexpected()
# and UserError() in the source folders, a logged message contains the longest piece of the call's text.
set -euo pipefail
if [ $# != 1 ]; then
  echo "skipped: needs the messages that a run of all tests throws (scripts/test logs them)"
  exit 77
fi
perl -0777 -e '
  my $bad = 0;
  open(my $log, "<", $ARGV[0]) or die "$ARGV[0]: $!\n";
  my $thrown = <$log>;
  my $folders = "ir ops passes codegen frontend executor";
  for my $file (split /\n/, `git ls-files -co --exclude-standard $folders`) {
    next unless $file =~ /\.(cpp|h)$/ && $file !~ m{^ops/tools/} && open(my $in, "<", $file);
    my $text = <$in>;
    $text =~ s/^#else\n.*?^#endif//gms;  # of builds with other options
    my $named = qr/fail|require|damaged|unexpected|UserError/;
    while ($text =~ /\b(?:$named)(\((?:[^()"]|"(?:[^"\\]|\\.)*"|(?1))*\))/g) {
      (my $call = $1) =~ s/"\s*\n\s*"//g;
      my @texts = map { s/\\(["\\])/$1/gr } $call =~ /"((?:[^"\\]|\\.)*)"/g;
      my @pieces = map { s/^[^\w\\]+|\W+$//gr } map { split /\{[^{}]*\}/ } @texts;
      my ($piece) = sort { length $b <=> length $a } @pieces;
      next if length($piece // "") < 8 || index($thrown, $piece) >= 0;
      print "$file: no test throws \"$piece\"\n";
      $bad = 1;
    }
  }
  exit $bad;
' "$1"
