package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
)

// proxy sends each request to one address that is ready behind its host, in turn: a service's own address would keep
// all requests of a connection at one pod.
type proxy struct {
	table    atomic.Pointer[table]
	upstream *httputil.ReverseProxy
}

type chosen struct{}

func newProxy() *proxy {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost, transport.DisableCompression = 2000, 1000, true
	transport.Proxy = nil
	p := &proxy{upstream: &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: r.In.Context().Value(chosen{}).(string)})
			r.Out.Host = r.In.Host
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
			r.SetXForwarded()
			// Where a path or an ingress before has rewritten the host, this is the one that was asked for.
			if original := r.In.Header["X-Forwarded-Host"]; original != nil {
				r.Out.Header["X-Forwarded-Host"] = original
			}
			if r.Out.Body != nil {
				r.Out.Body = &toItsEnd{ReadCloser: r.Out.Body}
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "ingress: "+err.Error(), http.StatusBadGateway)
		},
	}}
	p.table.Store(&table{})
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := p.table.Load().find(r)
	if path == nil {
		http.Error(w, "ingress: no route of Knative has the host "+r.Host, http.StatusNotFound)
		return
	}
	target := path.choose()
	address := target.next()
	if address == "" {
		http.Error(w, "ingress: no endpoint of "+r.Host+" is ready", http.StatusServiceUnavailable)
		return
	}
	for _, headers := range []map[string]string{path.headers, target.headers} {
		for name, value := range headers {
			r.Header.Set(name, value)
		}
	}
	if path.rewriteHost != "" {
		r.Header.Set("X-Forwarded-Host", r.Host)
		r.Host = path.rewriteHost
	}
	p.upstream.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), chosen{}, address)))
}

// toItsEnd is not read again once it has ended. The transport checks whether a body has more than it should, which it may do
// when the pod has answered: the server has closed the body by then, and the answer would break off for that.
type toItsEnd struct {
	io.ReadCloser
	hasEnded bool
}

func (b *toItsEnd) Read(p []byte) (int, error) {
	if b.hasEnded {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p)
	b.hasEnded = err == io.EOF
	return n, err
}
