package RankBridge;

# A gang for tests in Perl. The gang ends with this object, and with this process.
#
#   my $gang = RankBridge->open(size => 4);
#   $gang->ask(create => {name => 'x', dtype => 'float32', shape => [4], fill => 'rank'});
#   $gang->ask(call => {call => 'all_reduce', of => 'x', as => 'y'});
#   $gang->ask(get => {name => 'y'})->{ranks}{1}{values};

use strict;
use warnings;
use IPC::Open2;
use JSON::PP;

# A request that failed is thrown: a hash with code, message, and of calls the errors by rank, in ranks.

sub open {
    my ($class, %options) = @_;
    my $self = bless {count => 0, answers => {}, events => []}, $class;
    $self->{pid} = open2($self->{out}, $self->{in}, $ENV{RANKBRIDGE_COMMAND} // 'rankbridge', 'drive');
    $self->{in}->autoflush(1);
    $self->ask(open => {protocol => 1, %options});
    return $self;
}

# Asks for something, and waits for the answer.
sub ask {
    my ($self, $do, $fields) = @_;
    return $self->wait_for($self->begin($do, $fields));
}

# Asks for something, and gives its id. Calls go on while others are asked for.
sub begin {
    my ($self, $do, $fields) = @_;
    my $id = ++$self->{count};
    local $SIG{PIPE} = 'IGNORE';
    print {$self->{in}} encode_json({%{$fields // {}}, id => $id, do => $do}), "\n";
    return $id;
}

# Waits for the answer to what was begun.
sub wait_for {
    my ($self, $id) = @_;
    until (exists $self->{answers}{$id}) {
        my $line = readline $self->{out};
        die $self->{failure} // {code => 'UNAVAILABLE', message => 'the driver has ended'} unless defined $line;
        my $answer = decode_json($line);
        if (defined $answer->{id}) { $self->{answers}{$answer->{id}} = $answer }
        elsif ($answer->{error}) { $self->{failure} = $answer->{error} }
        else { push @{$self->{events}}, $answer }
    }
    my $answer = delete $self->{answers}{$id};
    die $answer->{error} if $answer->{error};
    return $answer->{ok};
}

# Ends the gang; gives the driver's status.
sub close {
    my ($self) = @_;
    my $pid = delete $self->{pid} or return;
    close $self->{in};
    1 while defined readline $self->{out};
    local $?;
    waitpid $pid, 0;
    return $? >> 8;
}

sub DESTROY { $_[0]->close }

1;
