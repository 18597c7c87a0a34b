package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestFunctionsOutliveTheProvider(t *testing.T) {
	dir := t.TempDir()
	g, _ := start(t, dir)
	mustDeploy(t, g, deployment("echo"))
	scaleTo(t, g, 2)
	g.close()
	next, _ := start(t, dir)
	eventually(t, "two replicas again", func() bool {
		f, err := next.get("echo")
		return err == nil && f.counts().ready == 2
	})
	if err := next.delete("echo"); err != nil {
		t.Fatal(err)
	}
	if _, err := next.get("echo"); !errors.Is(err, errNotFound) {
		t.Errorf("after delete: %v", err)
	}
}

func TestAFunctionThatCannotBeStartedAgainIsNotForgotten(t *testing.T) {
	dir := t.TempDir()
	secret := secretStore{filepath.Join(dir, "secrets")}.path("token")
	saveSecret(t, dir, "token", "hush")
	g, _ := start(t, dir)
	d := deployment("echo")
	d.Secrets = []string{"token"}
	mustDeploy(t, g, d)
	g.close()
	if err := os.Remove(secret); err != nil {
		t.Fatal(err)
	}
	without, _ := start(t, dir)
	if _, err := without.get("echo"); !errors.Is(err, errNotFound) {
		t.Fatalf("without its secret: %v", err)
	}
	other := deployment("echo")
	other.Service = "other"
	mustDeploy(t, without, other)
	without.close()
	saveSecret(t, dir, "token", "hush")
	again, _ := start(t, dir)
	eventually(t, "it runs again", func() bool {
		f, err := again.get("echo")
		return err == nil && f.counts().ready == 1
	})
}

func TestAFunctionThatCannotBeStartedAgainIsReplacedAndRemovedAsAnyOther(t *testing.T) {
	dir := t.TempDir()
	saveSecret(t, dir, "token", "hush")
	g, _ := start(t, dir)
	for _, name := range []string{"replaced", "removed"} {
		d := deployment("echo")
		d.Service, d.Secrets = name, []string{"token"}
		mustDeploy(t, g, d)
	}
	g.close()
	if err := os.Remove(secretStore{filepath.Join(dir, "secrets")}.path("token")); err != nil {
		t.Fatal(err)
	}
	without, _ := start(t, dir)
	d := deployment("echo")
	d.Service = "replaced"
	mustDeploy(t, without, d)
	if err := without.delete("removed.openfaas-fn"); err != nil {
		t.Fatal(err)
	}
	if err := without.delete("removed"); !errors.Is(err, errNotFound) {
		t.Errorf("removed twice: %v", err)
	}
	var list []saved
	text, err := os.ReadFile(without.file)
	if err != nil || json.Unmarshal(text, &list) != nil || len(list) != 1 || len(list[0].Deployment.Secrets) != 0 {
		t.Errorf("%v: %s", err, text)
	}
}

func TestTheFileIsWholeHoweverManySaveIt(t *testing.T) {
	dir := t.TempDir()
	g, _ := start(t, dir)
	mustDeploy(t, g, deployment("echo"))
	failed := make(chan error, 100)
	for range cap(failed) {
		go func() { failed <- g.save() }()
	}
	for range cap(failed) {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(g.file); err != nil || !json.Valid(text) {
		t.Errorf("%v: %s", err, text)
	}
}

func TestAKillWhileFunctionsAreScaledLosesNone(t *testing.T) {
	dir := t.TempDir()
	writeImages(t, dir)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	names := []string{"a", "b", "c"}
	ask := func(path, text string) int {
		answer, err := http.Post(url+path, "application/json", strings.NewReader(text))
		if err != nil {
			return 0
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	var provider *exec.Cmd
	t.Cleanup(func() { _ = provider.Process.Signal(syscall.SIGTERM); _ = provider.Wait() })
	for round := range 6 {
		provider = exec.Command(os.Args[0])
		provider.Env = append(os.Environ(), "behave=provide", fmt.Sprintf("port=%d", port), "state="+filepath.Join(dir, "state"))
		if err := provider.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the provider listens", func() bool {
			answer, err := http.Get(url + "/healthz")
			return err == nil && answer.Body.Close() == nil
		})
		for _, name := range names {
			if round == 0 {
				if status := ask("/system/functions", fmt.Sprintf(`{"service":%q,"image":"echo"}`, name)); status != http.StatusAccepted {
					t.Fatalf("%s: %d", name, status)
				}
			}
			eventually(t, name+" answers", func() bool { return ask("/function/"+name, "x") == http.StatusOK })
		}
		if round == 5 {
			return
		}
		for n := range 12 {
			go ask("/system/scale-function/"+names[n%3], fmt.Sprintf(`{"serviceName":%q,"replicas":%d}`, names[n%3], 1+n%4))
		}
		time.Sleep(time.Duration(round) * 7 * time.Millisecond)
		_ = provider.Process.Kill()
		_ = provider.Wait()
		var list []saved
		text, err := os.ReadFile(filepath.Join(dir, "state", "functions.json"))
		if err != nil || json.Unmarshal(text, &list) != nil || len(list) != 3 {
			t.Fatalf("%v: %s", err, text)
		}
	}
}
