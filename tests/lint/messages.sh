#!/usr/bin/env bash
# Every message that an op may give stands in a test: for each call of require(), fail() and
# UserError() under ops/ the longest part of its text.
set -euo pipefail
perl -0777 -e '
  my ($tests, $bad) = ("", 0);
  for my $file (split /\n/, `git ls-files -co --exclude-standard tests`) {
    next unless $file =~ /\.(cpp|h|fir)$/ && open(my $in, "<", $file);
    $tests .= <$in>;
  }
  $tests =~ s/"\s*\n\s*"//g;
  for my $file (split /\n/, `git ls-files -co --exclude-standard "ops/*.cpp"`) {
    next if $file =~ m{^ops/tools/} || !open(my $in, "<", $file);
    my $text = <$in>;
    while ($text =~ /\b(?:fail|require|UserError)(\((?:[^()"]|"(?:[^"\\]|\\.)*"|(?1))*\))/g) {
      (my $call = $1) =~ s/"\s*\n\s*"//g;
      my @parts = map { s/^[^\w\\]+|\W+$//gr } $call =~ /"((?:[^"\\]|\\.)*)"/g;
      my ($part) = sort { length $b <=> length $a } @parts;
      next if length($part // "") < 8 || index($tests, $part) >= 0;
      print "$file: no test gives \"$part\"\n";
      $bad = 1;
    }
  }
  exit $bad;
'
