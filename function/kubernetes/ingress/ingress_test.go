package main

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corefake "k8s.io/client-go/kubernetes/fake"
	"knative.dev/networking/pkg/apis/networking"
	"knative.dev/networking/pkg/apis/networking/v1alpha1"
	"knative.dev/networking/pkg/client/clientset/versioned/fake"
)

const namespace = "default"

// hostHeader is the header in which echo tells the host that was asked for at first.
const hostHeader = "Seen-Forwarded-Host"

// echo answers with its name, the host that it was asked for, and the headers that Knative adds.
func echo(t *testing.T, name string) (ip string, port int32) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(hostHeader, r.Header.Get("X-Forwarded-Host"))
		io.WriteString(w, strings.Join([]string{name, r.Host, r.Header.Get("Knative-Serving-Revision")}, " "))
	}))
	t.Cleanup(server.Close)
	host, text, _ := net.SplitHostPort(server.Listener.Addr().String())
	number, _ := strconv.Atoi(text)
	return host, int32(number)
}

func service(name string) *corev1.Service {
	ports := []corev1.ServicePort{{Name: "metrics", Port: 9090}, {Name: "http", Port: 80}}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: corev1.ServiceSpec{Ports: ports},
	}
}

// endpoints has one subset for each pod, as their ports differ here.
func endpoints(t *testing.T, name string, pods ...string) *corev1.Endpoints {
	made := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	for _, pod := range pods {
		ip, port := echo(t, pod)
		made.Subsets = append(made.Subsets, corev1.EndpointSubset{
			Addresses: []corev1.EndpointAddress{{IP: ip}},
			Ports:     []corev1.EndpointPort{{Name: "metrics", Port: 1}, {Name: "http", Port: port}},
		})
	}
	return made
}

func split(service string, percent int) v1alpha1.IngressBackendSplit {
	return v1alpha1.IngressBackendSplit{
		IngressBackend: v1alpha1.IngressBackend{
			ServiceNamespace: namespace, ServiceName: service, ServicePort: intstr.FromInt32(80),
		},
		Percent:       percent,
		AppendHeaders: map[string]string{"Knative-Serving-Revision": service},
	}
}

func ingressOf(host string, ofClass string, paths ...v1alpha1.HTTPIngressPath) *v1alpha1.Ingress {
	rule := v1alpha1.IngressRule{Hosts: []string{host}, HTTP: &v1alpha1.HTTPIngressRuleValue{Paths: paths}}
	return &v1alpha1.Ingress{
		ObjectMeta: metav1.ObjectMeta{
			Name: strings.ReplaceAll(host, ".", "-"), Namespace: namespace, Generation: 3,
			Annotations: map[string]string{networking.IngressClassAnnotationKey: ofClass},
		},
		Spec: v1alpha1.IngressSpec{Rules: []v1alpha1.IngressRule{rule}},
	}
}

type cluster struct {
	proxy      *proxy
	core       *corefake.Clientset
	networking *fake.Clientset
}

func begin(t *testing.T, core *corefake.Clientset, networking *fake.Clientset) cluster {
	t.Helper()
	p := newProxy()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	if err := start(ctx, p, core, networking); err != nil {
		t.Fatal(err)
	}
	return cluster{p, core, networking}
}

// ask returns status and answer to a request of a host.
func (c cluster) ask(host, path string, headers map[string]string) (int, string) {
	request := httptest.NewRequest(http.MethodPost, path, nil)
	request.Host = host
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	answer := httptest.NewRecorder()
	c.proxy.ServeHTTP(answer, request)
	return answer.Code, strings.TrimSpace(answer.Body.String())
}

