package main

import (
	"fmt"
	"os"
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

// So many links there can be; those of two providers on a machine begin apart.
const linkCount, linksApart = 1 << 15, 64

// newLink gives the addresses of the n-th link, from the range that RFC 2544 sets aside for benchmarks.
func newLink(n int) *link {
	n %= linkCount
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

// closed is the whole range; by its metric it goes behind any way that somebody else has given it.
const closed = "unreachable 198.19.0.0/16 metric 4242"

// closeRange makes the addresses of replicas that are gone refuse at once; what is sent to one would else take the way
// to other machines, and wait. The links of replicas go before it.
func closeRange() error { return batch("route replace "+closed+"\n", "ip") }

// openRange undoes closeRange.
func openRange() { _ = batch("route del "+closed+"\n", "ip") }

// netns is a replica's network namespace, by the id of one process in it; 0 is none of its own.
type netns int

// Traffic of a replica since its start.
type Traffic struct{ ReceivedBytes, SentBytes float64 }

// traffic reads what came in and went out by the namespace's one link; false where that cannot be known.
func (n netns) traffic() (Traffic, bool) {
	if n == 0 {
		return Traffic{}, false
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", n))
	if err != nil {
		return Traffic{}, false
	}
	for line := range strings.Lines(string(text)) {
		device, counts, found := strings.Cut(line, ":")
		// Of the counts the first is of bytes received, the ninth of bytes sent.
		words := strings.Fields(counts)
		if !found || strings.TrimSpace(device) != "eth0" || len(words) < 9 {
			continue
		}
		received, receivedError := strconv.ParseFloat(words[0], 64)
		sent, sentError := strconv.ParseFloat(words[8], 64)
		return Traffic{received, sent}, receivedError == nil && sentError == nil
	}
	return Traffic{}, false
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
