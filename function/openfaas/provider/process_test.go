package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReplicasHaveUsersOfTheirOwnAndNoRights(t *testing.T) {
	needsNamespaces(t)
	dir := t.TempDir()
	saveSecret(t, dir, "token", "hush")
	// Go builds tests in a folder that only its owner may enter: as a checkout in root's home is.
	g, server := startWith(t, dir, config{instance: "framestorm-test", users: 1_900_000_000, readable: filepath.Dir(os.Args[0])})
	d := deployment("echo")
	d.Secrets = []string{"token"}
	mustDeploy(t, g, d)
	scaleTo(t, g, 2)
	seen := map[string]bool{}
	for range 4 {
		_, rights, _ := post(t, server.URL+"/function/echo/rights", "")
		if seen[rights] = true; !strings.HasPrefix(rights, "19000000") || !strings.HasSuffix(rights, "<nil> true") {
			t.Errorf("user, group, error of the own secret, no right to read another's: %s", rights)
		}
	}
	if len(seen) != 2 {
		t.Errorf("two replicas, and these users: %v", seen)
	}
}

func TestAReplicaNeverRunsOutsideItsGroup(t *testing.T) {
	needsNamespaces(t)
	g, server := start(t, t.TempDir())
	f := mustDeploy(t, g, deployment("echo"))
	want := "framestorm-test/" + f.views()[0].Name
	if most, err := readNumber(cgroup(want).file("pids", "pids.max")); err != nil || most != pidsMost {
		t.Errorf("%v processes and threads at most, want %d: %v", most, pidsMost, err)
	}
	if _, groups, _ := post(t, server.URL+"/function/echo/group", ""); strings.Count(groups, want) < 1 {
		t.Errorf("not in %s: %s", want, groups)
	}
	// The thread that started it is not left in its group: the group goes with the replica.
	group := cgroup(want)
	scaleTo(t, g, 0)
	if _, err := os.Stat(group.file("cpu", "")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", group, err)
	}
}

func needsNamespaces(t *testing.T) {
	t.Helper()
	if !isolates() {
		t.Skip("only root may make network namespaces")
	}
}

func TestTrafficOfEachReplicaIsKnown(t *testing.T) {
	needsNamespaces(t)
	g, server := start(t, t.TempDir())
	f := mustDeploy(t, g, deployment("echo"))
	scaleTo(t, g, 2)
	const size = 100_000
	_, _, worker := post(t, server.URL+"/function/echo", strings.Repeat("x", size))
	for _, v := range f.views() {
		traffic, known := v.network.traffic()
		if !known {
			t.Fatalf("%s: not known", v.Name)
		}
		// Health checks and headers are small beside the body; acknowledgements come on top.
		for what, bytes := range map[string]float64{"received": traffic.ReceivedBytes, "sent": traffic.SentBytes} {
			if busy := v.Address == worker; busy != (bytes > size) || bytes > 1.3*size {
				t.Errorf("%s (busy: %v) %s %.0f bytes", v.Name, busy, what, bytes)
			}
		}
	}
	if _, known := netns(0).traffic(); known {
		t.Error("traffic of a replica without a network of its own")
	}
}

func TestAFailedStartLeavesNoSecrets(t *testing.T) {
	dir := t.TempDir()
	g, _ := start(t, dir)
	for backend, replicas := range map[Backend]string{
		g.backend: filepath.Join(dir, "replicas"), &dockerBackend{dir: dir}: dir,
	} {
		// The second cannot be placed.
		secrets := map[string][]byte{"token": []byte("hush"), "no/folder": []byte("hush")}
		if _, err := backend.Start("echo-1", deployment("echo"), secrets, io.Discard); err == nil {
			t.Fatal("it was started")
		}
		if _, err := os.Stat(filepath.Join(replicas, "echo-1")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%T: %v", backend, err)
		}
	}
}
