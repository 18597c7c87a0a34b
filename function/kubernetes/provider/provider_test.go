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
		`namespace "other"`:       func(d *types.FunctionDeployment) { d.Namespace = "other" },
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

func TestNothingIsDoneInAnotherNamespace(t *testing.T) {
	h, client := provider(t)
	call(t, h, http.MethodPost, "/system/functions", noop())
	for _, request := range []struct {
		method, path string
		content      any
	}{
		{http.MethodGet, "/system/functions?namespace=other", nil},
		{http.MethodGet, "/system/function/noop?namespace=other", nil},
		{http.MethodPost, "/system/scale-function/noop?namespace=other", types.ScaleServiceRequest{Replicas: 5}},
		{http.MethodPost, "/system/scale-function/noop", types.ScaleServiceRequest{Replicas: 5, Namespace: "other"}},
		{http.MethodDelete, "/system/functions?namespace=other", types.DeleteFunctionRequest{FunctionName: "noop"}},
		{http.MethodDelete, "/system/functions", types.DeleteFunctionRequest{FunctionName: "noop", Namespace: "other"}},
	} {
		status, answer := call(t, h, request.method, request.path, request.content)
		if status != http.StatusBadRequest || !strings.Contains(answer, `"other"`) {
			t.Errorf("%s %s: %d %s", request.method, request.path, status, answer)
		}
	}
	made, err := client.AppsV1().Deployments(namespace).Get(context.Background(), "noop", metav1.GetOptions{})
	if err != nil || *made.Spec.Replicas != 2 {
		t.Errorf("%v %+v", err, made)
	}
	if status, answer := call(t, h, http.MethodGet, "/system/functions?namespace="+namespace, nil); status != http.StatusOK {
		t.Error(status, answer)
	}
}

func TestMoreReplicasThanADeploymentCanHaveAreRefused(t *testing.T) {
	h, _ := provider(t)
	call(t, h, http.MethodPost, "/system/functions", noop())
	// As a number of 32 bits it would be 1.
	many := types.ScaleServiceRequest{Replicas: 1<<32 + 1}
	if status, answer := call(t, h, http.MethodPost, "/system/scale-function/noop", many); status != http.StatusBadRequest || !strings.Contains(answer, "4294967297") {
		t.Error(status, answer)
	}
}

func TestAFunctionThatIsBeingRemovedIsNotUpdated(t *testing.T) {
	h, client := provider(t)
	ctx := context.Background()
	call(t, h, http.MethodPost, "/system/functions", noop())
	made, err := client.AppsV1().Deployments(namespace).Get(ctx, "noop", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now := metav1.Now()
	made.DeletionTimestamp, made.Finalizers = &now, []string{metav1.FinalizerDeleteDependents}
	if _, err := client.AppsV1().Deployments(namespace).Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if status, answer := call(t, h, http.MethodPut, "/system/functions", noop()); status != http.StatusConflict || !strings.Contains(answer, "still being removed") {
		t.Error(status, answer)
	}
	left, err := client.AppsV1().Deployments(namespace).Get(ctx, "noop", metav1.GetOptions{})
	if err != nil || len(left.Finalizers) != 1 {
		t.Errorf("%v %+v", err, left)
	}
}

func TestAnUpdateKeepsFinalizers(t *testing.T) {
	h, client := provider(t)
	ctx := context.Background()
	call(t, h, http.MethodPost, "/system/functions", noop())
	made, _ := client.AppsV1().Deployments(namespace).Get(ctx, "noop", metav1.GetOptions{})
	made.Finalizers = []string{"example.com/audit"}
	if _, err := client.AppsV1().Deployments(namespace).Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	call(t, h, http.MethodPut, "/system/functions", noop())
	if made, _ = client.AppsV1().Deployments(namespace).Get(ctx, "noop", metav1.GetOptions{}); len(made.Finalizers) != 1 {
		t.Errorf("%v", made.Finalizers)
	}
}

func TestWhatIsHalfThereIsCompletedOrRemoved(t *testing.T) {
	h, client := provider(t)
	ctx := context.Background()
	deployments, services := client.AppsV1().Deployments(namespace), client.CoreV1().Services(namespace)
	hasService := func() bool {
		_, err := services.Get(ctx, "noop", metav1.GetOptions{})
		return err == nil
	}
	removed := types.DeleteFunctionRequest{FunctionName: "noop"}
	for _, step := range []struct {
		what       string
		before     func() error
		method     string
		content    any
		status     int
		hasService bool
	}{
		{"a Service is left", func() error {
			_, err := services.Create(ctx, newService("noop"), metav1.CreateOptions{})
			return err
		}, http.MethodPost, noop(), http.StatusAccepted, true},
		{"without a Service", func() error {
			return services.Delete(ctx, "noop", metav1.DeleteOptions{})
		}, http.MethodPut, noop(), http.StatusAccepted, true},
		{"without a Deployment", func() error {
			return deployments.Delete(ctx, "noop", metav1.DeleteOptions{})
		}, http.MethodDelete, removed, http.StatusNotFound, false},
		{"without a Service again", func() error {
			made, err := newDeployment(noop())
			if err == nil {
				_, err = deployments.Create(ctx, made, metav1.CreateOptions{})
			}
			return err
		}, http.MethodDelete, removed, http.StatusAccepted, false},
	} {
		if err := step.before(); err != nil {
			t.Fatal(step.what, err)
		}
		status, answer := call(t, h, step.method, "/system/functions", step.content)
		if status != step.status || hasService() != step.hasService {
			t.Errorf("%s: %d %s, Service: %v", step.what, status, answer, hasService())
		}
	}
}

func TestAReadOnlyFunctionMayWriteToTmp(t *testing.T) {
	d := noop()
	d.ReadOnlyRootFilesystem = true
	made, err := newDeployment(d)
	if err != nil {
		t.Fatal(err)
	}
	pod := made.Spec.Template.Spec
	mounts := pod.Containers[0].VolumeMounts
	if len(mounts) != 1 || mounts[0].MountPath != "/tmp" || mounts[0].ReadOnly {
		t.Fatalf("%+v", mounts)
	}
	if len(pod.Volumes) != 1 || pod.Volumes[0].Name != mounts[0].Name || pod.Volumes[0].EmptyDir == nil {
		t.Errorf("%+v", pod.Volumes)
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
	if _, answer := call(t, h, http.MethodPost, "/function/noop.openfaas-fn/x", nil); !strings.HasPrefix(answer, "pod") {
		t.Errorf("name with namespace: %s", answer)
	}
}
