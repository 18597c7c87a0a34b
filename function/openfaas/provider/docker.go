package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openfaas/faas-provider/types"
)

const (
	containerLabel   = "framestorm.openfaas"
	containerSecrets = "/var/openfaas/secrets"
	pullTimeout      = 20 * time.Second
	addressTimeout   = 10 * time.Second
)

// dockerBackend runs each replica as a container in the foreground of a `docker run`: its output and its end are those
// of a process, and everything above is the same for both backends.
type dockerBackend struct{ instance, dir string }

func newDockerBackend(instance, dir string) (*dockerBackend, error) {
	b := &dockerBackend{instance: instance, dir: dir}
	if _, err := docker(context.Background(), "version", "--format", "{{.Server.Version}}"); err != nil {
		return nil, fmt.Errorf("the docker backend needs a running Docker engine: %w", err)
	}
	left, err := docker(context.Background(), "ps", "--all", "--quiet", "--filter", "label="+containerLabel+"="+instance)
	if ids := strings.Fields(left); err == nil && len(ids) > 0 {
		// The containers of a provider that was killed.
		_, err = docker(context.Background(), append([]string{"rm", "--force"}, ids...)...)
	}
	return b, errors.Join(err, os.RemoveAll(dir), os.MkdirAll(dir, 0o700))
}

// Close has nothing to undo: containers go with their clients.
func (b *dockerBackend) Close() {}

func (b *dockerBackend) Check(d types.FunctionDeployment) error {
	if _, _, err := limits(d.Limits); err != nil {
		return err
	}
	if strings.HasPrefix(d.Image, "-") {
		return fmt.Errorf("%q is not the name of an image", d.Image)
	}
	if _, err := docker(context.Background(), "image", "inspect", "--format", "{{.Id}}", d.Image); err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), pullTimeout)
	defer cancel()
	if _, err := docker(ctx, "pull", "--quiet", d.Image); err != nil {
		return fmt.Errorf("image %q is neither in this machine's Docker engine nor can it be pulled: %w", d.Image, err)
	}
	return nil
}

func (b *dockerBackend) Start(name string, d types.FunctionDeployment, secrets map[string][]byte, w io.Writer) (*Instance, error) {
	cpus, memoryBytes, err := limits(d.Limits)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.dir, name)
	// Readable for a container's own user; the folder above is for this user only.
	if err := errors.Join(os.MkdirAll(dir, 0o755), place(secrets, dir, 0o444)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	args := []string{
		"run", "--rm", "--name", name, "--label", containerLabel + "=" + b.instance, "--pull", "never",
		"--pids-limit", strconv.Itoa(pidsMost), "--volume", dir + ":" + containerSecrets + ":ro",
		"--cap-drop", "ALL", "--security-opt", "no-new-privileges",
	}
	if cpus > 0 {
		args = append(args, "--cpus", strconv.FormatFloat(cpus, 'f', -1, 64))
	}
	if memoryBytes > 0 {
		args = append(args, "--memory", strconv.FormatInt(memoryBytes, 10))
	}
	if d.ReadOnlyRootFilesystem {
		args = append(args, "--read-only", "--tmpfs", "/tmp")
	}
	// Values go by this client's environment: an argument could be read by everyone on the machine.
	env := maps.Clone(d.EnvVars)
	if env == nil {
		env = map[string]string{}
	}
	if d.EnvProcess != "" {
		env["fprocess"] = d.EnvProcess
	}
	for _, variable := range slices.Sorted(maps.Keys(env)) {
		if ofTheClient(variable) {
			args = append(args, "--env", variable+"="+env[variable])
			delete(env, variable)
		} else {
			args = append(args, "--env", variable)
		}
	}
	cmd := exec.Command("docker", append(args, d.Image)...)
	cmd.Env = append(os.Environ(), pairs(env)...)
	nothing := func() error { return nil }
	instance, err := launch(cmd, "", w, nothing, func() {
		_, _ = docker(context.Background(), "rm", "--force", name)
		_ = os.RemoveAll(dir)
	})
	if err != nil {
		return nil, err
	}
	address, id, pid, err := b.inspect(name, instance.done)
	if err != nil {
		instance.Stop()
		return nil, err
	}
	instance.Address = net.JoinHostPort(address, "8080")
	instance.Metrics = net.JoinHostPort(address, "8081")
	instance.network = netns(pid)
	instance.stats = cgroup("docker/" + id)
	if unified() {
		instance.stats = cgroup("system.slice/docker-" + id + ".scope")
	}
	return instance, nil
}

// ofTheClient tells whether a variable would change what the docker client itself does.
func ofTheClient(variable string) bool {
	upper := strings.ToUpper(variable)
	return strings.HasPrefix(upper, "DOCKER_") || strings.HasPrefix(upper, "LD_") || strings.HasPrefix(upper, "GO") ||
		strings.HasSuffix(upper, "_PROXY") || slices.Contains([]string{"HOME", "PATH", "SSH_AUTH_SOCK", "TMPDIR"}, upper)
}

// inspected is what is asked of a container: its id, its process, and its address in the one network that it has.
const inspected = "{{.Id}} {{.State.Pid}} {{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"

// inspect waits for the engine to have started the container; empty when it has ended before, which its log explains.
func (b *dockerBackend) inspect(name string, done <-chan struct{}) (address, id string, pid int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), addressTimeout)
	defer cancel()
	for {
		output, err := docker(ctx, "inspect", "--format", inspected, name)
		if words := strings.Fields(output); err == nil && len(words) == 3 {
			pid, err = strconv.Atoi(words[1])
			return words[2], words[0], pid, err
		}
		select {
		case <-done:
			return "", "", 0, nil
		case <-ctx.Done():
			return "", "", 0, fmt.Errorf("container %s has no address after %s", name, addressTimeout)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func docker(ctx context.Context, args ...string) (string, error) {
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("docker %s: no answer in time", args[0])
		}
		return "", errors.New(strings.TrimSpace("docker " + args[0] + ": " + err.Error() + ": " + stderr.String()))
	}
	return string(output), nil
}
