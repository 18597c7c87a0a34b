package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const (
	cgroupRoot  = "/sys/fs/cgroup"
	cpuPeriodUs = 100_000
	// pidsMost bounds the processes and threads of a replica: a function that forks without end ends itself only.
	pidsMost = 4096
)

// controllers are hierarchies of their own in cgroup v1.
var controllers = []string{"cpu", "cpuacct", "memory", "pids"}

// cgroup is a control group by its path below the root of each hierarchy; empty where there is none.
type cgroup string

// Usage of a replica since its start.
type Usage struct {
	CPUSeconds       float64
	ThrottledSeconds float64
	MemoryBytes      float64
}

// unified tells cgroup v2 from v1, whose controllers are hierarchies of their own.
func unified() bool {
	_, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers"))
	return err == nil
}

func (g cgroup) file(controller, name string) string {
	if unified() {
		return filepath.Join(cgroupRoot, string(g), name)
	}
	return filepath.Join(cgroupRoot, controller, string(g), name)
}

// newCgroup makes a group in the parent's with limits (0 is none); no group and no error where limits are not asked for
// and groups cannot be made, as for an ordinary user.
func newCgroup(parent, name string, cpus float64, memoryBytes int64) (cgroup, error) {
	g := cgroup(filepath.Join(parent, name))
	err := g.make(cpus, memoryBytes)
	if err == nil {
		return g, nil
	}
	g.remove()
	if cpus > 0 || memoryBytes > 0 {
		return "", fmt.Errorf("limits need a writable %s (run as root, or leave them out): %w", cgroupRoot, err)
	}
	return "", nil
}

func (g cgroup) make(cpus float64, memoryBytes int64) error {
	for _, controller := range controllers {
		if err := os.MkdirAll(g.file(controller, ""), 0o755); err != nil {
			return err
		}
	}
	quota, period := int(cpus*cpuPeriodUs), strconv.Itoa(cpuPeriodUs)
	if unified() {
		for _, parent := range []string{"", filepath.Dir(string(g))} {
			if err := write(filepath.Join(cgroupRoot, parent, "cgroup.subtree_control"), "+cpu +memory +pids"); err != nil {
				return err
			}
		}
		return firstError(
			write(g.file("", "pids.max"), strconv.Itoa(pidsMost)),
			ifSet(cpus > 0, g.file("", "cpu.max"), fmt.Sprintf("%d %s", quota, period)),
			ifSet(memoryBytes > 0, g.file("", "memory.max"), strconv.FormatInt(memoryBytes, 10)))
	}
	return firstError(
		write(g.file("pids", "pids.max"), strconv.Itoa(pidsMost)),
		ifSet(cpus > 0, g.file("cpu", "cpu.cfs_period_us"), period),
		ifSet(cpus > 0, g.file("cpu", "cpu.cfs_quota_us"), strconv.Itoa(quota)),
		ifSet(memoryBytes > 0, g.file("memory", "memory.limit_in_bytes"), strconv.FormatInt(memoryBytes, 10)))
}

// startIn starts a command in the group: it never runs outside of it. To be called on a locked thread.
func (g cgroup) startIn(cmd *exec.Cmd) error {
	if g == "" {
		return cmd.Start()
	}
	if unified() {
		folder, err := os.Open(g.file("", ""))
		if err != nil {
			return err
		}
		defer folder.Close()
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(folder.Fd())
		return cmd.Start()
	}
	// In cgroup v1 a thread can be in another group than the rest of its process, and a new process is where the thread
	// is that starts it.
	thread := strconv.Itoa(syscall.Gettid())
	before, err := os.ReadFile("/proc/thread-self/cgroup")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(before)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		for _, controller := range controllers {
			if len(fields) == 3 && slices.Contains(strings.Split(fields[1], ","), controller) {
				defer func() { _ = write(cgroup(fields[2]).file(controller, "tasks"), thread) }()
			}
		}
	}
	for _, controller := range controllers {
		if err := write(g.file(controller, "tasks"), thread); err != nil {
			return err
		}
	}
	return cmd.Start()
}

// kill ends what is in the group, also what left its process group.
func (g cgroup) kill() {
	if g == "" {
		return
	}
	pids, _ := os.ReadFile(g.file("cpu", "cgroup.procs"))
	for _, pid := range strings.Fields(string(pids)) {
		if n, err := strconv.Atoi(pid); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
}

func (g cgroup) remove() {
	if g == "" {
		return
	}
	for _, controller := range controllers {
		_ = os.Remove(g.file(controller, ""))
	}
}

// usage reads what the group has used; false where there is no group, or none any more.
func (g cgroup) usage() (Usage, bool) {
	if g == "" {
		return Usage{}, false
	}
	stat, err := readPairs(g.file("cpu", "cpu.stat"))
	// The kernel's own time counts once for each core that threads waited on, and so passes the time that went by.
	throttledSeconds := stat["nr_throttled"] * cpuPeriodUs / 1e6
	if unified() {
		memory, memoryErr := readNumber(g.file("", "memory.current"))
		return Usage{stat["usage_usec"] / 1e6, throttledSeconds, memory}, errors.Join(err, memoryErr) == nil
	}
	cpu, cpuErr := readNumber(g.file("cpuacct", "cpuacct.usage"))
	memory, memoryErr := readNumber(g.file("memory", "memory.usage_in_bytes"))
	return Usage{cpu / 1e9, throttledSeconds, memory}, errors.Join(err, cpuErr, memoryErr) == nil
}

func ifSet(set bool, path, value string) error {
	if !set {
		return nil
	}
	return write(path, value)
}

func write(path, value string) error { return os.WriteFile(path, []byte(value), 0o644) }

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func readNumber(path string) (float64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
}

func readPairs(path string) (map[string]float64, error) {
	text, err := os.ReadFile(path)
	pairs := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			pairs[name], _ = strconv.ParseFloat(value, 64)
		}
	}
	return pairs, err
}
