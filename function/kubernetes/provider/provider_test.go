package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/mux"
	"github.com/openfaas/faas-provider/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// provider is the router that the SDK would serve, on a cluster that only stores.
func provider(t *testing.T) (http.Handler, *fake.Clientset) {
	t.Helper()
	client := fake.NewSimpleClientset()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	h := handlers(newFunctions(ctx, client), &types.FaaSConfig{ReadTimeout: 10 * time.Second})
	router := mux.NewRouter()
	router.HandleFunc("/system/functions", h.FunctionLister).Methods(http.MethodGet)
	router.HandleFunc("/system/functions", h.DeployFunction).Methods(http.MethodPost)
	router.HandleFunc("/system/functions", h.UpdateFunction).Methods(http.MethodPut)
	router.HandleFunc("/system/functions", h.DeleteFunction).Methods(http.MethodDelete)
	router.HandleFunc("/system/function/{name}", h.FunctionStatus)
	router.HandleFunc("/system/scale-function/{name}", h.ScaleFunction)
	router.HandleFunc("/function/{name}/{params:.*}", h.FunctionProxy)
	return router, client
}

func call(t *testing.T, h http.Handler, method, path string, content any) (int, string) {
	t.Helper()
	body, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest(method, path, bytes.NewReader(body)))
	return answer.Code, strings.TrimSpace(answer.Body.String())
}

// eventually waits for what the provider watches.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

func noop() types.FunctionDeployment {
	return types.FunctionDeployment{
		Service: "noop", Image: "dev.local/noop:1", EnvProcess: "/noop fork", EnvVars: map[string]string{"a": "1"},
		Labels: &map[string]string{minLabel: "2"}, Limits: &types.FunctionResources{CPU: "500m", Memory: "64Mi"},
	}
}

func TestAFunctionIsADeploymentThatIsToldAsItWasGiven(t *testing.T) {
	h, client := provider(t)
	if status, answer := call(t, h, http.MethodPost, "/system/functions", noop()); status != http.StatusAccepted {
		t.Fatal(status, answer)
	}
	made, err := client.AppsV1().Deployments(namespace).Get(context.Background(), "noop", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	container := made.Spec.Template.Spec.Containers[0]
	if *made.Spec.Replicas != 2 || container.Resources.Limits.Cpu().MilliValue() != 500 || len(container.Env) != 2 {
		t.Errorf("%+v", made.Spec)
	}
	if container.ReadinessProbe.HTTPGet.Path != "/_/health" || container.ReadinessProbe.TimeoutSeconds < 5 {
		t.Error(container.ReadinessProbe)
	}
	var status types.FunctionStatus
	eventually(t, "it is not listed", func() bool {
		code, answer := call(t, h, http.MethodGet, "/system/function/noop", nil)
		return code == http.StatusOK && json.Unmarshal([]byte(answer), &status) == nil
	})
	if status.EnvProcess != "/noop fork" || status.Replicas != 2 || status.Limits.CPU != "500m" || status.Image != noop().Image {
		t.Errorf("%+v", status)
	}
}

func TestAnUpdateLeavesTheReplicas(t *testing.T) {
	h, client := provider(t)
	ctx := context.Background()
	if status, _ := call(t, h, http.MethodPut, "/system/functions", noop()); status != http.StatusNotFound {
		t.Errorf("faas-cli deploys on 404, not on %d", status)
	}
	call(t, h, http.MethodPost, "/system/functions", noop())
	made, _ := client.AppsV1().Deployments(namespace).Get(ctx, "noop", metav1.GetOptions{})
	five := int32(5)
	made.Spec.Replicas = &five
	if _, err := client.AppsV1().Deployments(namespace).Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	changed := noop()
	changed.Image = "dev.local/sleep:1"
	if status, answer := call(t, h, http.MethodPut, "/system/functions", changed); status != http.StatusAccepted {
		t.Fatal(status, answer)
	}
	made, _ = client.AppsV1().Deployments(namespace).Get(ctx, "noop", metav1.GetOptions{})
	if *made.Spec.Replicas != 5 || made.Spec.Template.Spec.Containers[0].Image != "dev.local/sleep:1" {
		t.Errorf("%d %+v", *made.Spec.Replicas, made.Spec.Template.Spec)
	}
}

func TestBadInputIsRefusedWithItsReason(t *testing.T) {
	h, _ := provider(t)
	for what, change := range map[string]func(*types.FunctionDeployment){
		"secrets":                 func(d *types.FunctionDeployment) { d.Secrets = []string{"key"} },
		"limits of function noop": func(d *types.FunctionDeployment) { d.Limits.Memory = "much" },
		"com.openfaas.scale.min":  func(d *types.FunctionDeployment) { (*d.Labels)[minLabel] = "-1" },
	} {
		d := noop()
		change(&d)
		if status, answer := call(t, h, http.MethodPost, "/system/functions", d); status != http.StatusBadRequest || !strings.Contains(answer, what) {
			t.Errorf("%s: %d %s", what, status, answer)
		}
	}
	if status, answer := call(t, h, http.MethodPost, "/system/functions", "no object"); status != http.StatusBadRequest {
		t.Error(status, answer)
	}
	if status, answer := call(t, h, http.MethodDelete, "/system/functions", types.DeleteFunctionRequest{FunctionName: "gone"}); status != http.StatusNotFound {
		t.Error(status, answer)
	}
}

func TestRequestsGoToTheReadyPodsInTurn(t *testing.T) {
	h, client := provider(t)
	ctx := context.Background()
	if _, answer := call(t, h, http.MethodPost, "/function/noop/", nil); strings.Contains(answer, "pod") {
		t.Error(answer)
	}
	endpoints := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "noop", Namespace: namespace}}
	for _, name := range []string{"pod-1", "pod-2"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, name+" "+r.URL.Path)
		}))
		defer server.Close()
		host, text, _ := net.SplitHostPort(server.Listener.Addr().String())
		port, _ := strconv.Atoi(text)
		endpoints.Subsets = append(endpoints.Subsets, corev1.EndpointSubset{
			Addresses: []corev1.EndpointAddress{{IP: host}}, Ports: []corev1.EndpointPort{{Port: int32(port)}},
		})
	}
	if _, err := client.CoreV1().Endpoints(namespace).Create(ctx, endpoints, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no pod answers", func() bool {
		_, answer := call(t, h, http.MethodPost, "/function/noop/x", nil)
		return strings.HasPrefix(answer, "pod")
	})
	counts := map[string]int{}
	for range 10 {
		_, answer := call(t, h, http.MethodPost, "/function/noop/x", nil)
		counts[answer]++
	}
	if counts["pod-1 /x"] != 5 || counts["pod-2 /x"] != 5 {
		t.Error(counts)
	}
}
