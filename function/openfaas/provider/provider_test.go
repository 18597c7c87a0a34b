package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/openfaas/faas-provider/types"
)

// post sends a body to a function and gives status, answer and the replica that gave it.
func post(t *testing.T, url, body string) (status int, answer, worker string) {
	t.Helper()
	response, err := http.Post(url, "text/plain", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text), response.Header.Get(workerHeader)
}

func TestRequestsAreSharedEqually(t *testing.T) {
	g, server := start(t, t.TempDir())
	mustDeploy(t, g, deployment("echo"))
	scaleTo(t, g, 3)
	byWorker := map[string]int{}
	for range 30 {
		status, answer, worker := post(t, server.URL+"/function/echo", "hello")
		if status != 200 || answer != "hello" {
			t.Fatalf("%d %q", status, answer)
		}
		byWorker[worker]++
	}
	for worker, n := range byWorker {
		if n != 10 {
			t.Errorf("%s answered %d of 30, want 10", worker, n)
		}
	}
	if status, _, _ := post(t, server.URL+"/function/echo.openfaas-fn", ""); status != 200 {
		t.Errorf("name with namespace: %d", status)
	}
}

// endsOnce is a body that tells its end with its last bytes, as a server does, and that the server has closed then.
type endsOnce struct{ io.Reader }

func (b *endsOnce) Read(p []byte) (int, error) {
	if b.Reader == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		b.Reader = nil
	}
	return n, err
}

func TestABodyIsNotReadAfterItsEnd(t *testing.T) {
	g, server := start(t, t.TempDir())
	mustDeploy(t, g, deployment("echo"))
	request := httptest.NewRequest(http.MethodPost, "/function/echo", &endsOnce{iotest.DataErrReader(strings.NewReader("hello"))})
	request.ContentLength = 5
	answer := httptest.NewRecorder()
	server.Config.Handler.ServeHTTP(answer, request)
	if answer.Code != 200 || answer.Body.String() != "hello" {
		t.Errorf("%d %q", answer.Code, answer.Body)
	}
}

func TestUnreadyReplicaIsSkipped(t *testing.T) {
	g, server := start(t, t.TempDir())
	f := mustDeploy(t, g, deployment("echo"))
	scaleTo(t, g, 2)
	_, _, worker := post(t, server.URL+"/function/echo/unready", "")
	eventually(t, "one unready replica", func() bool { return f.counts().ready == 1 })
	for range 10 {
		if _, _, other := post(t, server.URL+"/function/echo", ""); other == worker {
			t.Fatalf("%s is unready and was given a request", worker)
		}
	}
}

func TestScaleDownKeepsTheReadyReplicas(t *testing.T) {
	g, _ := start(t, t.TempDir())
	f := mustDeploy(t, g, deployment("echo"))
	scaleTo(t, g, 2)
	oldest := f.views()[0]
	post(t, "http://"+oldest.Address+"/unready", "")
	eventually(t, "the oldest is unready", func() bool { return f.views()[0].State == "unready" })
	scaleTo(t, g, 1)
	if left := f.views()[0]; left.Name == oldest.Name {
		t.Errorf("%s is left, which was unready", left.Name)
	}
}

