package main

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/openfaas/faas-provider/types"
)

// stopGrace is how long a drained replica may take to end by itself. The classic watchdog would sleep twice its write
// time-out on SIGTERM; once no request is under way there is nothing to wait for.
const stopGrace = 2 * time.Second

// Backend runs replicas of functions.
type Backend interface {
	// Check says by its error what is wrong with an image or with limits, before anything is started.
	Check(d types.FunctionDeployment) error
	// Start starts a replica that is unique by its name; secrets are just this function's, by their names.
	Start(name string, d types.FunctionDeployment, secrets map[string][]byte, output io.Writer) (*Instance, error)
	// Close undoes what the backend changed on the machine, once all its replicas are gone.
	Close()
}

// Instance is a replica as the operating system knows it: a process here, or the client of a container.
type Instance struct {
	Address string // host:port of its HTTP server
	Metrics string // host:port of the watchdog's metrics, if it has a watchdog
	done    chan struct{}
	exit    string // how it ended; to be read after done
	cmd     *exec.Cmd
	own     cgroup // ended with the replica
	stats   cgroup // what its use of CPU and memory is read from
	network netns  // what its traffic is read from; 0 where it has none of its own
	cleanup func()
}

// launch starts the command in the group, with its output as lines to w. prepare runs before it on the thread that
// starts it, which nothing else ever runs on, and may change what a process inherits from its thread. After the
// command's end what is left in the group is ended, and cleanup runs once.
func launch(cmd *exec.Cmd, group cgroup, w io.Writer, prepare func() error, cleanup func()) (*Instance, error) {
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = cmd.Stdout
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	// A killed provider leaves no replica behind.
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	i := &Instance{cmd: cmd, done: make(chan struct{}), own: group, stats: group, cleanup: cleanup}
	started := make(chan error)
	go func() {
		// Pdeathsig fires at the end of the thread that started the process: this one stays as long as the process, and
		// ends with it, as it is never unlocked.
		runtime.LockOSThread()
		err := prepare()
		if err == nil {
			err = group.startIn(cmd)
		}
		started <- err
		if err != nil {
			return
		}
		copied := make(chan struct{})
		go func() { copyLines(w, output); close(copied) }()
		state, _ := cmd.Process.Wait()
		i.exit = fmt.Sprint(state)
		i.kill()
		select {
		case <-copied: // Its last words are the ones that matter.
		case <-time.After(time.Second):
		}
		_ = output.Close()
		i.cleanup()
		close(i.done)
	}()
	if err := <-started; err != nil {
		cleanup()
		return nil, err
	}
	return i, nil
}

func copyLines(w io.Writer, r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), 1<<20)
	for lines.Scan() {
		_, _ = w.Write(lines.Bytes())
	}
	// A line above 1 MB ends the scanner, not the function's output.
	_, _ = io.Copy(io.Discard, r)
}

// kill ends the replica and all it forked.
func (i *Instance) kill() {
	_ = syscall.Kill(-i.cmd.Process.Pid, syscall.SIGKILL)
	i.own.kill()
}

// Stop asks the replica to end, then makes it, and returns when it is gone.
func (i *Instance) Stop() {
	_ = i.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-i.done:
		return
	case <-time.After(stopGrace):
	}
	i.kill()
	<-i.done
}

// pid of the replica's first process.
func (i *Instance) pid() int { return i.cmd.Process.Pid }
