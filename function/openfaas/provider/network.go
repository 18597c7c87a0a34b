package main

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// link is a pair of virtual interfaces between this machine and one replica's network namespace. It goes with the
// namespace, which goes with the replica: there is nothing to clean up, even after a crash.
type link struct {
	name string // the end on this side
	host string // address of the end on this side
	peer string // address of the replica
}

// newLink gives the addresses of the n-th link, from the range that RFC 2544 sets aside for benchmarks.
func newLink(n int) *link {
	n %= 1 << 15
	return &link{
		name: fmt.Sprintf("fs-fn%d", n),
		host: fmt.Sprintf("198.19.%d.%d", n>>7, n<<1&0xff),
		peer: fmt.Sprintf("198.19.%d.%d", n>>7, n<<1&0xff|1),
	}
}

// connect puts the link between this machine and the namespace of a process.
func (l *link) connect(pid int) error {
	here := fmt.Sprintf("link add %s type veth peer name eth0 netns %d\naddr add %s/31 dev %s\nlink set %s up\n",
		l.name, pid, l.host, l.name, l.name)
	there := fmt.Sprintf("addr add %s/31 dev eth0\nlink set eth0 up\nlink set lo up\n", l.peer)
	if err := batch(here, "ip"); err != nil {
		return err
	}
	return batch(there, "nsenter", "--target", strconv.Itoa(pid), "--net", "ip")
}

func batch(lines string, command ...string) error {
	command = append(command, "-batch", "-")
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin = strings.NewReader(lines)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}