func TestABrokenAnswerIsNoLackOfReplicas(t *testing.T) {
	g, server := start(t, t.TempDir())
	mustDeploy(t, g, deployment("echo"))
	if status, answer, _ := post(t, server.URL+"/function/echo/broken", ""); status != http.StatusBadGateway {
		t.Errorf("an answer that is no HTTP: %d %s", status, answer)
	}
	d := deployment("echo")
	d.Service = "slow"
	f, _ := deploySlow(t, g, d)
	eventually(t, "it starts", func() bool { return f.views()[0].PID > 0 })
	if err := syscall.Kill(f.views()[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if status, answer, _ := post(t, server.URL+"/function/slow", ""); status != http.StatusServiceUnavailable {
		t.Errorf("a replica that ended while it started: %d %s", status, answer)
	}
}

func TestScaleFromZeroHoldsTheRequest(t *testing.T) {
	g, server := start(t, t.TempDir())
	f := mustDeploy(t, g, deployment("echo"))
	scaleTo(t, g, 0)
	if status, answer, _ := post(t, server.URL+"/function/echo", "held"); status != 200 || answer != "held" {
		t.Fatalf("%d %q", status, answer)
	}
	if n := f.counts().desired; n != 1 {
		t.Errorf("%d replicas wanted, want 1", n)
	}
}

func TestScaleDownLetsRequestsFinish(t *testing.T) {
	g, server := start(t, t.TempDir())
	f := mustDeploy(t, g, deployment("echo"))
	scaleTo(t, g, 3)
	statuses := make(chan int)
	for range 9 {
		go func() {
			status, _, _ := post(t, server.URL+"/function/echo/sleep", "")
			statuses <- status
		}()
	}
	eventually(t, "nine requests under way", func() bool { return f.counts().inFlight == 9 })
	if err := g.scale("echo", 1); err != nil {
		t.Fatal(err)
	}
	for range 9 {
		if status := <-statuses; status != 200 {
			t.Errorf("a request under way was answered by %d", status)
		}
	}
	eventually(t, "one replica left", func() bool { return len(f.views()) == 1 })
}

func TestKilledReplicaIsReplaced(t *testing.T) {
	g, server := start(t, t.TempDir())
	f := mustDeploy(t, g, deployment("echo"))
	pid := f.views()[0].PID
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another process", func() bool {
		views := f.views()
		return len(views) == 1 && views[0].State == "ready" && views[0].PID != pid
	})
	if status, _, _ := post(t, server.URL+"/function/echo", ""); status != 200 {
		t.Errorf("after the kill: %d", status)
	}
	if n := f.counts(); n.lost != 1 || n.ready != 1 || n.short <= 0 || f.shownReady() != 0 {
		t.Errorf("what is told of the loss: %+v", n)
	}
}

func TestLosses(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	var l losses
	l.note(3, 3, at(0))
	l.lose(2, at(100))
	l.note(3, 2, at(100))
	l.lose(1, at(110))
	l.note(3, 3, at(150))
	if got := l.short(at(5000)); got != 50*time.Millisecond || l.count != 2 {
		t.Errorf("short of replicas for %s, %d lost; want 50ms and 2", got, l.count)
	}
	for _, look := range []struct{ ms, want int }{{150, 1}, {2600, 1}, {2700, 3}} {
		if got := l.look(3, at(look.ms)); got != look.want {
			t.Errorf("after %d ms %d are shown, want %d", look.ms, got, look.want)
		}
	}
	// Nobody looked in time: the first who does is shown it.
	late := losses{}
	late.lose(2, at(0))
	if first, second := late.look(3, at(9000)), late.look(3, at(9001)); first != 2 || second != 3 {
		t.Errorf("to a late look %d and then %d are shown, want 2 and 3", first, second)
	}
	l.note(5, 3, at(6000))
	if got := l.short(at(7000)); got != 1050*time.Millisecond {
		t.Errorf("still short: %s", got)
	}
}

func TestCrashAtStartIsReportedWithItsOutput(t *testing.T) {
	g, server := start(t, t.TempDir())
	err := g.deploy(t.Context(), deployment("crash"))
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "cannot find the model") {
		t.Fatalf("got %v", err)
	}
	if status, _, _ := post(t, server.URL+"/function/echo", ""); status != 404 {
		t.Errorf("a function that was never deployed: %d", status)
	}
	if err := g.deploy(t.Context(), deployment("gone")); err == nil || !strings.Contains(err.Error(), "/does/not/exist") {
		t.Errorf("a command that is not there: %v", err)
	}
}

func TestBadUpdateLeavesTheOldVersion(t *testing.T) {
	g, server := start(t, t.TempDir())
	mustDeploy(t, g, deployment("echo"))
	if err := g.deploy(t.Context(), deployment("crash")); err == nil {
		t.Fatal("the update was accepted")
	}
	if status, _, _ := post(t, server.URL+"/function/echo", ""); status != 200 {
		t.Errorf("after the bad update: %d", status)
	}
	f := mustDeploy(t, g, deployment("registry.example:5000/a/echo:2"))
	if f.deployment.Image != "registry.example:5000/a/echo:2" {
		t.Errorf("image %s", f.deployment.Image)
	}
}

