package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/openfaas/faas-provider/types"
)

// Ports of replicas without a network namespace; below the ports that Linux gives to outgoing connections.
const firstPort, lastPort = 18100, 18999

// process is how an image's process is started without a container.
type process struct {
	// Command is a server; {host} and {port} in it, and host and port in its environment, are where it listens.
	Command []string `json:"command"`
	// Fprocess is what the classic watchdog forks for each request; with it, Command is not used.
	Fprocess string            `json:"fprocess"`
	Env      map[string]string `json:"env"`
}

type processBackend struct {
	images   map[string]process
	watchdog string
	instance string
	dir      string
	users    int
	closed   closedFolders
	port     atomic.Int32
}

// links counts the links that were made.
var links atomic.Int32

func newProcessBackend(c config, dir string) (*processBackend, error) {
	text, err := os.ReadFile(c.images)
	if err != nil {
		return nil, fmt.Errorf("-images: %w", err)
	}
	b := &processBackend{watchdog: c.watchdog, instance: c.instance, dir: dir, users: c.users}
	if err := json.Unmarshal(text, &b.images); err != nil {
		return nil, fmt.Errorf("-images %s: %w", c.images, err)
	}
	// Whatever is still there was left by a provider that was killed.
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if isolates() {
		if err := closeRange(); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, err
	}
	if b.hasUsers() {
		readable, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		b.closed, err = closedAbove(append(strings.FieldsFunc(c.readable, func(r rune) bool { return r == ',' }), readable))
		if err != nil {
			return nil, fmt.Errorf("-readable: %w", err)
		}
	}
	return b, nil
}

func (b *processBackend) Close() {
	if isolates() {
		openRange()
	}
}

// imageName is an image's own name: without registry, owner, tag and digest.
func imageName(image string) string {
	name, _, _ := strings.Cut(path.Base(image), "@")
	name, _, _ = strings.Cut(name, ":")
	return name
}

func (b *processBackend) Check(d types.FunctionDeployment) error {
	image, ok := b.images[imageName(d.Image)]
	if !ok {
		return fmt.Errorf("image %q is unknown to the process backend, which has: %s; the docker backend runs any image",
			d.Image, strings.Join(slices.Sorted(maps.Keys(b.images)), ", "))
	}
	if image.Fprocess != "" && !isolates() {
		return fmt.Errorf("image %q forks under the classic watchdog, whose metrics port 8081 is fixed: each replica needs "+
			"a network namespace, which only root may make; use the docker backend or the kept-alive image", d.Image)
	}
	if _, _, err := limits(d.Limits); err != nil {
		return err
	}
	if d.ReadOnlyRootFilesystem {
		return errors.New("readonly_root_filesystem needs the docker backend")
	}
	return nil
}

func (b *processBackend) Start(
	name string, d types.FunctionDeployment, secrets map[string][]byte, w io.Writer,
) (_ *Instance, err error) {
	image := b.images[imageName(d.Image)]
	dir := filepath.Join(b.dir, name)
	var group cgroup
	clean := func() { group.remove(); _ = os.RemoveAll(dir) }
	defer func() {
		// The folder has secrets.
		if err != nil {
			clean()
		}
	}()
	secretsDir := filepath.Join(dir, "secrets")
	if err := errors.Join(os.MkdirAll(secretsDir, 0o700), place(secrets, secretsDir, 0o400)); err != nil {
		return nil, err
	}
	cpus, memoryBytes, _ := limits(d.Limits)
	if group, err = newCgroup(b.instance, name, cpus, memoryBytes); err != nil {
		return nil, err
	}
	forks := image.Fprocess != ""
	address, listen, port := "127.0.0.1", "127.0.0.1", 8080
	var network *link
	if isolates() {
		network = newLink(os.Getpid()*linksApart + int(links.Add(1)))
		address, listen = network.peer, "0.0.0.0"
	} else if port, err = b.freePort(); err != nil {
		return nil, err
	}
	env := map[string]string{
		"PATH": os.Getenv("PATH"), "HOME": dir, "TMPDIR": dir, "LANG": "C.UTF-8",
		"host": listen, "port": strconv.Itoa(port), "secret_mount_path": secretsDir, "fprocess": image.Fprocess,
	}
	maps.Copy(env, image.Env)
	maps.Copy(env, d.EnvVars)
	command := []string{b.watchdog}
	if forks && d.EnvProcess != "" {
		env["fprocess"] = d.EnvProcess
	} else if !forks {
		delete(env, "fprocess")
		command = fill(image.Command, strings.NewReplacer("{host}", listen, "{port}", strconv.Itoa(port)))
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, pairs(env)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if network != nil {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNET
	}
	prepare := func() error { return nil }
	if b.hasUsers() {
		id := b.users + int(usersGiven.Add(1))%usersAtOnce
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}
		if err := giveTo(id, dir); err != nil {
			return nil, err
		}
		prepare = func() error { return errors.Join(noNewPrivileges(), b.closed.open()) }
	}
	instance, err := launch(cmd, group, w, prepare, clean)
	if err != nil {
		return nil, err
	}
	instance.Address = net.JoinHostPort(address, strconv.Itoa(port))
	if forks {
		instance.Metrics = net.JoinHostPort(address, "8081")
	}
	if network != nil {
		err = network.connect(instance.pid())
		instance.network = netns(instance.pid())
	}
	if err != nil {
		select {
		case <-instance.done: // It had ended already: its log says why.
			return instance, nil
		case <-time.After(time.Second):
			instance.kill()
			return nil, err
		}
	}
	return instance, nil
}

// isolates tells whether each replica gets a network namespace of its own, as a container has one; only root may make
// them. Without, a replica has a port of its own, and what it sends and receives is not known.
func isolates() bool { return os.Geteuid() == 0 }

// freePort gives ports in turn, so that one just released is not reused at once.
func (b *processBackend) freePort() (int, error) {
	for range lastPort - firstPort {
		port := firstPort + int(b.port.Add(1)-1)%(lastPort-firstPort+1)
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("no free port from %d to %d", firstPort, lastPort)
}

func pairs(env map[string]string) []string {
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

func fill(words []string, places *strings.Replacer) []string {
	filled := make([]string, len(words))
	for n, word := range words {
		filled[n] = places.Replace(word)
	}
	return filled
}
