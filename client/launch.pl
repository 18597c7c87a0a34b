# Starts a user by the client server and stands in for it: passes signals on to it, and ends as it ends.
#
#     perl launch.pl SERVER PYTHON PROGRAM [ARG ...]
#
# The server reads the command, the environment, the working directory and the outputs of the user from this process's
# folder in /proc. It answers "pid N", then "exit N" or "signal N"; just "exit 126" if it cannot start the user; or
# "plain" for a command that it does not start.
# If SERVER is empty, the command is run without it. Ends with 113 if the server has ended.
# No modules: they take longer than all the rest.
my ($server, @command) = @ARGV;
my ($connection, $user, $asked);
my $watched = '';

sub run_plainly { exec { $command[0] } @command; exit 127 }

run_plainly() if $server eq '';
# 1, 1, 0: AF_UNIX, SOCK_STREAM; a name that begins with a zero byte is in no folder.
exit 113 unless socket($connection, 1, 1, 0) && connect($connection, pack('S x a*', 1, $server));
$SIG{PIPE} = 'IGNORE';
$SIG{$_} = sub { $asked = $_[0]; kill $asked, $user if $user } for qw(TERM INT HUP);
# 1, 17: SOL_SOCKET, SO_PEERCRED, a process id and an account; another account could have taken the name.
exit 113 unless (unpack 'i3', getsockopt($connection, 1, 17))[1] == $>;
exit 113 unless syswrite($connection, "start\n");
vec($watched, fileno $connection, 1) = 1;
for (my $waited_s = 0;;) {
    # A signal that comes just before a wait is noted only after it: no wait is long.
    my $ready = select(my $readable = $watched, undef, undef, 2);
    exit 113 if !$user && $ready == 0 && ($waited_s += 2) >= 20;
    next if $ready <= 0;
    exit 113 unless sysread($connection, my $answers, 64);
    for (split /\n/, $answers) {
        run_plainly() if $_ eq 'plain';
        exit $1 if /^exit (\d+)/;
        if (/^signal (\d+)/) { $SIG{$_} = 'DEFAULT' for qw(TERM INT HUP PIPE); kill $1, $$ }
        if (/^pid (\d+)/) { $user = $1; kill $asked, $user if $asked }
    }
}