func TestDeploymentIsRefused(t *testing.T) {
	g, _ := start(t, t.TempDir())
	for want, d := range map[string]types.FunctionDeployment{
		`image "nope:1" is unknown`:        {Service: "a", Image: "nope:1"},
		`function name "A_b"`:              {Service: "A_b", Image: "echo"},
		`namespace "other" does not exist`: {Service: "a", Image: "echo", Namespace: "other"},
		`secret "token" does not exist`:    {Service: "a", Image: "echo", Secrets: []string{"token"}},
		`cpu limit "lots"`:                 {Service: "a", Image: "echo", Limits: &types.FunctionResources{CPU: "lots"}},
		`memory limit "1"`:                 {Service: "a", Image: "echo", Limits: &types.FunctionResources{Memory: "1"}},
		`constraints [a==b]`:               {Service: "a", Image: "echo", Constraints: []string{"a==b"}},
		`readonly_root_filesystem`:         {Service: "a", Image: "echo", ReadOnlyRootFilesystem: true},
		minLabel + "=two":                  {Service: "a", Image: "echo", Labels: &map[string]string{minLabel: "two"}},
		minLabel + "=-1":                   {Service: "a", Image: "echo", Labels: &map[string]string{minLabel: "-1"}},
		minLabel + "=101":                  {Service: "a", Image: "echo", Labels: &map[string]string{minLabel: "101"}},
		zeroAfter + "=15":                  {Service: "a", Image: "echo", Labels: &map[string]string{zeroAfter: "15"}},
	} {
		if err := g.deploy(t.Context(), d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestVariablesOfAFunctionDoNotReachTheDockerClient(t *testing.T) {
	for variable, want := range map[string]bool{
		"DOCKER_HOST": true, "LD_PRELOAD": true, "PATH": true, "https_proxy": true, "max_inflight": false, "PATHS": false,
	} {
		if ofTheClient(variable) != want {
			t.Errorf("%s: want %v", variable, want)
		}
	}
}

func TestIdleFunctionIsScaledToZero(t *testing.T) {
	g, _ := start(t, t.TempDir())
	d := deployment("echo")
	d.Labels = &map[string]string{zeroLabel: "true", zeroAfter: "1m", minLabel: "2"}
	f := mustDeploy(t, g, d)
	if f.isIdle(time.Now()) || !f.isIdle(time.Now().Add(2*time.Minute)) {
		t.Error("idle before its time, or not after")
	}
	if f.counts().desired != 2 {
		t.Errorf("%d replicas wanted, want the label's 2", f.counts().desired)
	}
}

func TestAFunctionThatStartsIsNotIdle(t *testing.T) {
	g, _ := start(t, t.TempDir())
	d := deployment("echo")
	d.Labels = &map[string]string{zeroLabel: "true", zeroAfter: "1m"}
	f, file := deploySlow(t, g, d)
	if f.isIdle(time.Now().Add(2 * time.Minute)) {
		t.Error("idle while it starts")
	}
	f.mu.Lock()
	f.lastUsed = time.Now().Add(-2 * time.Minute)
	f.mu.Unlock()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is ready", func() bool { return f.counts().ready == 1 })
	if f.isIdle(time.Now()) || !f.isIdle(time.Now().Add(2*time.Minute)) {
		t.Error("idle as soon as it is ready, or never")
	}
}

func TestNothingIsDoneInAnotherNamespace(t *testing.T) {
	g, _ := start(t, t.TempDir())
	f := mustDeploy(t, g, deployment("echo"))
	handler, err := routes(config{}, api{registry: g, secrets: g.secrets}, newProxy(g, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range []struct{ method, path, content string }{
		{http.MethodGet, "/system/functions?namespace=other", ""},
		{http.MethodGet, "/system/function/echo?namespace=other", ""},
		{http.MethodPost, "/system/scale-function/echo?namespace=other", `{"replicas": 2}`},
		{http.MethodPost, "/system/scale-function/echo", `{"replicas": 2, "namespace": "other"}`},
		{http.MethodDelete, "/system/functions?namespace=other", `{"functionName": "echo"}`},
		{http.MethodDelete, "/system/functions", `{"functionName": "echo", "namespace": "other"}`},
	} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(request.method, request.path, strings.NewReader(request.content)))
		if answer.Code != http.StatusNotFound || !strings.Contains(answer.Body.String(), `namespace "other"`) {
			t.Errorf("%+v: %d %s", request, answer.Code, answer.Body)
		}
	}
	if n := f.counts().desired; n != 1 {
		t.Errorf("%d replicas wanted", n)
	}
}

func TestSecretsOfAFunctionAreThoseItAskedFor(t *testing.T) {
	s := secretStore{t.TempDir()}
	for _, name := range []string{"one", "two"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(s.path(name)), 0o700), os.WriteFile(s.path(name), []byte(name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	values, err := s.of([]string{"two"})
	if err != nil || len(values) != 1 || string(values["two"]) != "two" || s.has("../two") {
		t.Errorf("%v: %v", err, values)
	}
}

// saveSecret makes a secret of the provider in dir, as faas-cli would.
func saveSecret(t *testing.T, dir, name, value string) {
	t.Helper()
	path := secretStore{filepath.Join(dir, "secrets")}.path(name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), replaceFile(path, []byte(value))); err != nil {
		t.Fatal(err)
	}
}

func TestAFailedUpdateLeavesTheSecretsOfTheOldVersion(t *testing.T) {
	dir := t.TempDir()
	saveSecret(t, dir, "token", "hush")
	g, _ := start(t, dir)
	d := deployment("echo")
	d.Secrets = []string{"token"}
	mustDeploy(t, g, d)
	if err := g.deploy(t.Context(), deployment("crash")); err == nil {
		t.Fatal("the update was accepted")
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "replicas", "*", "secrets", "token")); len(files) != 1 {
		t.Errorf("%v", files)
	}
}

func TestASwitchOfProtocolsIsRefusedAndLeavesNothingUnderWay(t *testing.T) {
	g, server := start(t, t.TempDir())
	f := mustDeploy(t, g, deployment("echo"))
	for _, upgrade := range []string{"", "websocket", "other"} {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/function/echo/switch", nil)
		if upgrade != "" {
			request.Header.Set("Connection", "Upgrade")
			request.Header.Set("Upgrade", upgrade)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusBadGateway {
			t.Errorf("upgrade %q: %d", upgrade, response.StatusCode)
		}
	}
	if n := f.counts().inFlight; n != 0 {
		t.Errorf("%d requests are under way for ever", n)
	}
}

func TestARequestThatNeverEndsHoldsNothing(t *testing.T) {
	g, _ := start(t, t.TempDir())
	f := mustDeploy(t, g, deployment("echo"))
	handler, err := routes(config{upstream: time.Minute}, api{registry: g, secrets: g.secrets}, newProxy(g, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(handler, 300*time.Millisecond, 600*time.Millisecond)
	defer server.Close()
	go func() { _ = server.Serve(listener) }()
	ends := make(chan error)
	for _, begun := range []string{
		"", "POST /function/echo HTTP/1.1\r\nHost: x\r\n", "POST /function/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n",
		"POST /system/functions HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n",
	} {
		connection, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		_ = connection.SetReadDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(connection, begun)
		go func() {
			for begun != "" {
				if _, err := io.WriteString(connection, "x"); err != nil {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
		}()
		go func() {
			_, err := io.Copy(io.Discard, connection)
			ends <- err
		}()
	}
	if status, _, _ := post(t, "http://"+listener.Addr().String()+"/function/echo", ""); status != 200 {
		t.Errorf("meanwhile: %d", status)
	}
	for range 4 {
		if err := <-ends; errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("a connection is held open")
		}
	}
	eventually(t, "nothing under way", func() bool { return f.counts().inFlight == 0 })
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		cpu, memory string
		cpus        float64
		bytes       int64
	}{{"500m", "128Mi", 0.5, 128 << 20}, {"1.5", "1Gi", 1.5, 1 << 30}, {"", "64m", 0, 64 << 20}, {"25m", "", 0.025, 0}} {
		cpus, bytes, err := limits(&types.FunctionResources{CPU: c.cpu, Memory: c.memory})
		if err != nil || cpus != c.cpus || bytes != c.bytes {
			t.Errorf("%+v: %v %v %v", c, cpus, bytes, err)
		}
	}
}

func TestImageName(t *testing.T) {
	for image, want := range map[string]string{"noop": "noop", "a/noop:1": "noop", "r.example:5000/a/noop@sha256:ab": "noop"} {
		if got := imageName(image); got != want {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
	}
}

func TestAnAddressThatIsGoneRefusesAtOnce(t *testing.T) {
	needsNamespaces(t)
	g, _ := start(t, t.TempDir())
	f := mustDeploy(t, g, deployment("echo"))
	scaleTo(t, g, 1)
	address := f.views()[0].Address
	scaleTo(t, g, 0)
	// The kernel takes a namespace down a moment after its last process.
	eventually(t, address+" refuses", func() bool {
		_, err := net.DialTimeout("tcp", address, time.Second)
		return errors.Is(err, syscall.EHOSTUNREACH)
	})
}
