package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"framestorm.local/function/shell"
)

func serve(t *testing.T) *httptest.Server {
	t.Helper()
	ok := func(context.Context, []byte) ([]byte, error) { return []byte("ok"), nil }
	server := httptest.NewUnstartedServer(shell.Mux(ok, 0, time.Second, modelRoutes...))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server
}

func TestEveryModelIsThere(t *testing.T) {
	server := serve(t)
	for _, request := range []struct{ method, path, has string }{
		{"GET", "/v2/models/iris", "inputs"},
		{"GET", "/v2/models/iris/ready", "ready"},
		{"POST", "/v2/models/iris/infer", "outputs"},
	} {
		asked, _ := http.NewRequest(request.method, server.URL+request.path, strings.NewReader("{}"))
		answer, err := server.Client().Do(asked)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.NewDecoder(answer.Body).Decode(&fields); err != nil {
			t.Fatalf("%s: %v", request.path, err)
		}
		if answer.StatusCode != http.StatusOK || fields[request.has] == nil {
			t.Errorf("%s: status %d, %v", request.path, answer.StatusCode, fields)
		}
	}
}

func TestAnyOtherRequestIsAnsweredByOk(t *testing.T) {
	answer, err := http.Post(serve(t).URL+"/", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(answer.Body); string(body) != "ok" {
		t.Errorf("%q", body)
	}
}

func TestGRPCIsAnsweredByOneMessage(t *testing.T) {
	server := serve(t)
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: transport}
	answer, err := client.Post(server.URL+"/inference.GRPCInferenceService/ModelInfer", "application/grpc",
		bytes.NewReader(make([]byte, 5)))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(answer.Body)
	if int(body[4]) != len(body)-5 || answer.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("%x, %v", body, answer.Trailer)
	}
}
