package main

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/mux"
)

// Below the 5 s after which Node's server, the quickest of those used, closes an idle connection: a request sent into
// a closing one would be lost, and one with a body cannot be sent again.
const idleToReplica = 3 * time.Second

// workerHeader tells the caller which replica has answered.
const workerHeader = "X-Worker"

// balancer sends each request to a replica of its function, and holds it while there is none.
type balancer struct {
	registry  *Registry
	transport http.RoundTripper
}

var errSwitched = errors.New("the function switched to another protocol than HTTP, which is not passed on")

// noReplica is why no replica could take a request.
type noReplica struct{ error }

func (n noReplica) Unwrap() error { return n.error }

type functionKey struct{}

func newProxy(registry *Registry, timeout time.Duration) http.Handler {
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
		MaxIdleConnsPerHost: 1024,
		IdleConnTimeout:     idleToReplica,
		DisableCompression:  true,
	}
	proxy := &httputil.ReverseProxy{
		Transport:    balancer{registry, transport},
		Rewrite:      rewrite,
		ErrorHandler: explain,
		ErrorLog:     log.New(io.Discard, "", 0), // clients that go away
		BufferPool:   &buffers{sync.Pool{New: func() any { return make([]byte, 32<<10) }}},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		proxy.ServeHTTP(w, r.WithContext(ctx))
	})
}

// rewrite makes /function/NAME/PATH the replica's /PATH and passes on what the gateway says of the caller.
func rewrite(p *httputil.ProxyRequest) {
	vars := mux.Vars(p.In)
	p.Out.URL = &url.URL{Scheme: "http", Host: vars["name"], Path: "/" + vars["params"], RawQuery: p.In.URL.RawQuery}
	for name, values := range p.In.Header {
		if strings.HasPrefix(name, "X-Forwarded-") {
			p.Out.Header[name] = values
		}
	}
	*p.Out = *p.Out.WithContext(context.WithValue(p.Out.Context(), functionKey{}, vars["name"]))
}

// RoundTrip tries replicas until one takes the connection; nothing has been sent before that.
func (b balancer) RoundTrip(request *http.Request) (*http.Response, error) {
	name, _ := request.Context().Value(functionKey{}).(string)
	body := request.Body
	if body != nil {
		// The transport closes the body of a request that failed, also when it was not read.
		defer body.Close()
	}
	for {
		f, err := b.registry.get(name)
		if err != nil {
			return nil, err
		}
		r, err := f.acquire(request.Context())
		if errors.Is(err, errReplaced) {
			continue
		}
		if err != nil {
			return nil, noReplica{err}
		}
		try := *request
		try.URL = &url.URL{Scheme: "http", Host: r.instance.Address, Path: request.URL.Path, RawQuery: request.URL.RawQuery}
		if body != nil {
			try.Body = io.NopCloser(&toItsEnd{Reader: body})
		}
		response, err := b.transport.RoundTrip(&try)
		if err == nil && response.StatusCode == http.StatusSwitchingProtocols {
			// Nobody would close the body of one that was not asked for, or of another protocol, and it would count as under
			// way for ever.
			err = errors.Join(errSwitched, response.Body.Close())
		}
		if err == nil {
			response.Header.Set(workerHeader, r.instance.Address)
			response.Body = &releasing{ReadCloser: response.Body, release: func() { f.release(r, false) }}
			return response, nil
		}
		var refused *net.OpError
		again := errors.As(err, &refused) && refused.Op == "dial" && request.Context().Err() == nil
		f.release(r, again)
		if !again {
			return nil, err
		}
	}
}

// toItsEnd is not read again once it has ended. The transport checks whether a body has more than it should, which it may do
// when the function has answered: the body is closed by then, and the answer would break off for that.
type toItsEnd struct {
	io.Reader
	hasEnded bool
}

func (b *toItsEnd) Read(p []byte) (int, error) {
	if b.hasEnded {
		return 0, io.EOF
	}
	n, err := b.Reader.Read(p)
	b.hasEnded = err == io.EOF
	return n, err
}

// releasing gives the replica back once its answer is passed on.
type releasing struct {
	io.ReadCloser
	release func()
	once    sync.Once
}

func (r *releasing) Close() error {
	defer r.once.Do(r.release)
	return r.ReadCloser.Close()
}

func explain(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusBadGateway
	var none noReplica
	switch {
	case errors.Is(err, errNotFound):
		status = http.StatusNotFound
	case errors.Is(err, context.DeadlineExceeded):
		status = http.StatusGatewayTimeout
	case errors.As(err, &none):
		status = http.StatusServiceUnavailable
	}
	if !errors.Is(err, context.Canceled) {
		log.Printf("%s %s: %d: %v", r.Method, r.URL.Path, status, err)
	}
	http.Error(w, err.Error(), status)
}

type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte     { return b.pool.Get().([]byte) }
func (b *buffers) Put(used []byte) { b.pool.Put(used) } //nolint:staticcheck // the pool of ReverseProxy deals in slices
