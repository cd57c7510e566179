#!/usr/bin/env bash
# Every message that a user may get stands in a test: of each call of require(), fail(), damaged(),
# unexpected() and UserError() in the source folders the longest part of its text.
set -euo pipefail
perl -0777 -e '
  my ($tests, $bad) = ("", 0);
  for my $file (split /\n/, `git ls-files -co --exclude-standard tests`) {
    next unless $file =~ /\.(cpp|h|fir|sh)$/ && open(my $in, "<", $file);
    $tests .= <$in>;
  }
  $tests =~ s/"\s*\n\s*"//g;
  my $folders = "ir ops passes codegen frontend executor";
  for my $file (split /\n/, `git ls-files -co --exclude-standard $folders`) {
    next unless $file =~ /\.(cpp|h)$/ && $file !~ m{^ops/tools/} && open(my $in, "<", $file);
    my $text = <$in>;
    my $named = qr/fail|require|damaged|unexpected|UserError/;
    while ($text =~ /\b(?:$named)(\((?:[^()"]|"(?:[^"\\]|\\.)*"|(?1))*\))/g) {
      (my $call = $1) =~ s/"\s*\n\s*"//g;
      my @texts = $call =~ /"((?:[^"\\]|\\.)*)"/g;
      my @parts = map { s/^[^\w\\]+|\W+$//gr } map { split /\{[^{}]*\}/ } @texts;
      my ($part) = sort { length $b <=> length $a } @parts;
      next if length($part // "") < 8 || index($tests, $part) >= 0;
      print "$file: no test gives \"$part\"\n";
      $bad = 1;
    }
  }
  exit $bad;
'
