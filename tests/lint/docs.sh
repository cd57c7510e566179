#!/usr/bin/env bash
# README.md has at most 150 lines and a folder's README at most 60; every relative link of a page leads to a file, and
# to a heading of it where it names one; lines end by column 120, but those of tables and blocks.
set -euo pipefail
perl -CSD -e '
  my ($bad, %headings) = (0);
  sub bad { print "@_\n"; $bad = 1 }
  sub lines_of { my ($file) = @_; open(my $in, "<", $file) or return (); chomp(my @lines = <$in>); @lines }
  sub headings_of {
    my ($file) = @_;
    $headings{$file} //= { map { my $slug = lc; $slug =~ s/[^\w\- ]//g; $slug =~ s/ /-/g; ($slug => 1) }
                           map { /^#+ +(.*?) *$/ ? $1 : () } lines_of($file) };
  }
  for my $file (split /\n/, `git ls-files -co --exclude-standard -- "*.md"`) {
    next unless -e $file;
    my @lines = lines_of($file);
    my $most = $file eq "README.md" ? 150 : $file =~ m{/README\.md$} ? 60 : 0;
    bad("$file: " . @lines . " lines are more than $most") if $most && @lines > $most;
    (my $folder = $file) =~ s{[^/]*$}{};
    my $block = 0;
    for my $i (0 .. $#lines) {
      my $line = $lines[$i];
      $block = !$block, next if $line =~ /^ *```/;
      next if $block;
      my $where = "$file:" . ($i + 1);
      bad("$where: " . length($line) . " columns are more than 120") if length($line) > 120 && $line !~ /^\|/ && $file ne "ops/OPS.md";
      $line =~ s/`[^`]*`//g;
      while ($line =~ /\]\(([^)\s]+)\)/g) {
        my ($target, $anchor) = split /#/, $1, 2;
        next if $target =~ /^[a-z]+:/;
        my $to = $target eq "" ? $file : $folder . $target;
        1 while $to =~ s{(^|/)(?!\.\./)[^/]+/\.\./}{$1};
        if (!-e $to) { bad("$where: there is no $to") }
        elsif (defined $anchor && !headings_of($to)->{$anchor}) { bad("$where: $to has no heading #$anchor") }
      }
    }
  }
  exit $bad;
'
