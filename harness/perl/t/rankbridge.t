# The helper for Perl, tested by Test::More: `prove -Ilib t`.

use strict;
use warnings;
use RankBridge;
use Test::More;

my $gang = RankBridge->open(size => 3, backend => 'gloo');
$gang->ask(create => {name => 'x', dtype => 'float32', shape => [2], fill => 'rank'});

$gang->ask(call => {call => 'all_reduce', of => 'x', as => 'y'});
is_deeply $gang->ask(get => {name => 'y'})->{ranks}{1}{values}, [3, 3], 'a sum';

eval { $gang->ask(call => {call => 'all_reduce', of => 'x', but => {1 => {op => 'max'}}}) };
is $@->{code}, 'MISMATCH', 'a call that fails throws';
my @other = map { $_->{rank} } grep { $_->{state} eq 'disagrees' } @{$@->{ranks}{0}{ranks}};
is_deeply \@other, [1], 'who asks for something else is named';

my $barrier = $gang->begin(call => {call => 'barrier', absent => [2], timeout_ms => 60000});
$gang->ask(fault => {kill => [2], at => 'waiting'});
eval { $gang->wait_for($barrier) };
is $@->{ranks}{0}{ranks}[0]{rank}, 2, 'who is killed is named while others wait';
is_deeply $gang->ask('form')->{replaced}, [2], 'it is replaced';
ok $gang->ask(call => {call => 'barrier', expect => {ok => JSON::PP::true}}), 'the gang is whole';
# Events come beside the answers, and may come later.
$gang->ask(call => {call => 'barrier'}) until grep { $_->{event} eq 'replaced' } @{$gang->{events}};
is $gang->close, 0, 'the driver ends well';

done_testing;