func TestRequestsGoToEachReadyPodInTurn(t *testing.T) {
	c := begin(t,
		corefake.NewSimpleClientset(service("one"), endpoints(t, "one", "a", "b")),
		fake.NewSimpleClientset(ingressOf("f.example.com", class, v1alpha1.HTTPIngressPath{
			Splits: []v1alpha1.IngressBackendSplit{split("one", 100)},
		})),
	)
	answers := map[string]int{}
	for range 10 {
		status, answer := c.ask("f.example.com:31080", "/x", nil)
		if status != http.StatusOK {
			t.Fatalf("%d %s", status, answer)
		}
		answers[answer]++
	}
	// The pod sees the host without change, and what Knative adds.
	if answers["a f.example.com:31080 one"] != 5 || answers["b f.example.com:31080 one"] != 5 {
		t.Errorf("not in turn: %v", answers)
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
	c := begin(t,
		corefake.NewSimpleClientset(service("one"), endpoints(t, "one", "a")),
		fake.NewSimpleClientset(ingressOf("f.example.com", class, v1alpha1.HTTPIngressPath{
			Splits: []v1alpha1.IngressBackendSplit{split("one", 100)},
		})),
	)
	request := httptest.NewRequest(http.MethodPost, "/", &endsOnce{iotest.DataErrReader(strings.NewReader("hello"))})
	request.Host, request.ContentLength = "f.example.com", 5
	answer := httptest.NewRecorder()
	c.proxy.ServeHTTP(answer, request)
	if answer.Code != http.StatusOK {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}

func TestWhatCannotBeServedIsSaid(t *testing.T) {
	c := begin(t,
		corefake.NewSimpleClientset(service("none")),
		fake.NewSimpleClientset(
			ingressOf("waits.example.com", class, v1alpha1.HTTPIngressPath{
				Splits: []v1alpha1.IngressBackendSplit{split("none", 100)},
			}),
			ingressOf("foreign.example.com", "another.class", v1alpha1.HTTPIngressPath{
				Splits: []v1alpha1.IngressBackendSplit{split("none", 100)},
			}),
		),
	)
	for host, status := range map[string]int{
		"waits.example.com":   http.StatusServiceUnavailable,
		"foreign.example.com": http.StatusNotFound,
		"unknown.example.com": http.StatusNotFound,
	} {
		if code, answer := c.ask(host, "/", nil); code != status || !strings.Contains(answer, host) {
			t.Errorf("%s: %d %s", host, code, answer)
		}
	}
}

func TestHeadersAndLongerPrefixesGoFirst(t *testing.T) {
	c := begin(t,
		corefake.NewSimpleClientset(
			service("all"), endpoints(t, "all", "all"), service("tagged"), endpoints(t, "tagged", "tagged"),
			service("below"), endpoints(t, "below", "below"),
		),
		fake.NewSimpleClientset(ingressOf("f.example.com", class,
			v1alpha1.HTTPIngressPath{Splits: []v1alpha1.IngressBackendSplit{split("all", 100)}},
			v1alpha1.HTTPIngressPath{
				Path: "/below", RewriteHost: "other.example.com",
				Splits: []v1alpha1.IngressBackendSplit{split("below", 100)},
			},
			v1alpha1.HTTPIngressPath{
				Headers: map[string]v1alpha1.HeaderMatch{"Knative-Serving-Tag": {Exact: "blue"}},
				Splits:  []v1alpha1.IngressBackendSplit{split("tagged", 100)},
			},
		)),
	)
	for _, each := range []struct {
		path, tag, answer string
	}{
		{"/", "", "all f.example.com all"},
		{"/", "green", "all f.example.com all"},
		{"/below/x", "", "below other.example.com below"},
		{"/below/x", "blue", "tagged f.example.com tagged"},
	} {
		if _, answer := c.ask("f.example.com", each.path, map[string]string{"Knative-Serving-Tag": each.tag}); answer != each.answer {
			t.Errorf("%s with tag %q: %s", each.path, each.tag, answer)
		}
	}
}

func TestThePodIsToldTheHostThatWasAskedFor(t *testing.T) {
	one := []v1alpha1.IngressBackendSplit{split("one", 100)}
	c := begin(t,
		corefake.NewSimpleClientset(service("one"), endpoints(t, "one", "a")),
		fake.NewSimpleClientset(ingressOf("f.example.com", class,
			v1alpha1.HTTPIngressPath{Splits: one},
			v1alpha1.HTTPIngressPath{Path: "/rewritten", RewriteHost: "other.example.com", Splits: one},
		)),
	)
	for _, each := range []struct{ path, before, host string }{
		{"/", "", "F.example.com"},
		{"/rewritten", "", "F.example.com"},
		// An address of one's own passes the ingress twice.
		{"/", "own.example.com", "own.example.com"},
	} {
		request := httptest.NewRequest(http.MethodPost, each.path, nil)
		request.Host = "F.example.com"
		if each.before != "" {
			request.Header.Set("X-Forwarded-Host", each.before)
		}
		answer := httptest.NewRecorder()
		c.proxy.ServeHTTP(answer, request)
		if got := answer.Header().Get(hostHeader); answer.Code != http.StatusOK || got != each.host {
			t.Errorf("%+v: %d %q", each, answer.Code, got)
		}
	}
}

func TestSharesOfTrafficAreKept(t *testing.T) {
	p := newPath(v1alpha1.HTTPIngressPath{
		Splits: []v1alpha1.IngressBackendSplit{split("old", 90), split("new", 10), split("none", 0)},
	}, func(b v1alpha1.IngressBackend) []string { return []string{b.ServiceName} }, turns{})
	counts := map[string]int{}
	for range 10_000 {
		counts[p.choose().next()]++
	}
	// 10 % of 10,000 is 1,000 with a standard deviation of 30.
	if counts["new"] < 800 || counts["new"] > 1200 || counts["none"] != 0 || counts[""] != 0 {
		t.Error(counts)
	}
}

func TestKnativeIsToldAndChangesAreFollowed(t *testing.T) {
	own := ingressOf("f.example.com", class, v1alpha1.HTTPIngressPath{
		Splits: []v1alpha1.IngressBackendSplit{split("one", 100)},
	})
	c := begin(t, corefake.NewSimpleClientset(service("one")), fake.NewSimpleClientset(own))
	ctx := context.Background()
	read := func() *v1alpha1.Ingress {
		got, err := c.networking.NetworkingV1alpha1().Ingresses(namespace).Get(ctx, own.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := read(); !got.IsReady() || got.Status.ObservedGeneration != 3 {
		t.Errorf("not ready: %+v", got.Status)
	}
	if got := read().Status.PublicLoadBalancer.Ingress[0].DomainInternal; got != domain {
		t.Error(got)
	}
	if _, err := c.core.CoreV1().Endpoints(namespace).Create(ctx, endpoints(t, "one", "late"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		status, _ := c.ask("f.example.com", "/", nil)
		if status == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the new endpoint is not used: %d; hosts: %v", status, slices.Collect(maps.Keys(*c.proxy.table.Load())))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestEveryNameOfAHostIsServed(t *testing.T) {
	made := newTable([]*v1alpha1.Ingress{ingressOf("f.default.svc.cluster.local", class, v1alpha1.HTTPIngressPath{
		Splits: []v1alpha1.IngressBackendSplit{split("one", 100)},
	})}, func(v1alpha1.IngressBackend) []string { return nil }, turns{})
	names := slices.Sorted(maps.Keys(made))
	if want := []string{"f.default", "f.default.svc", "f.default.svc.cluster.local"}; !slices.Equal(names, want) {
		t.Errorf("%v, not %v", names, want)
	}
}
